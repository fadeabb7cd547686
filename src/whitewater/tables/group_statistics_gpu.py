"""Statistics of groups on a GPU: a thread to each row."""

from __future__ import annotations

from collections.abc import Sequence

import cupy
import numpy as np
from numba import config, cuda

from whitewater.engines import Array
from whitewater.tables.blocks import NULL_INTEGER, GroupStatistics
from whitewater.tables.group_statistics_cpu import (
    BANDS,
    GroupAccumulator,
    band_of,
    bin_of,
    lower_square,
    refuse,
    statistics,
    units_of,
    upper_square,
)

# Blocks of few rows are no mistake here.
config.CUDA_LOW_OCCUPANCY_WARNINGS = False
# Sums are spread over lanes, so that a thread seldom waits for another one that adds to the same sum.
LANES = 16
_THREADS = 256


@cuda.jit
def accumulate(keys: Array, bits: Array, sums: Array, counts: Array) -> None:
    """Do with a thread to each row what `fill_bins` and `accumulate` of `whitewater.tables.group_statistics_cpu` do.

    ``keys`` are int32, and ``bits`` float64 by its bits as int64, (rows,). Added to are ``sums``, int64 (bands,
    `LANES`, groups, 1 or 3), and ``counts``, int64 (groups, 1 or bins, and 1 more), whose last column is of the
    rows that are left out: because of their value, or, under the last group, because their key has no group.
    """
    row = cuda.grid(1)
    if row >= len(keys) or keys[row] < 0:
        return
    key, place = keys[row], bin_of(bits[row])
    if place < 0 or key >= len(counts):
        cuda.atomic.add(counts, (min(key, len(counts) - 1), counts.shape[1] - 1), 1)
        return
    lane, band, value, medians = row % LANES, band_of(place), units_of(bits[row]), sums.shape[3] > 1
    cuda.atomic.add(sums, (band, lane, key, 0), value)
    if medians:
        cuda.atomic.add(sums, (band, lane, key, 1), upper_square(value))
        cuda.atomic.add(sums, (band, lane, key, 2), lower_square(value))
    cuda.atomic.add(counts, (key, place if medians else 0), 1)


class GpuGroupAccumulator(GroupAccumulator):
    """Statistics by several keys on the GPU; in what order its threads add changes nothing."""

    def __init__(self, groups: Sequence[int], *, medians: bool = True) -> None:
        super().__init__(groups, medians=medians, lanes=LANES)

    def _begin(self) -> None:
        self._sums = [cupy.zeros((BANDS, self._lanes, size, self._parts), np.int64) for size in self._groups]
        # The last column counts the rows that were left out.
        self._counts = [cupy.zeros((size, self._bins + 1), np.int64) for size in self._groups]

    def _fill(self, keys: Sequence[Array], values: Array, chosen: Array | None) -> None:
        bits = values.view(np.int64)
        blocks = -(-len(values) // _THREADS)
        for place, (key, sums, counts) in enumerate(zip(keys, self._sums, self._counts, strict=True)):
            counting = key if chosen is None else cupy.where(chosen, key, NULL_INTEGER)
            accumulate[blocks, _THREADS](counting.astype(np.int32), bits, sums, counts)
            refuse(int(counts[:, -1].sum()), place, len(counts))

    def _recent(self) -> tuple[GroupStatistics, ...]:
        return tuple(
            statistics(cupy.asnumpy(sums), cupy.asnumpy(counts[:, :-1]))
            for sums, counts in zip(self._sums, self._counts, strict=True)
        )
