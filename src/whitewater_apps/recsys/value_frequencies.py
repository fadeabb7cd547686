"""How often values occur, for pictures: what a fitted workflow keeps of its vocabularies, and histograms of columns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.features.artifact import FORMAT
from whitewater.features.categories.vocabulary import TABLE
from whitewater.io.store import read_json
from whitewater.tables.arrow_arrays import to_numpy

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_BINS = 60
_MOST_IN_A_BIN = 0.9


def learned_vocabularies(workflow: Path) -> list[dict[str, Any]]:
    """Return the vocabularies of the `Categorify` operators of a fitted workflow, which is a folder.

    A vocabulary, of a column or of a group of columns, has its ``name``; the ``threshold``: values with fewer rows have
    no id of their own; ``table``, the file of values and counts; and the facts of `Categorify`, such as ``rows``, or
    elements of lists, that it was learned from. ``all_values`` are those that occur, as far as they were counted.
    """
    return [
        {
            "name": name,
            "threshold": node["parameters"]["freq_threshold"],
            "table": workflow / each["tables"][TABLE],
            "all_values": each["facts"]["values"] + (each["facts"]["out_of_vocabulary_values"] or 0),
            **each["facts"],
        }
        for node in read_json(workflow / FORMAT.name)["nodes"]
        if node["operator"] == "Categorify"
        for name, each in node["statistics"].items()
    ]


def frequencies(table: Path) -> tuple[Integers, Integers]:
    """Return the counts that occur in a vocabulary, descending, and how many values have each; 0 is left out."""
    counts = to_numpy(pq.read_table(table, columns=["count"], use_threads=False).column(0))
    distinct, values = np.unique(counts[counts > 0], return_counts=True)
    return distinct[::-1], values[::-1]


def values_of(files: Iterable[Path], name: str) -> Floats:
    """Return a column of numbers of Parquet files as float64 (rows,), NaN where they are null."""
    columns = [pq.read_table(path, columns=[name], use_threads=False).column(0) for path in files]
    parts = [to_numpy(column.cast(pa.float64(), safe=False).fill_null(np.nan)) for column in columns]
    return np.concatenate([np.empty(0), *parts])


def histogram(finite: Floats) -> tuple[Integers, Floats, bool]:
    """Return the rows of each bin, the edges of the bins, and whether the numbers, at least one, have a long tail.

    Few integers have a bin each, others are in bins of equal width. Where nine tenths of them would be in one, bins are
    of equal width on the axis of asinh instead, which is logarithmic from 1 on.
    """
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        # Far from 0 a half is less than the next number is away.
        width = max(0.5, abs(low) * 1e-6)
        edges = np.array([low - width, low + width])
    elif high - low < _BINS and (finite == np.round(finite)).all():
        edges = np.arange(low, high + 2) - 0.5
    else:
        # By halves, as the whole distance may be more than a number can be.
        edges = 2 * np.linspace(low / 2, high / 2, _BINS + 1)
    counts, _ = np.histogram(finite, edges)
    long_tail = len(counts) > 1 and bool(counts.max() > _MOST_IN_A_BIN * len(finite))
    if long_tail:
        edges = np.sinh(np.linspace(np.arcsinh(low), np.arcsinh(high), _BINS + 1))
        edges[[0, -1]] = low, high
        counts, _ = np.histogram(finite, edges)
    return counts, edges, long_tail
