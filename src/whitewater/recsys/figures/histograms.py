"""Histograms of columns that need not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.arrow_arrays import to_numpy
from whitewater.devices.parquet import faults_of, opened

Floats = npt.NDArray[np.float64]
RowGroups = Sequence[tuple[Path, int, int]]
_BINS = 60


@dataclass(frozen=True)
class Histogram:
    """The distribution of a column.

    Attributes
    ----------
    rows
        All rows.
    nulls, infinite
        Rows whose value is null or NaN, and rows whose value is infinite; they are in no bin.
    low, high
        Least and greatest finite value; NaN where there is none.
    edges, counts
        float64 (bins + 1,) and int64 (bins,); none where there is no finite value.
    """

    rows: int
    nulls: int
    infinite: int
    low: float
    high: float
    edges: Floats
    counts: npt.NDArray[np.int64]


def histogram(row_groups: RowGroups, name: str) -> Histogram:
    """Return the histogram of a column of numbers: a bin for each value of few integers, else bins of equal width."""
    rows = nulls = infinite = 0
    low, high, whole = np.inf, -np.inf, True
    for values in _values(row_groups, name):
        finite = values[np.isfinite(values)]
        rows, nulls = rows + len(values), nulls + int(np.isnan(values).sum())
        infinite += int(np.isinf(values).sum())
        low, high = min(low, float(finite.min(initial=np.inf))), max(high, float(finite.max(initial=-np.inf)))
        whole = whole and bool((finite == np.round(finite)).all())
    if rows == nulls + infinite:
        return Histogram(rows, nulls, infinite, np.nan, np.nan, np.empty(0), np.empty(0, np.int64))
    edges = _edges(low, high, whole=whole)
    counts = np.zeros(len(edges) - 1, np.int64)
    for values in _values(row_groups, name):
        counts += np.histogram(values[np.isfinite(values)], edges)[0]
    return Histogram(rows, nulls, infinite, low, high, edges, counts)


def _edges(low: float, high: float, *, whole: bool) -> Floats:
    if low == high:
        # Far from 0 a half is less than the next number is away.
        width = max(0.5, abs(low) * 1e-6)
        return np.array([low - width, low + width])
    if whole and high - low < _BINS:
        return np.arange(low, high + 2) - 0.5
    # By halves, as the whole distance may be more than a number can be.
    return 2 * np.linspace(low / 2, high / 2, _BINS + 1)


def _values(row_groups: RowGroups, name: str) -> Iterator[Floats]:
    """Yield the values of each row group as float64 (rows,), NaN where they are null."""
    for path, number, _ in row_groups:
        with opened(path) as file, faults_of(path, number, name):
            column = file.read_row_group(number, columns=[name], use_threads=False).column(0)
            yield to_numpy(column.cast(pa.float64(), safe=False).fill_null(np.nan))
