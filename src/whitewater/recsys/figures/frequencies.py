"""How often categories occur: what a fitted workflow keeps of its vocabularies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from whitewater.arrow_arrays import to_numpy
from whitewater.devices.parquet import opened
from whitewater.recsys.artefact import FORMAT
from whitewater.recsys.vocabulary import TABLE
from whitewater.store import read_json

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Learnt:
    """A vocabulary of a fitted workflow.

    Attributes
    ----------
    name
        Of the column, or of the group of columns.
    threshold
        Values with fewer rows have no id of their own.
    rows
        Rows, or elements of lists, that it was learnt from.
    nulls, unknown
        How many of them are null, and how many have a value without an id of its own.
    values
        Values with an id.
    unknown_values
        Values without one; None where they were not counted.
    table
        File of values and counts.
    """

    name: str
    threshold: int
    rows: int
    nulls: int
    unknown: int
    values: int
    unknown_values: int | None
    table: Path

    @property
    def all_values(self) -> int:
        """Values that occur, as far as they were counted."""
        return self.values + (self.unknown_values or 0)


def learnt_vocabularies(workflow: Path) -> list[Learnt]:
    """Return the vocabularies of the `Categorify` operators of a fitted workflow, which is a folder."""
    return [
        Learnt(
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
    """Return the counts that occur in a vocabulary, descending, and how many values have each; 0 is left out.

    Few counts are different ones, so that this takes little memory for any number of values.
    """
    counts, values = np.empty(0, np.int64), np.empty(0, np.int64)
    with opened(table) as file:
        for batch in file.iter_batches(columns=["count"], use_threads=False):
            more, times = np.unique(to_numpy(batch.column(0)), return_counts=True)
            together, places = np.unique(np.concatenate([counts, more]), return_inverse=True)
            summed = np.zeros(len(together), np.int64)
            np.add.at(summed, places, np.concatenate([values, times]))
            counts, values = together, summed
    some = counts > 0
    return counts[some][::-1], values[some][::-1]
