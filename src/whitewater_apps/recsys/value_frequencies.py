"""How often values occur, for pictures: what a fitted workflow keeps of its vocabularies, and histograms of columns.

Columns need not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.features.artifact import FORMAT
from whitewater.features.categories.vocabulary import TABLE
from whitewater.features.columns.parquet import faults_of, opened
from whitewater.io.store import read_json
from whitewater.tables.arrow_arrays import to_numpy

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
RowGroups = Sequence[tuple[Path, int, int]]
_BINS = 60
_MOST_IN_A_BIN = 0.9


@dataclass(frozen=True)
class Learned:
    """A vocabulary of a fitted workflow, of a column or of a group of columns."""

    name: str
    threshold: int  # values with fewer rows have no id of their own
    rows: int  # or elements of lists, that it was learned from
    nulls: int
    unknown: int  # rows with a value without an id of its own
    values: int  # with an id
    unknown_values: int | None  # without one; None where these were not counted
    table: Path  # of values and counts

    @property
    def all_values(self) -> int:
        """Values that occur, as far as they were counted."""
        return self.values + (self.unknown_values or 0)


def learned_vocabularies(workflow: Path) -> list[Learned]:
    """Return the vocabularies of the `Categorify` operators of a fitted workflow, which is a folder."""
    return [
        Learned(
            name=name,
            threshold=node["parameters"]["freq_threshold"],
            rows=each["facts"]["rows"],
            nulls=each["facts"]["nulls"],
            unknown=each["facts"]["out_of_vocabulary_rows"],
            values=each["facts"]["values"],
            unknown_values=each["facts"]["out_of_vocabulary_values"],
            table=workflow / each["tables"][TABLE],
        )
        for node in read_json(workflow / FORMAT.name)["nodes"]
        if node["operator"] == "Categorify"
        for name, each in node["statistics"].items()
    ]


def frequencies(table: Path) -> tuple[Integers, Integers]:
    """Return the counts that occur in a vocabulary, descending, and how many values have each; 0 is left out."""
    with opened(table) as file:
        counts = to_numpy(file.read(columns=["count"], use_threads=False).column(0))
    found, times = np.unique(counts[counts > 0], return_counts=True)
    return found[::-1], times[::-1]


@dataclass(frozen=True)
class Histogram:
    """The distribution of a column: of all rows those that are null or NaN, and those that are infinite, in no bin."""

    rows: int
    nulls: int
    infinite: int
    edges: Floats  # (bins + 1,), and counts (bins,); none where there is no finite value
    counts: Integers
    long_tail: bool = False  # the bins are equally wide on the axis of asinh, which is logarithmic from 1 on


def histogram(row_groups: RowGroups, name: str) -> Histogram:
    """Return the histogram of a column of numbers: a bin for each value of few integers, else bins of equal width.

    Where nine tenths of the values would be in one bin, the bins are of equal width on a logarithmic axis instead.
    """
    rows = nulls = infinite = 0
    low, high, whole = np.inf, -np.inf, True
    for values in _values(row_groups, name):
        finite = values[np.isfinite(values)]
        rows, nulls = rows + len(values), nulls + int(np.isnan(values).sum())
        infinite += int(np.isinf(values).sum())
        low, high = min(low, float(finite.min(initial=np.inf))), max(high, float(finite.max(initial=-np.inf)))
        whole = whole and bool((finite == np.round(finite)).all())
    if rows == nulls + infinite:
        return Histogram(rows, nulls, infinite, np.empty(0), np.empty(0, np.int64))
    edges = _edges(low, high, whole=whole)
    counts = _counts(row_groups, name, edges)
    long_tail = len(counts) > 1 and bool(counts.max() > _MOST_IN_A_BIN * counts.sum())
    if long_tail:
        edges = np.sinh(np.linspace(np.arcsinh(low), np.arcsinh(high), _BINS + 1))
        edges[[0, -1]] = low, high
        counts = _counts(row_groups, name, edges)
    return Histogram(rows, nulls, infinite, edges, counts, long_tail)


def _counts(row_groups: RowGroups, name: str, edges: Floats) -> Integers:
    counts = np.zeros(len(edges) - 1, np.int64)
    for values in _values(row_groups, name):
        counts += np.histogram(values[np.isfinite(values)], edges)[0]
    return counts


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
