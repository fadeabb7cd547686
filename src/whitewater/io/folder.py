"""Folders that one step writes and another reads: data files, and a file of JSON that describes them, written last.

A `Format` has a name and a version. Its errors are the same for all formats: a folder is missing or of another version;
a file is missing, cut, of another size, or changed.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import whitewater
from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.io.store import check_format, json_bytes, read_json, write_json, write_whole

Folder = TypeVar("Folder")


class RowGroup(NamedTuple):
    """A row group of a Parquet file: the file, its number there, and its rows."""

    path: Path
    number: int
    rows: int


@dataclass(frozen=True)
class Files:
    """Files that a step writes. ``remedy`` is a sentence: what to do where one of them cannot be used."""

    remedy: str = field(default="Run the step that writes it again.", kw_only=True)

    @contextmanager
    def explained(self, path: Path) -> Iterator[None]:
        """Turn what is wrong with a file into an InputError."""
        try:
            yield
        except (OSError, KeyError, ValueError, pa.ArrowException) as error:
            raise InputError(f"{path} cannot be read: {error}. {self.remedy}") from error

    def check_rows(self, path: Path, found: int, rows: int) -> None:
        """Raise IntegrityError if a file or a folder has other rows than it should have."""
        if found != rows:
            raise IntegrityError(f"{path} has {found} rows, not {rows}. {self.remedy}")

    def table(self, path: Path, columns: Sequence[str] | None = None, *, rows: int | None = None) -> pa.Table:
        """Read a Parquet file. Raises InputError if that fails, and IntegrityError if it has not so many rows."""
        with self.explained(path):
            table = pq.read_table(path, columns=columns)
        if rows is not None:
            self.check_rows(path, table.num_rows, rows)
        return table

    def array(self, path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.memmap[Any, Any]:
        """Map a ``.npy`` file, read-only.

        Raises InputError if it is missing, cut, or not an array, and IntegrityError if it is an array of another shape,
        type or order.
        """
        with self.explained(path):
            array = np.lib.format.open_memmap(path, mode="r")
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            order = "" if array.flags.c_contiguous else ", column by column"
            raise IntegrityError(
                f"{path} holds {array.dtype} {array.shape}{order}, not {np.dtype(dtype)} {shape}. {self.remedy}"
            )
        return array

    def footer(self, path: Path) -> pq.FileMetaData:
        """Return the footer of a Parquet file."""
        with self.explained(path):
            return pq.read_metadata(path)

    def row_groups(self, *files: Path, folder: Path | None = None, rows: int | None = None) -> list[RowGroup]:
        """Return the row groups of Parquet files, in their order.

        Raises IntegrityError, which names the ``folder`` or the only file, if they do not have ``rows`` together.
        """
        groups: list[RowGroup] = []
        for path in files:
            footer = self.footer(path)
            groups += [RowGroup(path, number, footer.row_group(number).num_rows)
                       for number in range(footer.num_row_groups)]  # fmt: skip
        if rows is not None:
            self.check_rows(folder or files[0], sum(group.rows for group in groups), rows)
        return groups

    def read_group(self, group: RowGroup, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a row group. Raises InputError if it cannot be read or lacks a column."""
        with self.explained(group.path), pq.ParquetFile(group.path) as file:
            lacking = sorted(set(columns or ()) - set(file.schema_arrow.names))
            if lacking:
                raise ValueError(f"it has no column {', '.join(lacking)}")
            table = file.read_row_group(group.number, columns=None if columns is None else list(columns))
            return table if columns is None else table.select(columns)

    def stored_bytes(self, groups: Sequence[RowGroup]) -> list[int]:
        """Return the bytes of row groups, not compressed."""
        footers = {path: self.footer(path) for path in {group.path for group in groups}}
        return [footers[group.path].row_group(group.number).total_byte_size for group in groups]


@dataclass(frozen=True)
class Format(Files):
    """A format of folders."""

    name: str  # the file of JSON that makes a folder one of this format
    version: int  # the version that is written and read
    what: str  # what such a folder holds, in a word or two

    def write(self, path: Path, described: Mapping[str, Any]) -> None:
        """Write the file that makes a folder one of this format."""
        write_json(path / self.name, {"format": self.version, **described})

    def read(self, path: Path, made_of: Callable[..., Folder]) -> Folder:
        """Return what ``made_of`` makes of the folder's path and, as keywords, of the description.

        Raises InputError if the folder is not of this format, or of another version of it.
        """
        described = read_json(path / self.name)
        self.check_version(path, described.pop("format", None) if isinstance(described, dict) else None)
        try:
            return made_of(path, **described)
        except (ConfigError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path / self.name} describes no {self.what}: {error!r}. {self.remedy}") from error

    def check_version(self, path: Path, version: object, *, writer: str = "") -> None:
        """Raise InputError if a folder is of another version; ``writer`` is what wrote it, if that is known."""
        check_format(path, version, self.version, remedy=self.remedy, writer=writer)

    def check_files(self, path: Path, names: Iterable[str]) -> None:
        """Raise InputError if a file that is described is not there, or lies elsewhere."""
        for name in names:
            if Path(name).name != name:
                raise InputError(f"{path / self.name} names {name!r}: a file is not in the folder. {self.remedy}")
            if not (path / name).is_file():
                raise InputError(f"{path} lacks {name}. {self.remedy}")

    def write_signed(self, path: Path, described: Mapping[str, Any], files: Mapping[str, str]) -> None:
        """Write the file that makes a folder one of this format, with the SHA-256 of the other files and its own."""
        value = {"format": self.version, "whitewater": whitewater.__version__, **described, "files": files}
        write_json(path / self.name, {**value, "sha256": sha256(json_bytes(value))})

    def read_signed(self, path: Path) -> Any:
        """Return what a signed folder describes, after every byte of all its files was checked.

        Raises InputError if a file is not there or of another version, and IntegrityError if a byte has changed.
        """
        try:
            data = (path / self.name).read_bytes()
        except OSError as error:
            raise InputError(f"{path} holds no {self.what}: {error}. {self.remedy}") from error
        try:
            value = json.loads(data)
            version, whole = value["format"], json_bytes(value) + b"\n"
            signed = value.pop("sha256") == sha256(json_bytes(value)) and data == whole
        except (ValueError, RecursionError, AttributeError, TypeError, KeyError) as error:
            raise self._damaged(path / self.name, f"it is not the JSON of a {self.what} ({error!r})") from error
        # Older versions may have been signed in another way.
        if signed or (isinstance(version, int) and version < self.version):
            self.check_version(path, version, writer=f" ({value.get('whitewater')})")
        if not signed:
            raise self._damaged(path / self.name, "its checksum is not that of what it holds")
        for name in value.get("files", ()):
            self.read_file(path, name, value["files"])
        return value

    def read_file(self, path: Path, name: str, files: Mapping[str, str]) -> bytes:
        """Return the bytes of a file of a signed folder."""
        if name not in files or Path(name).is_absolute() or ".." in Path(name).parts:
            raise IntegrityError(f"{path / self.name} names the file {name!r}, which is not its own. {self.remedy}")
        try:
            data = (path / name).read_bytes()
        except OSError as error:
            raise InputError(f"{path / name} is missing or cannot be read: {error}. {self.remedy}") from error
        if sha256(data) != files[name]:
            raise self._damaged(path / name, f"its checksum is not that in {self.name}")
        return data

    def _damaged(self, path: Path, how: str) -> IntegrityError:
        return IntegrityError(f"{path} was changed or cut off: {how}. {self.remedy}")


