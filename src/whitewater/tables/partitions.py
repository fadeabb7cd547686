"""Parts of a data set, grouped into partitions of a size that suits the device; Arrow tables written as files."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.io.store import write_whole

# Snappy compresses 1M trips of 20 columns to 15 MB, Zstandard at level 1 to 12.5 MB. Both take equally long to write;
# Zstandard takes a third longer to read back.
COMPRESSION = "snappy"


@dataclass(frozen=True)
class Part:
    """A Parquet file of ``rows`` rows, all of which came from input file number ``file``."""

    path: Path
    file: int
    rows: int


@dataclass(frozen=True)
class Partition:
    """Parts that are read together, in their order.

    ``repeats`` is a NumPy file with the positions of the rows that repeat an earlier one, see
    `whitewater.tables.with_polars.mark_duplicates`; None if duplicates were not searched for.
    """

    parts: tuple[Part, ...]
    repeats: Path | None = None

    @property
    def name(self) -> str:
        """The file name of the first part, which names the files that the partition becomes."""
        return self.parts[0].path.name

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(part.rows for part in self.parts)

    def duplicates(self) -> Array:
        """Return whether each row repeats an earlier one, bool (rows,)."""
        repeats = np.zeros(self.rows, bool)
        if self.repeats:
            repeats[np.load(self.repeats)] = True
        return repeats


def group_parts(parts: Sequence[Part], *, rows: int) -> list[Partition]:
    """Group parts, in their order, into partitions of at most ``rows`` rows; a larger part stands alone."""
    return [Partition(tuple(parts[start:stop])) for start, stop in ranges_of([part.rows for part in parts], rows)]


def ranges_of(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Cut sizes, in their order, into ranges that each add up to at most ``limit``; a larger size stands alone."""
    starts, total = [0] if sizes else [], 0
    for index, size in enumerate(sizes):
        if total and total + size > limit:
            starts.append(index)
            total = 0
        total += size
    return list(pairwise([*starts, len(sizes)]))


def columns_present(partitions: Iterable[Partition], schema: pa.Schema, *, needed: Container[str]) -> pa.Schema:
    """Return the columns of a schema that at least one part has, and those that are ``needed`` even if no part has."""
    parts = [part for partition in partitions for part in partition.parts]
    present = {name for part in parts for name in pq.read_schema(part.path).names}
    return pa.schema([field for field in schema if field.name in present or field.name in needed])


def write_table(table: pa.Table, path: Path, *, compression: str = COMPRESSION) -> None:
    """Write a table as a Parquet file of one row group; equal tables give equal bytes, whichever engine made them."""
    # Metadata would depend on the library that made the table, and the ends of pages on its chunks.
    table = table.replace_schema_metadata()
    if any(column.num_chunks != 1 for column in table.columns):
        table = table.combine_chunks()
    # As differences, times take half the space and half the time. Other columns repeat values: dictionaries suit them.
    times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    write = partial(
        pq.write_table,
        table,
        row_group_size=max(1, len(table)),
        compression=compression,
        use_dictionary=[name for name in table.column_names if name not in times],
        column_encoding=dict.fromkeys(times, "DELTA_BINARY_PACKED"),
        # Readers skip files by these. Other columns are not sorted, so their statistics would say little.
        write_statistics=times,
    )
    write_whole(path, write)
