"""A log of impressions: a row for each item shown, in a folder with one or more Parquet files per day.

``log.json``, written last, marks a folder as complete. It has the source, columns with role and type, the unit of time,
files in order with rows and day, and counts such as malformed lines. These columns come first in every file:

========== ===== =====================================================================================================
column     type  content
========== ===== =====================================================================================================
``row_id`` int64 number of the row over all files: unique, ascending, and the same however the log is split into files.
                 The numbers of unreadable lines are skipped
``day``    int32 number of the day, ascending; a file has one. For some sources it is another period: see `LogTime`
``time``   int64 seconds since 1970 in UTC, from 1980 to 2099; the ``row_id`` if the source has no time
``label``  int8  0 or 1, never null
========== ===== =====================================================================================================

The columns of the source follow, and may be null: ``continuous`` int32, int64 or float64; ``categorical`` text or
int64; ``list`` lists of text or int64; ``key`` text or int64, an identifier that is not a feature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from whitewater.errors import IntegrityError
from whitewater.io.folder import Format, RowGroup, RowGroupWriter

if TYPE_CHECKING:
    from whitewater.features.config import Role

FORMAT = Format("log.json", 2, "log")
Unit = Literal["seconds", "position"]
Period = Literal["day", "file", "period"]
ROW_ID, DAY, TIME, LABEL = "row_id", "day", "time", "label"
TYPES: Mapping[str, pa.DataType] = {
    **{name: pa.type_for_alias(name) for name in ("int8", "int32", "int64", "float64", "string")},
    "list<string>": pa.list_(pa.string()),
    "list<int64>": pa.list_(pa.int64()),
}
# Times in seconds are in this range; nearly all numbers in other units are outside.
SINCE, UNTIL = 315_532_800, 4_102_444_800


@dataclass(frozen=True)
class LogColumn:
    """A column of a log: name, role, and type by its name in `TYPES`."""

    name: str
    role: Role
    type: str


FIRST = (
    LogColumn(ROW_ID, "key", "int64"),
    LogColumn(DAY, "key", "int32"),
    LogColumn(TIME, "time", "int64"),
    LogColumn(LABEL, "label", "int8"),
)


@dataclass(frozen=True)
class LogFile:
    """A file of a log: its name in the folder, its number of rows, and their day."""

    name: str
    rows: int
    day: int


@dataclass(frozen=True)
class LogTime:
    """The column of time and its unit: seconds, or the position in the log."""

    unit: Unit
    period: Period = "day"  # what ``day`` numbers: days, files of the source, or periods of about equally many rows
    column: str = TIME


@dataclass(frozen=True)
class Log:
    """An open log, or one being written: its files may be written in parallel, and then `finish` completes it."""

    path: Path
    source: str
    log_columns: tuple[LogColumn, ...]  # in the order of the files: `FIRST`, then those of the source
    time: LogTime
    row_group_rows: int  # the last row group of a file may have fewer
    files: tuple[LogFile, ...] = ()  # ascending by day and ``row_id``; none is empty
    label: str = LABEL  # name of the column of labels
    counts: Mapping[str, int] = field(default_factory=dict)  # counted while reading, such as malformed lines

    @cached_property
    def columns(self) -> dict[str, Role]:
        """Role of each column by name, in the order of the files."""
        return {column.name: column.role for column in self.log_columns}

    @cached_property
    def types(self) -> dict[str, pa.DataType]:
        return {column.name: TYPES[column.type] for column in self.log_columns}

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(self.types)

    @property
    def tags(self) -> dict[str, str]:
        """Tags of the columns that are carried along with features."""
        return {self.label: "label", ROW_ID: "key"}

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    def row_groups(self) -> list[RowGroup]:
        """Return the row groups, in the order of the rows; see `Format.row_groups`."""
        return [group for file in self.files for group in FORMAT.row_groups(self.path / file.name, rows=file.rows)]

    def file(self, name: str) -> RowGroupWriter:
        """Open a file of one day for writing; it takes tables of any size with all columns in order."""
        # Columns with mostly distinct values get no dictionary. Half a million hexadecimal texts take 6 MB in one, and
        # Parquet gives up a larger one than its limit.
        encoded = [each for each in self.schema if each.name not in (ROW_ID, TIME) and each.type != pa.float64()]
        return RowGroupWriter(
            self.path / name,
            self.schema,
            group_rows=self.row_group_rows,
            compression="snappy",
            use_dictionary=[f"{each.name}.list.element" if pa.types.is_list(each.type) else each.name
                            for each in encoded],
            dictionary_pagesize_limit=64 << 20,
            write_statistics=[each.name for each in FIRST],
            write_page_checksum=True,
        )  # fmt: skip

    def finish(self, files: Sequence[LogFile], *, counts: Mapping[str, int] | None = None) -> Log:
        """Write ``log.json`` for these files, which completes the log, and open it."""
        names, days = {file.name for file in files}, [file.day for file in files]
        if days != sorted(days) or len(names) < len(files) or not all(file.rows for file in files):
            raise IntegrityError(f"{self.path}: its files are empty or in no order. Report this as a bug.")
        log = replace(self, files=tuple(files), counts=dict(counts or {}))
        value = {name: value for name, value in asdict(log).items() if name != "path"}
        FORMAT.write(self.path, {"rows": log.rows, "columns": value.pop("log_columns"), **value})
        return open_log(self.path)


def file_name(day: int, part: int = 0) -> str:
    """Return the name of a file with the rows of a day, or a part of them."""
    return f"day-{day:05d}-{part:04d}.parquet"


def open_log(path: Path) -> Log:
    """Open a log. Raises InputError if the folder is not one, has another format, or lacks a file."""
    log = FORMAT.read(path, _log)
    FORMAT.check_files(path, [file.name for file in log.files])
    return log


def _log(path: Path, *, rows: int, columns: list[Any], files: list[Any], time: dict[str, Any], **fields: Any) -> Log:
    log_columns, log_files = tuple(LogColumn(**each) for each in columns), tuple(LogFile(**each) for each in files)
    log = Log(path, log_columns=log_columns, files=log_files, time=LogTime(**time), **fields)
    if log_columns[: len(FIRST)] != FIRST or not {each.type for each in log_columns} <= TYPES.keys():
        raise ValueError(f"its columns are {', '.join(f'{each.name} ({each.type})' for each in log_columns)}")
    if log.rows != rows or log.time.unit not in get_args(Unit) or log.time.period not in get_args(Period):
        raise ValueError(f"{rows} rows, time in {log.time.unit} and by {log.time.period}")
    return log