@dataclass(frozen=True, kw_only=True)
class PartsFormat(Format):
    """A format of numbered files of one ``schema``, whose row groups have at most ``group_rows`` rows."""

    schema: pa.Schema
    group_rows: int
    options: Mapping[str, Any] = field(default_factory=dict)  # of `pyarrow.parquet.write_table`

    def parts(self, path: Path) -> list[RowGroup]:
        """Open a folder; return its row groups. Raises as `Format.read` and `Format.row_groups`."""
        rows = self.read(path, lambda _, **found: int(found[self.what]))
        return self.row_groups(*numbered_files(path, self.what), folder=path, rows=rows)

    def tables(self, path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a folder, a row group at a time."""
        return (self.read_group(group, columns) for group in self.parts(path))

    def write_part(self, path: Path, number: int, table: pa.Table) -> None:
        """Write file ``number`` of a folder; if the same is written twice, the same is there."""
        place = numbered(path, self.what, number)
        write_table(table.cast(self.schema), place, group_rows=self.group_rows, **self.options)

    def move_part(self, file: Path, path: Path, number: int, kept: npt.NDArray[np.bool_]) -> None:
        """Make a file, or its rows that are ``kept``, file ``number`` of a folder; if none is, there is no file."""
        if not kept.all():
            if kept.any():
                self.write_part(path, number, self.table(file).filter(pa.array(kept)))
        elif len(kept) and file.exists():
            file.replace(numbered(path, self.what, number))

    def finish(self, path: Path, rows: int, **described: Any) -> None:
        """Write the file that makes the folder one of this format, and check that it has so many rows."""
        self.write(path, {self.what: rows, **described})
        self.parts(path)


class RowGroupWriter:
    """Writes a Parquet file of tables of any size in row groups of one size; a context manager.

    Options are those of `pyarrow.parquet.ParquetWriter`. Without rows, no file is written.
    """

    def __init__(self, path: Path, schema: pa.Schema, *, group_rows: int, **options: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.rows = 0
        self.path, self.schema, self._size, self._options = path, schema, group_rows, options
        self._waiting: list[pa.Table] = []
        self._written = 0
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """Append rows, which are kept until a row group is full."""
        self._waiting.append(table)
        self.rows += table.num_rows
        if self.rows - self._written >= self._size:
            self._write((self.rows - self._written) // self._size * self._size)

    def _write(self, rows: int) -> None:
        waiting = pa.concat_tables(self._waiting)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self.path, self.schema, **self._options)
        self._writer.write_table(waiting.slice(0, rows), row_group_size=self._size)
        self._written += rows
        self._waiting = [waiting.slice(rows)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self.rows > self._written:
            self._write(self.rows - self._written)
        if self._writer is not None:
            self._writer.close()


def open_parquet(path: Path) -> pq.ParquetFile:
    """Return a Parquet file that a user gave; raises InputError if it is not one, or cut off."""
    try:
        return pq.ParquetFile(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a whole Parquet file: {error}. Get it again, or leave it out.") from error


def numbered(path: Path, stem: str, number: int) -> Path:
    """Return the path of a numbered file of a folder, such as ``documents-00000.parquet``."""
    return path / f"{stem}-{number:05d}.parquet"


def numbered_files(path: Path, stem: str) -> list[Path]:
    """Return the numbered files of a folder, in the order of their numbers."""
    return sorted(path.glob(f"{stem}-*.parquet"), key=lambda file: int(file.stem.rpartition("-")[2]))


def write_table(table: pa.Table, path: Path, *, group_rows: int, **options: Any) -> None:
    """Write a file at once; see `write_whole`."""
    write_whole(path, partial(pq.write_table, table, row_group_size=group_rows, compression="zstd", **options))


def write_file(path: Path, data: bytes | memoryview) -> str:
    """Write a file, make its folder if need be, and return the SHA-256."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return sha256(data)


def sha256(data: bytes | memoryview) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
