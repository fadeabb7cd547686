"""Parquet parts of a data set, grouped into partitions that fit the device; Arrow tables written as Parquet."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.io.store import write_atomically

# Snappy compresses 1M trips of 20 columns to 15 MB, Zstandard at level 1 to 12.5 MB. Writing takes the same time;
# reading Zstandard takes a third longer.
COMPRESSION = "snappy"


@dataclass(frozen=True)
class Part:
    """A Parquet file of ``rows`` rows, all from input file number ``file``."""

    path: Path
    file: int
    rows: int


@dataclass(frozen=True)
class Partition:
    """Parts that are read together, in order."""

    parts: tuple[Part, ...]
    duplicate_rows: Path | None = None  # a NumPy file with the positions of duplicates, if they were searched for

    @property
    def name(self) -> str:
        """The file name of the first part, used for the files written from the partition."""
        return self.parts[0].path.name

    def duplicates(self) -> Array:
        """Return whether each row is a duplicate, bool (rows,)."""
        is_duplicate = np.zeros(sum(part.rows for part in self.parts), bool)
        if self.duplicate_rows:
            is_duplicate[np.load(self.duplicate_rows)] = True
        return is_duplicate


def group_parts(parts: Sequence[Part], *, rows: int) -> list[Partition]:
    """Group consecutive parts into partitions of at most ``rows`` rows; a larger part is one partition."""
    return [Partition(tuple(parts[start:stop])) for start, stop in ranges_of([part.rows for part in parts], rows)]


def ranges_of(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Split sizes into consecutive ranges with a sum of at most ``limit`` each; a larger size is one range."""
    starts, total = [0] if sizes else [], 0
    for index, size in enumerate(sizes):
        if total and total + size > limit:
            starts.append(index)
            total = 0
        total += size
    return list(pairwise([*starts, len(sizes)]))


def write_table(table: pa.Table, path: Path, *, compression: str = COMPRESSION) -> None:
    """Write a table as a Parquet file of one row group. Equal tables of different engines give equal bytes."""
    # Metadata would depend on the library that made the table, and page boundaries on its chunks.
    table = table.replace_schema_metadata()
    if any(column.num_chunks != 1 for column in table.columns):
        table = table.combine_chunks()
    # Delta encoding of times halves space and time. The values of other columns repeat: dictionaries suit them.
    times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    write = partial(
        pq.write_table,
        table,
        row_group_size=max(1, len(table)),
        compression=compression,
        use_dictionary=[name for name in table.column_names if name not in times],
        column_encoding=dict.fromkeys(times, "DELTA_BINARY_PACKED"),
        # Readers skip files by these. Other columns are not sorted, so their statistics would not help.
        write_statistics=times,
    )
    write_atomically(path, write)
