"""A log: what was shown to whom and what came of it, a row each, as a folder of Parquet files, one or more for a day.

``log.json``, written last, makes a folder a log: source, columns with role and type, what time is, files in order with
rows and day, and what was counted while it was read. These columns come first in every file:

========== ===== =====================================================================================================
column     type  what it holds
========== ===== =====================================================================================================
``row_id`` int64 number of the row over all files, ascending, each once; the same however the log is cut. The numbers
                 of lines that could not be read are left out
``day``    int32 number of the day, ascending; a file holds one. Of some sources it is no day, but what `LogTime` says
``time``   int64 seconds since 1970 in UTC, from 1980 to 2099; or where the source knows no time the ``row_id``
``label``  int8  0 or 1, never null
========== ===== =====================================================================================================

Then come the source's own: ``continuous`` int32, int64 or float64; ``categorical`` text or int64; ``list`` lists of
text or int64; ``key`` text or int64, which identifies and is no feature. They may be null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import InputError, IntegrityError
from whitewater.store import read_json, write_json

if TYPE_CHECKING:
    from whitewater.config.recsys import Role

FORMAT = 2
Unit = Literal["seconds", "position"]
Period = Literal["day", "file", "period"]
ROW_ID, DAY, TIME, LABEL = "row_id", "day", "time", "label"
TYPES: Mapping[str, pa.DataType] = {
    "int8": pa.int8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "list<string>": pa.list_(pa.string()),
    "list<int64>": pa.list_(pa.int64()),
}
# Seconds in which times are: numbers of another unit are nearly all outside.
SINCE, UNTIL = 315_532_800, 4_102_444_800
_REPAIR = "Run the step that writes it again."
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

    column: str
    unit: Unit
    period: Period


@dataclass(frozen=True)
class Log:
    """An open log.

    Attributes
    ----------
    path
        The folder.
    source
        Where the log comes from.
    columns
        Role of each column by name, in the order of the files.
    types
        Type of each column by name.
    files
        The files, ascending by day and ``row_id``; none of them is empty.
    rows
        Rows of all files.
    label
        Name of the column of labels.
    time
        The column of time.
    row_group_rows
        Rows of the row groups, of which the last of a file may have fewer.
    counts
        What was counted while the source was read, such as malformed lines.
    """

    path: Path
    source: str
    described: tuple[LogColumn, ...]
    files: tuple[LogFile, ...]
    label: str
    time: LogTime
    row_group_rows: int
    counts: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def columns(self) -> dict[str, Role]:
        return {each.name: each.role for each in self.described}

    @cached_property
    def types(self) -> dict[str, pa.DataType]:
        return {each.name: TYPES[each.type] for each in self.described}

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    def row_groups(self) -> list[tuple[Path, int, int]]:
        """Return file, number and rows of each row group, in the order of the rows.

        Raises
        ------
        InputError
            If a file is missing, or none of Parquet.
        IntegrityError
            If a file has other rows than it should have.
        """
        found: list[tuple[Path, int, int]] = []
        for file in self.files:
            path = self.path / file.name
            footer = footer_of(path)
            if footer.num_rows != file.rows:
                raise IntegrityError(f"{path} has {footer.num_rows} rows, not {file.rows}. {_REPAIR}")
            found += [(path, group, footer.row_group(group).num_rows) for group in range(footer.num_row_groups)]
        return found


class LogFileWriter:
    """A file of a log on its way: tables of any size become row groups of one size. Use `LogWriter.file`."""

    def __init__(self, writer: pq.ParquetWriter, *, name: str, day: int, row_group_rows: int) -> None:
        self._writer, self._name, self._day, self._size = writer, name, day, row_group_rows
        self._waiting: list[pa.Table] = []
        self._rows = self._written = 0

    @property
    def file(self) -> LogFile:
        """Name, rows and day of the file as it is now."""
        return LogFile(self._name, self._rows, self._day)

    def write(self, table: pa.Table) -> None:
        """Append rows: the columns of the log, in their order."""
        self._waiting.append(table)
        self._rows += table.num_rows
        if self._rows - self._written >= self._size:
            self._write((self._rows - self._written) // self._size * self._size)

    def finish(self) -> None:
        """Write the rows that are left."""
        if self._rows > self._written:
            self._write(self._rows - self._written)

    def _write(self, rows: int) -> None:
        waiting = pa.concat_tables(self._waiting)
        self._writer.write_table(waiting.slice(0, rows), row_group_size=self._size)
        self._written += rows
        self._waiting = [waiting.slice(rows)]


@dataclass(frozen=True)
class LogWriter:
    """A log on its way. Files may be written at the same time; `finish` makes the folder a log.

    Attributes
    ----------
    path
        The folder, which is made.
    source
        Where the log comes from.
    columns
        The source's own columns, without `FIRST`.
    unit
        What time counts.
    row_group_rows
        Rows of a row group.
    period
        What the column ``day`` numbers.
    """

    path: Path
    source: str
    columns: tuple[LogColumn, ...]
    unit: Unit
    row_group_rows: int
    period: Period = "day"

    @property
    def described(self) -> tuple[LogColumn, ...]:
        """All columns."""
        return (*FIRST, *self.columns)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of all columns."""
        return pa.schema([(each.name, TYPES[each.type]) for each in self.described])

    @contextmanager
    def file(self, name: str, *, day: int) -> Iterator[LogFileWriter]:
        """Begin a file, which is of one day; see `file_name`."""
        self.path.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(
            self.path / name,
            self.schema,
            compression="snappy",
            use_dictionary=[_leaf(self.schema, name) for name in self._encoded],
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            write_statistics=[each.name for each in FIRST],
            write_page_checksum=True,
        ) as writer:
            file = LogFileWriter(writer, name=name, day=day, row_group_rows=self.row_group_rows)
            yield file
            file.finish()

    @property
    def _encoded(self) -> list[str]:
        """The columns with dictionaries: not those in which nearly every value is another one."""
        return [each.name for each in self.schema if each.name not in (ROW_ID, TIME) and each.type != pa.float64()]

    def finish(self, files: Sequence[LogFile], *, counts: Mapping[str, int] | None = None) -> Log:
        """Write the file that makes the folder a log.

        Raises
        ------
        IntegrityError
            If the days of the files do not ascend, or a file is empty or is named twice.
        """
        names = [file.name for file in files]
        days = [file.day for file in files]
        if days != sorted(days) or len(set(names)) < len(names) or not all(file.rows for file in files):
            raise IntegrityError(f"{self.path}: its files are empty or in no order. Report this as a bug.")
        self.path.mkdir(parents=True, exist_ok=True)
        described: dict[str, Any] = {
            "format": FORMAT,
            "source": self.source,
            "rows": sum(file.rows for file in files),
            "columns": [asdict(each) for each in self.described],
            "label": LABEL,
            "time": {"column": TIME, "unit": self.unit, "period": self.period},
            "row_group_rows": self.row_group_rows,
            "files": [asdict(file) for file in files],
            "counts": dict(counts or {}),
        }
        write_json(self.path / "log.json", described)
        return open_log(self.path)


