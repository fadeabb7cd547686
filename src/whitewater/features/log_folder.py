"""A log: what was shown to whom and what came of it, a row each, as a folder of Parquet files, one or more for a day.

``log.json``, written last, makes a folder a log: source, columns with role and type, what time is, files in order with
rows and day, and what was counted while it was read. These columns come first in every file:

========== ===== =====================================================================================================
column     type  what it holds
========== ===== =====================================================================================================
``row_id`` int64 number of the row over all files, ascending, each once; the same however the log is cut. The numbers
                 of lines that could not be read are left out
``day``    int32 number of the day, ascending; a file holds one. For some sources it is another span: see `LogTime`
``time``   int64 seconds since 1970 in UTC, from 1980 to 2099; or where the source knows no time the ``row_id``
``label``  int8  0 or 1, never null
========== ===== =====================================================================================================

Then come the source's own: ``continuous`` int32, int64 or float64; ``categorical`` text or int64; ``list`` lists of
text or int64; ``key`` text or int64, which identifies and is not a feature. They may be null.
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
# Seconds in which times are: numbers of another unit are nearly all outside.
SINCE, UNTIL = 315_532_800, 4_102_444_800
# Of a column and row group: half a million hexadecimal texts take 6 MB. A dictionary beyond it is given up.
_DICTIONARY_BYTES = 64 << 20


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
    """A file of a log: its name in the folder, its rows, and the day that these are of."""

    name: str
    rows: int
    day: int


@dataclass(frozen=True)
class LogTime:
    """The column of time, and what it counts: seconds, or positions in the log.

    ``period`` is what the column ``day`` numbers: days, files of the source, or periods with about equally many rows.
    """

    unit: Unit
    period: Period = "day"
    column: str = TIME


@dataclass(frozen=True)
class Log:
    """An open log; or one on its way, whose files may be written at the same time until `finish` makes it a log."""

    path: Path
    source: str  # where the log comes from
    described: tuple[LogColumn, ...]  # all columns, in the order of the files: `FIRST`, and the source's own
    time: LogTime  # the column of time
    row_group_rows: int  # rows of the row groups, of which the last of a file may have fewer
    files: tuple[LogFile, ...] = ()  # the files, ascending by day and ``row_id``; none of them is empty
    label: str = LABEL  # name of the column of labels
    # What was counted while the source was read, such as malformed lines
    counts: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def columns(self) -> dict[str, Role]:
        """Role of each column by name, in the order of the files."""
        return {each.name: each.role for each in self.described}

    @cached_property
    def types(self) -> dict[str, pa.DataType]:
        """Type of each column by name."""
        return {each.name: TYPES[each.type] for each in self.described}

    @property
    def schema(self) -> pa.Schema:
        """Names and types of all columns."""
        return pa.schema(self.types)

    @property
    def tags(self) -> dict[str, str]:
        """What the columns are for that go along with features."""
        return {self.label: "label", ROW_ID: "key"}

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(file.rows for file in self.files)

    def row_groups(self) -> list[RowGroup]:
        """Return the row groups, in the order of the rows; see `Format.row_groups`."""
        return [group for file in self.files for group in FORMAT.row_groups(self.path / file.name, rows=file.rows)]

    def file(self, name: str) -> RowGroupWriter:
        """Begin a file, which is of one day: it takes tables of all columns, in their order and of any size."""
        # Dictionaries are for all columns but those in which nearly every value is another one.
        encoded = [each for each in self.schema if each.name not in (ROW_ID, TIME) and each.type != pa.float64()]
        return RowGroupWriter(
            self.path / name,
            self.schema,
            group_rows=self.row_group_rows,
            compression="snappy",
            use_dictionary=[f"{each.name}.list.element" if pa.types.is_list(each.type) else each.name
                            for each in encoded],
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            write_statistics=[each.name for each in FIRST],
            write_page_checksum=True,
        )  # fmt: skip

    def finish(self, files: Sequence[LogFile], *, counts: Mapping[str, int] | None = None) -> Log:
        """Write the file that makes the folder a log of these files; return it.

        Raises IntegrityError if the days of the files do not ascend, or a file is empty or is named twice.
        """
        names, days = {file.name for file in files}, [file.day for file in files]
        if days != sorted(days) or len(names) < len(files) or not all(file.rows for file in files):
            raise IntegrityError(f"{self.path}: its files are empty or in no order. Report this as a bug.")
        log = replace(self, files=tuple(files), counts=dict(counts or {}))
        value = {name: value for name, value in asdict(log).items() if name != "path"}
        FORMAT.write(self.path, {"rows": log.rows, "columns": value.pop("described"), **value})
        return open_log(self.path)


def file_name(day: int, part: int = 0) -> str:
    """Return the name of a file of a day, or a part of it."""
    return f"day-{day:05d}-{part:04d}.parquet"


def open_log(path: Path) -> Log:
    """Open a log. Raises InputError if the folder is none, of another format, or lacks a file."""
    log = FORMAT.read(path, _log)
    FORMAT.check_files(path, [file.name for file in log.files])
    return log


def _log(path: Path, *, rows: int, columns: list[Any], files: list[Any], time: dict[str, Any], **described: Any) -> Log:
    own = tuple(LogColumn(**each) for each in columns)
    log = Log(path, described=own, files=tuple(LogFile(**each) for each in files), time=LogTime(**time), **described)
    if own[: len(FIRST)] != FIRST or not {each.type for each in own} <= TYPES.keys():
        raise ValueError(f"its columns are {', '.join(f'{each.name} ({each.type})' for each in own)}")
    if log.rows != rows or log.time.unit not in get_args(Unit) or log.time.period not in get_args(Period):
        raise ValueError(f"{rows} rows, time in {log.time.unit} and by {log.time.period}")
    return log
