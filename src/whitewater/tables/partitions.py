"""Parts of a data set, grouped into partitions of a size that suits the device, and Arrow tables as files."""

from __future__ import annotations

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

# Of 1M trips of 20 columns Snappy makes 15 MB and Zstandard, level 1, 12.5 MB, which takes a third longer to read back;
# they take as long to write.
COMPRESSION = "snappy"


@dataclass(frozen=True)
class Part:
    """A Parquet file of ``rows`` rows, all of which came from the input file of number ``file``."""

    path: Path
    file: int
    rows: int


@dataclass(frozen=True)
class Partition:
    """Parts that are read together, in their order.

    ``repeats`` is the NumPy file, of `whitewater.tables.duplicates`, with the positions of rows that repeat an earlier
    one; None where they were not looked for.
    """

    parts: tuple[Part, ...]
    repeats: Path | None = None

    @property
    def name(self) -> str:
        """The name of the first part, for what is written of the partition."""
        return self.parts[0].path.name

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(part.rows for part in self.parts)

    def duplicates(self) -> Array:
        """Return which rows repeat an earlier one, bool (rows,)."""
        repeats = np.zeros(self.rows, bool)
        if self.repeats:
            repeats[np.load(self.repeats)] = True
        return repeats


def group_parts(parts: Sequence[Part], *, rows: int) -> list[Partition]:
    """Group parts, in their order, into partitions of at most ``rows`` rows; a larger part stands alone."""
    return [Partition(tuple(parts[start:stop])) for start, stop in ranges_of([part.rows for part in parts], rows)]


def ranges_of(sizes: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Cut sizes, in their order, into ranges that add up to at most ``most``; a larger size stands alone."""
    starts, held = [0] if sizes else [], 0
    for place, size in enumerate(sizes):
        if held and held + size > most:
            starts.append(place)
            held = 0
        held += size
    return list(pairwise([*starts, len(sizes)]))


def columns_present(partitions: Iterable[Partition], schema: pa.Schema, *, needed: Container[str]) -> pa.Schema:
    """Return the columns of a schema that any part has, or that are needed in any case."""
    parts = [part for partition in partitions for part in partition.parts]
    present = {name for part in parts for name in pq.read_schema(part.path).names}
    return pa.schema([field for field in schema if field.name in present or field.name in needed])


def write_table(table: pa.Table, path: Path, *, compression: str = COMPRESSION) -> None:
    """Write a table as a Parquet file of one row group; equal tables become equal bytes, whichever engine made them."""
    # Metadata tell of the library that the table is from, and pages end where chunks do.
    whole = table.replace_schema_metadata()
    if any(column.num_chunks != 1 for column in whole.columns):
        whole = whole.combine_chunks()
    # Differences of times take half the room of times, and half as long; what repeats is in dictionaries.
    times = [field.name for field in whole.schema if pa.types.is_timestamp(field.type)]
    write = partial(
        pq.write_table,
        whole,
        row_group_size=max(1, len(whole)),
        compression=compression,
        use_dictionary=[name for name in whole.column_names if name not in times],
        column_encoding=dict.fromkeys(times, "DELTA_BINARY_PACKED"),
        # By which a reader skips files; of other columns they would say little, as rows are in no order of theirs.
        write_statistics=times,
    )
    write_whole(path, write)


def write_lines(lines: Sequence[str], path: Path) -> None:
    """Write lines of text, those that cannot be parsed, as column ``raw_line``."""
    texts = pa.Table.from_pylist([{"raw_line": line} for line in lines], pa.schema({"raw_line": pa.string()}))
    write_table(texts, path)