def file_name(day: int, part: int = 0) -> str:
    """Return the name of a file of a day, or a part of it."""
    return f"day-{day:05d}-{part:04d}.parquet"


def like(log: Log, path: Path) -> LogWriter:
    """Return a writer of a log with the columns of another one."""
    own = log.described[len(FIRST) :]
    return LogWriter(path, log.source, own, log.time.unit, log.row_group_rows, log.time.period)


def is_log(path: Path) -> bool:
    """Say whether a folder is a log, be it a damaged one."""
    return (path / "log.json").exists()


def open_log(path: Path) -> Log:
    """Open a log.

    Raises
    ------
    InputError
        If the folder is none, of another format, or lacks a file.
    """
    found = read_json(path / "log.json")
    version = found.get("format") if isinstance(found, dict) else None
    if version != FORMAT:
        raise InputError(f"{path} has format {version}; this version reads {FORMAT}. Make it again.")
    try:
        log = _described(path, found)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}/log.json describes no log: {error!r}. Make it again.") from error
    for file in log.files:
        if not (path / file.name).is_file():
            raise InputError(f"{path} lacks {file.name}. {_REPAIR}")
    return log


def footer_of(path: Path) -> pq.FileMetaData:
    """Return the footer of a Parquet file. Raises InputError if it is none, or is not there."""
    with explained(path), pq.ParquetFile(path) as file:
        return file.metadata


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what is wrong with a file of a log into an InputError."""
    try:
        yield
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}. {_REPAIR}") from error


def _described(path: Path, found: Mapping[str, Any]) -> Log:
    columns = tuple(LogColumn(**each) for each in found["columns"])
    files = tuple(LogFile(**each) for each in found["files"])
    unknown = [each.type for each in columns if each.type not in TYPES]
    if unknown or columns[: len(FIRST)] != FIRST:
        raise ValueError(f"its columns are {', '.join(f'{each.name} ({each.type})' for each in columns)}")
    if any(Path(file.name).name != file.name for file in files):
        raise ValueError("a file is not in the folder")
    time = LogTime(**found["time"])
    known = time.unit in get_args(Unit) and time.period in get_args(Period)
    if not known or found["rows"] != sum(file.rows for file in files):
        raise ValueError(f"{found['rows']} rows, time in {time.unit} and by {time.period}")
    return Log(path, found["source"], columns, files, found["label"], time, found["row_group_rows"], found["counts"])


def _leaf(schema: pa.Schema, name: str) -> str:
    """Return the path by which Parquet knows the values of a column."""
    return f"{name}.list.element" if pa.types.is_list(schema.field(name).type) else name
