"""R7: a sum over a matrix of random numbers that is larger than memory.

500000 x 500000 float64, 2 TB: ``x = normal(10, 1)`` in chunks of 10000 x 10000, ``(x + 1)[::2, ::2].sum()``. ``scale``
is that of the bytes. Chunks are as published, but at least 8 to an edge, so that there is something to share out.

Every number is drawn, and none is kept. What is drawn depends on the variant and the device, so the answer is the
number of cells that were summed, and whether their mean is within 5 standard errors of 11: that of right numbers is
further off once in 1.7 million times.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import ceil, isqrt, sqrt
from typing import NamedTuple

import numpy as np
from pydantic import JsonValue

from benchmarks.published.array_random_gpu import gpu_sum
from benchmarks.published.dask_cluster import dask_client
from benchmarks.published.row import BOTH, SEED, CallCase, Published, Row, Timed, Variant, Work
from benchmarks.report import Size
from whitewater.engines import Device

EDGE, CHUNK, FEWEST_CHUNKS = 500_000, 10_000, 8
MEAN, DEVIATION = 10.0, 1.0
STANDARD_ERRORS = 5.0


class Total(NamedTuple):
    """The sum of the cells that were chosen, and how many those are."""

    sum: float
    cells: int


def edge(work: Work) -> int:
    """Return rows and columns of the matrix."""
    return max(1, isqrt(round(EDGE * EDGE * work.scale)))


def chunk_edge(work: Work) -> int:
    """Return rows and columns of a chunk."""
    return min(CHUNK, ceil(edge(work) / FEWEST_CHUNKS))


def size(work: Work) -> Size:
    """Return the rows, and the bytes of the numbers that are drawn."""
    return Size(rows=edge(work), bytes=8 * edge(work) ** 2, basis="memory")


def answer(total: Total) -> JsonValue:
    """Return the number of cells, exactly, and whether their mean can be that of x + 1."""
    off = abs(float(total.sum) / total.cells - (MEAN + 1))
    return {
        "cells": total.cells,
        "mean_within_5_standard_errors": off <= STANDARD_ERRORS * DEVIATION / sqrt(total.cells),
    }


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Dask, as it was written."""
    import dask.array as da

    n, chunk = edge(work), chunk_edge(work)

    def call() -> Total:
        x = da.random.normal(10, 1, size=(n, n), chunks=(chunk, chunk))
        y = (x + 1)[::2, ::2]
        return Total(y.sum().compute(), y.size)

    with dask_client(work.device, work.cluster, threads=work.threads):
        yield Timed(call, answer=answer)


@contextmanager
def numpy_at_once(work: Work) -> Iterator[Timed]:
    """NumPy, the whole matrix at once, as far as it fits into memory."""
    n, generator = edge(work), np.random.default_rng(SEED)

    def call() -> Total:
        y = (generator.normal(10, 1, size=(n, n)) + 1)[::2, ::2]
        return Total(y.sum(), y.size)

    yield Timed(call, answer=answer)


@contextmanager
def streamed(work: Work) -> Iterator[Timed]:
    """Bands of rows on threads, each drawn by a generator of its own into a buffer of the size of the cache."""
    n, step = edge(work), chunk_edge(work)
    bands = [range(start, min(start + step, n)) for start in range(0, n, step)]
    with ThreadPoolExecutor(work.threads) as pool:

        def call() -> Total:
            totals = list(pool.map(partial(sum_of_band, work.device, n), bands))
            return Total(sum(total.sum for total in totals), sum(total.cells for total in totals))

        yield Timed(call, answer=answer)


def sum_of_band(device: Device, n: int, rows: range) -> Total:
    """Draw rows of the matrix, and add up x + 1 where row and column are even; on a GPU, with one kernel."""
    if device.name == "gpu":
        cells = len(range(-(-rows.start // 2), -(-rows.stop // 2))) * -(-n // 2)
        return Total(gpu_sum(n, rows, seed=SEED, mean=MEAN, deviation=DEVIATION), cells)
    generator = np.random.default_rng(SEED + rows.start)
    buffer = np.empty((max(1, device.slice_rows // 4 // n), n))
    total, cells = 0.0, 0
    for top in range(rows.start, rows.stop, len(buffer)):
        x = buffer[: rows.stop - top]
        generator.standard_normal(out=x)
        chosen = x[top % 2 :: 2, ::2] * DEVIATION + MEAN + 1
        total, cells = total + float(chosen.sum()), cells + chosen.size
    return Total(total, cells)


ROW = Row(
    id="R7",
    name="array_random",
    title="`(x + 1)[::2, ::2].sum()` of a matrix of 500000 x 500000 random numbers, which are not kept",
    cases=(
        CallCase(
            name="",
            variants=(
                Variant("tuned", streamed, devices=BOTH),
                Variant("as_published", as_published, devices=BOTH),
                Variant("numpy", numpy_at_once, memory=2.2),
            ),
            oracle="as_published",
            size=size,
            published=(
                Published("Dask, 1 core", 9540.0),
                Published("Dask, 40 cores", 690.0),
                Published("Dask and CuPy, 1 GPU", 97.0),
                Published("Dask and CuPy, 8 GPUs", 19.0),
            ),
        ),
    ),
)
