"""A vocabulary: the categories that were learnt from columns, or were given, and the id of each.

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

import logging
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater import memory
from whitewater.arrow_arrays import to_arrow, to_numpy
from whitewater.errors import InputError, IntegrityError
from whitewater.recsys.byte_strings import ByteStrings
from whitewater.recsys.categories import CategoryTable
from whitewater.recsys.counted_values import WIDE, Counted, CountsWriter, Integers, MappedCounts, together
from whitewater.recsys.hashing import hash_value, hash_values
from whitewater.recsys.operator import Fitted
from whitewater.recsys.value_table import MappedTable

logger = logging.getLogger(__name__)

PADDING, NULL, OUT_OF_VOCABULARY = 0, 1, 2
SEED = 0
TABLE = "vocabulary"
_KINDS = {str(kind): kind for kind in WIDE}
# Bytes of a table in memory for each value, besides the value.
_TABLE_BYTES = 40
_MOST_BYTES = 1 << 30
_PIECE = 1 << 16


@dataclass(frozen=True)
class VocabularyFacts:
    """What is known of a vocabulary besides its values.

    Parameters
    ----------
    columns
        The columns of ids.
    kind
        Type of its values: string, int64, or, of combinations, binary.
    num_buckets
        Ids of values out of the vocabulary.
    values
        Size of the vocabulary.
    rows, nulls
        Rows, or elements of lists, that it was learnt from, and how many of them were null.
    out_of_vocabulary_rows
        Rows whose value has no id of its own.
    out_of_vocabulary_values
        How many such values there were; None if they were not counted.
    """

    columns: tuple[str, ...]
    kind: str
    num_buckets: int
    values: int
    rows: int
    nulls: int
    out_of_vocabulary_rows: int
    out_of_vocabulary_values: int | None

    @property
    def first(self) -> int:
        """Id of the first value."""
        return OUT_OF_VOCABULARY + self.num_buckets

    @property
    def cardinality(self) -> int:
        """How many ids there are."""
        return self.first + self.values


class Vocabulary(Fitted):
    """Categories in the order of their ids, and how many rows had each: Parquet's columns ``value`` and ``count``."""

    def __init__(self, about: VocabularyFacts, counted: Counted | MappedCounts) -> None:
        self.about = about
        self.kind = _KINDS[about.kind]
        self._counted = counted
        self._table: CategoryTable | MappedTable | None = None
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the table and its lock behind: another process makes its own."""
        return Vocabulary, (self.about, self._counted)

    def counted(self, counts: Integers, *, rows: int, nulls: int) -> Vocabulary:
        """Return the same vocabulary with other counts, int64 (values,); of others values only rows are known."""
        about = replace(
            self.about, rows=rows, nulls=nulls, out_of_vocabulary_values=None,
            out_of_vocabulary_rows=rows - nulls - int(counts.sum()),
        )  # fmt: skip
        return Vocabulary(about, replace(self._counted, counts=counts))

    def facts(self) -> dict[str, Any]:
        own = {each.name: getattr(self.about, each.name) for each in fields(self.about)}
        return {**own, "columns": list(self.about.columns), "cardinality": self.about.cardinality}

    def tables(self) -> Mapping[str, pa.Table]:
        columns = [self._counted.wide(), to_arrow(self._counted.counts)]
        return {TABLE: pa.Table.from_arrays(columns, ["value", "count"])}

    def ids(self, dictionary: pa.Array) -> Integers:
        """Return the id of each value of a dictionary, an Arrow array without nulls: int64 (values,).

        Raises InputError as `places` does.
        """
        places = self.places(dictionary)
        ids = places + self.about.first
        unseen = np.flatnonzero(places < 0)
        if len(unseen):
            ids[unseen] = OUT_OF_VOCABULARY + self._buckets(dictionary, unseen)
        return ids

    def places(self, dictionary: pa.Array) -> Integers:
        """Return the place of each value in the vocabulary, int64 (values,), -1 where it is not there.

        Raises InputError if the values are not of the type that the vocabulary has.
        """
        if self.about.values and dictionary.type != self.kind:
            raise InputError(
                f"{', '.join(self.about.columns)}: values are of type {dictionary.type}, but the vocabulary was fitted "
                f"on {self.kind}. Give values of that type, or fit again."
            )
        # Where nothing was learnt, nothing is known of the type either.
        if not self.about.values:
            return np.full(len(dictionary), -1)
        return self._look_up(dictionary).astype(np.int64, copy=False)

    def _buckets(self, dictionary: pa.Array, unseen: Integers) -> Integers | int:
        if self.about.num_buckets == 1:
            return 0
        values = dictionary if len(unseen) == len(dictionary) else dictionary.take(to_arrow(unseen))
        return (hash_values(values, SEED) % np.uint64(self.about.num_buckets)).astype(np.int64)

    def id_of(self) -> Callable[[str | int | bytes | None], int]:
        """Return what gives the id of a value, as `ids` does, and of None."""
        known = self._known()
        buckets = self.about.num_buckets

        def id_of(value: str | int | bytes | None) -> int:
            if value is None:
                return NULL
            found = known(value)
            return OUT_OF_VOCABULARY + hash_value(value, SEED) % buckets if found is None else found

        return id_of

    def _known(self) -> Callable[[Any], int | None]:
        if isinstance(self._counted, Counted):
            return {
                value: number for number, value in enumerate(self._counted.values.to_pylist(), self.about.first)
            }.get

        def known(value: Any) -> int | None:
            place = int(self.places(pa.array([value], self.kind))[0])
            return None if place < 0 else place + self.about.first

        return known

    def _look_up(self, dictionary: pa.Array) -> npt.NDArray[Any]:
        with self._lock:
            if self._table is None:
                counted = self._counted
                self._table = CategoryTable(counted.values) if isinstance(counted, Counted) else MappedTable(counted)
        return self._table.look_up(dictionary)


def restored_vocabulary(facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Vocabulary:
    """Return a vocabulary from its facts and tables: in memory if a table for look-ups has room there, else mapped.

    Raises IntegrityError if they are not those of a vocabulary.
    """
    try:
        known = {each.name: facts[each.name] for each in fields(VocabularyFacts)}
        about = VocabularyFacts(**{**known, "columns": tuple(facts["columns"])})
        values, counts = tables[TABLE]["value"], tables[TABLE]["count"]
        kind = _KINDS[about.kind]
    except (KeyError, TypeError) as error:
        raise IntegrityError(f"a vocabulary lacks {error}. Fit the workflow again.") from error
    if values.type not in (kind, WIDE[kind]) or counts.type != pa.int64() or values.null_count or counts.null_count:
        raise IntegrityError(
            f"the vocabulary of {', '.join(about.columns)} is of types {values.type} and {counts.type}, or has nulls, "
            f"instead of being of {kind} and int64. Fit the workflow again."
        )
    if len(values) != about.values:
        raise IntegrityError(
            f"the vocabulary of {', '.join(about.columns)} has {len(values)} values instead of {about.values}. "
            "Fit the workflow again."
        )
    return Vocabulary(about, _held(tables[TABLE], kind))


def _held(table: pa.Table, kind: pa.DataType) -> Counted | MappedCounts:
    """Return a table in memory if it has room there with its hash table, else in files without a name."""
    needed = table.nbytes + _TABLE_BYTES * len(table)
    if table.nbytes < _MOST_BYTES and needed < memory.available() // 2:
        return counted_of(table, kind)
    logger.warning("a vocabulary of %d values takes %.2f GB: it stays on disk, mapped", len(table), needed / 1e9)
    with tempfile.TemporaryDirectory() as folder:
        with CountsWriter(Path(folder), kind) as writer:
            for batch in table.to_batches(max_chunksize=_PIECE):
                writer.add(_counted(batch, kind))
        return writer.mapped(for_look_up=True)


def counted_of(table: pa.Table, kind: pa.DataType) -> Counted:
    """Return the columns ``value``, of that kind or its wide type, and ``count``."""
    parts = [_counted(batch, kind) for batch in table.to_batches()]
    return together(parts) if parts else Counted(pa.array([], kind), np.empty(0, np.int64))


def _counted(batch: pa.RecordBatch, kind: pa.DataType) -> Counted:
    strings = ByteStrings.of(batch["value"])
    first, last = strings.offsets[0], strings.offsets[-1]
    near = ByteStrings(strings.data[first:last], strings.offsets - first)
    return Counted(near.as_arrow(kind), to_numpy(batch["count"]))
