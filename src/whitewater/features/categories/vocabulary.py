"""A vocabulary: the categories that were learned from columns, or were given, and the id of each.

=============================  ===============================================================
id                             of
=============================  ===============================================================
0                              padding, for what fills lists up
1                              null and NaN
2 to ``first`` - 1             values out of the vocabulary: one id, or that of a hash bucket
``first`` and following        the vocabulary, in its order
=============================  ===============================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.engines import memory
from whitewater.errors import IntegrityError
from whitewater.features.categories.byte_strings import LARGE
from whitewater.features.categories.hashing import hash_value, hash_values
from whitewater.features.categories.values import CategoryTable
from whitewater.features.operator import Fitted
from whitewater.tables.arrow_arrays import one_array, to_arrow, to_numpy

Integers = npt.NDArray[np.int64]
PADDING, NULL, OUT_OF_VOCABULARY = 0, 1, 2
SEED = 0
TABLE = "vocabulary"
_KINDS = {str(kind): kind for kind in (pa.string(), pa.binary(), pa.int64())}
# Bytes of the table for look-ups for each value, besides the value.
_TABLE_BYTES = 40


@dataclass(frozen=True)
class VocabularyFacts:
    """What is known of a vocabulary besides its values."""

    columns: tuple[str, ...]  # of ids
    kind: str  # type of the values: string, int64, or, of combinations, binary
    num_buckets: int  # ids of values out of the vocabulary
    values: int  # size of the vocabulary
    rows: int  # or elements of lists, that it was learned from
    nulls: int  # rows of null
    out_of_vocabulary_rows: int  # rows whose value has no id of its own
    out_of_vocabulary_values: int | None  # how many such values there were; None if they were not counted

    @property
    def first(self) -> int:
        """Id of the first value."""
        return OUT_OF_VOCABULARY + self.num_buckets

    @property
    def cardinality(self) -> int:
        """How many ids there are."""
        return self.first + self.values


class Vocabulary(Fitted):
    """Categories in the order of their ids, and how many rows had each, int64 (values,)."""

    def __init__(self, about: VocabularyFacts, values: pa.Array, counts: Integers) -> None:
        self.about, self.values, self.counts = about, values, counts
        self.kind = _KINDS[about.kind]
        self.table = CategoryTable(values)

    def facts(self) -> dict[str, Any]:
        return asdict(self.about) | {"columns": list(self.about.columns), "cardinality": self.about.cardinality}

    def tables(self) -> Mapping[str, pa.Table]:
        values = self.values.cast(LARGE.get(self.kind, self.kind))
        return {TABLE: pa.table({"value": values, "count": to_arrow(self.counts)})}

    def ids(self, dictionary: pa.Array) -> Integers:
        """Return the id of each value of a dictionary, an Arrow array without nulls: int64 (values,)."""
        places = self.table.look_up(dictionary)
        ids = places + self.about.first
        unseen = np.flatnonzero(places < 0)
        if len(unseen) and self.about.num_buckets == 1:
            ids[unseen] = OUT_OF_VOCABULARY
        elif len(unseen):
            hashes = hash_values(dictionary.take(to_arrow(unseen)), SEED)
            ids[unseen] = OUT_OF_VOCABULARY + (hashes % np.uint64(self.about.num_buckets)).astype(np.int64)
        return ids

    def id_of(self) -> Callable[[str | int | bytes | None], int]:
        """Return what gives the id of a value, as `ids` does, and of None."""
        known = {value: number for number, value in enumerate(self.values.to_pylist(), self.about.first)}
        buckets = self.about.num_buckets

        def id_of(value: str | int | bytes | None) -> int:
            if value is None:
                return NULL
            number = known.get(value)
            return OUT_OF_VOCABULARY + hash_value(value, SEED) % buckets if number is None else number

        return id_of


def restore_vocabulary(facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Vocabulary:
    """Return a vocabulary from its facts and tables.

    Raises IntegrityError if they are not those of a vocabulary, ResourceError if there is no room to look values up.
    """
    try:
        known = {each.name: facts[each.name] for each in fields(VocabularyFacts)}
        about = VocabularyFacts(**{**known, "columns": tuple(facts["columns"])})
        values, counts = tables[TABLE]["value"], tables[TABLE]["count"]
        kind = _KINDS[about.kind]
    except (KeyError, TypeError) as error:
        raise IntegrityError(f"a vocabulary lacks {error}. Fit the workflow again.") from error
    name = f"the vocabulary of {', '.join(about.columns)}"
    if (
        values.type not in (kind, LARGE.get(kind))
        or counts.type != pa.int64()
        or values.null_count
        or counts.null_count
    ):
        raise IntegrityError(
            f"{name} is of types {values.type} and {counts.type}, or has nulls, instead of being of {kind} and int64. "
            "Fit the workflow again."
        )
    if len(values) != about.values:
        raise IntegrityError(f"{name} has {len(values)} values instead of {about.values}. Fit the workflow again.")
    needed = values.nbytes + _TABLE_BYTES * len(values)
    remedy = "Fit again with freq_threshold or max_size, or with HashBucket instead of Categorify."
    memory.forecast(needed, what=f"{name}, {len(values):,} values,", remedy=remedy)
    return Vocabulary(about, one_array(values), to_numpy(counts))
