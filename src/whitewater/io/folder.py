"""Folders that one step writes and another reads: data files and, written last, a JSON file that describes them."""

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
from whitewater.io.store import (
    check_format,
    json_bytes,
    read_json,
    remove_unfinished,
    unfinished_path,
    write_atomically,
    write_json,
)

Folder = TypeVar("Folder")


class RowGroup(NamedTuple):
    """A row group of a Parquet file: the file, its number there, and its rows."""

    path: Path
    number: int
    rows: int


@dataclass(frozen=True)
class Files:
    """Files that a step writes. ``remedy`` is the sentence that ends all messages about them."""

    remedy: str = field(default="Run the step that writes it again.", kw_only=True)

    @contextmanager
    def explain_errors(self, path: Path) -> Iterator[None]:
        """Raise an InputError for errors of reading a file."""
        try:
            yield
        except (OSError, KeyError, ValueError, pa.ArrowException) as error:
            raise InputError(f"{path} cannot be read: {error}. {self.remedy}") from error

    def check_rows(self, path: Path, rows: int, expected: int) -> None:
        """Raise IntegrityError if a file or a folder does not have the expected number of rows."""
        if rows != expected:
            raise IntegrityError(f"{path} has {rows} rows, not {expected}. {self.remedy}")

    def table(self, path: Path, columns: Sequence[str] | None = None, *, rows: int | None = None) -> pa.Table:
        """Read a Parquet file. Raises InputError if that fails, and IntegrityError unless it has ``rows`` rows."""
        with self.explain_errors(path):
            table = pq.read_table(path, columns=columns)
        if rows is not None:
            self.check_rows(path, table.num_rows, rows)
        return table

    def array(self, path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.memmap[Any, Any]:
        """Map a ``.npy`` file. Raises InputError if it is unreadable, IntegrityError if shape, type or order differ."""
        with self.explain_errors(path):
            array = np.lib.format.open_memmap(path, mode="r")
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            order = "" if array.flags.c_contiguous else ", column by column"
            raise IntegrityError(
                f"{path} holds {array.dtype} {array.shape}{order}, not {np.dtype(dtype)} {shape}. {self.remedy}"
            )
        return array

    def footer(self, path: Path) -> pq.FileMetaData:
        """Return the footer of a Parquet file."""
        with self.explain_errors(path):
            return pq.read_metadata(path)

    def row_groups(self, *files: Path, folder: Path | None = None, rows: int | None = None) -> list[RowGroup]:
        """Return the row groups of Parquet files, in order; errors name the ``folder`` or the first file.

        Raises IntegrityError if they do not have ``rows`` rows in total.
        """
        groups = [
            RowGroup(path, number, footer.row_group(number).num_rows)
            for path, footer in zip(files, map(self.footer, files), strict=True)
            for number in range(footer.num_row_groups)
        ]
        if rows is not None:
            self.check_rows(folder or files[0], sum(group.rows for group in groups), rows)
        return groups

    def read_group(self, group: RowGroup, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a row group. Raises InputError if it cannot be read or lacks a column."""
        with self.explain_errors(group.path), pq.ParquetFile(group.path) as file:
            if missing := sorted(set(columns or ()) - set(file.schema_arrow.names)):
                raise ValueError(f"it has no column {', '.join(missing)}")
            table = file.read_row_group(group.number, columns=columns)
            return table if columns is None else table.select(columns)

    def stored_bytes(self, groups: Sequence[RowGroup]) -> list[int]:
        """Return the uncompressed bytes of row groups."""
        footers = {path: self.footer(path) for path in {group.path for group in groups}}
        return [footers[group.path].row_group(group.number).total_byte_size for group in groups]


@dataclass(frozen=True)
class Format(Files):
    """A format of folders."""

    name: str  # the JSON file that describes the folder
    version: int
    what: str  # the contents of such a folder, in a word or two

    def write(self, path: Path, description: Mapping[str, Any]) -> None:
        """Write the file that describes a folder, which completes it."""
        remove_unfinished(path)
        write_json(path / self.name, {"format": self.version, **description})

    def read(self, path: Path, make: Callable[..., Folder]) -> Folder:
        """Return ``make`` of a folder's path and, as keywords, its description. Raises InputError for other formats."""
        description = read_json(path / self.name)
        self.check_version(path, description.pop("format", None) if isinstance(description, dict) else None)
        try:
            return make(path, **description)
        except (ConfigError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path / self.name} describes no {self.what}: {error!r}. {self.remedy}") from error

    def check_version(self, path: Path, version: object, *, writer: str = "") -> None:
        """Raise InputError if a folder has another version; ``writer`` is the version that wrote it, if known."""
        check_format(path, version, self.version, remedy=self.remedy, writer=writer)

    def check_files(self, path: Path, names: Iterable[str]) -> None:
        """Raise InputError if a file of the description is missing, or in another folder."""
        for name in names:
            if Path(name).name != name:
                raise InputError(f"{path / self.name} names {name!r}: a file is not in the folder. {self.remedy}")
            if not (path / name).is_file():
                raise InputError(f"{path} lacks {name}. {self.remedy}")

    def write_signed(self, path: Path, description: Mapping[str, Any], files: Mapping[str, str]) -> None:
        """Write the file that describes a folder, with the SHA-256 of the other files and of itself."""
        value = {"format": self.version, "whitewater": whitewater.__version__, **description, "files": files}
        write_json(path / self.name, {**value, "sha256": _sha256(json_bytes(value))})

    def read_signed(self, path: Path) -> Any:
        """Check every byte of a signed folder, and return its description.

        Raises InputError if a file is missing or has another version, and IntegrityError if a byte has changed.
        """
        try:
            data = (path / self.name).read_bytes()
        except OSError as error:
            raise InputError(f"{path} holds no {self.what}: {error}. {self.remedy}") from error
        try:
            value = json.loads(data)
            version, canonical = value["format"], json_bytes(value) + b"\n"
            is_intact = value.pop("sha256") == _sha256(json_bytes(value)) and data == canonical
        except (ValueError, RecursionError, AttributeError, TypeError, KeyError) as error:
            raise self._damage(path / self.name, f"it is not the JSON of a {self.what} ({error!r})") from error
        # Older versions may have been signed differently.
        if is_intact or (isinstance(version, int) and version < self.version):
            self.check_version(path, version, writer=f" ({value.get('whitewater')})")
        if not is_intact:
            raise self._damage(path / self.name, "its checksum does not match its contents")
        for name in value.get("files", ()):
            self.read_file(path, name, value["files"])
        return value

    def read_file(self, path: Path, name: str, files: Mapping[str, str]) -> bytes:
        """Return the bytes of a file of a signed folder, after checking them."""
        if name not in files or Path(name).is_absolute() or ".." in Path(name).parts:
            raise IntegrityError(f"{path / self.name} names the file {name!r}, which is not its own. {self.remedy}")
        try:
            data = (path / name).read_bytes()
        except OSError as error:
            raise InputError(f"{path / name} is missing or cannot be read: {error}. {self.remedy}") from error
        if _sha256(data) != files[name]:
            raise self._damage(path / name, f"its checksum is not the one in {self.name}")
        return data

    def _damage(self, path: Path, problem: str) -> IntegrityError:
        return IntegrityError(f"{path} was changed or cut off: {problem}. {self.remedy}")


@dataclass(frozen=True, kw_only=True)
class PartsFormat(Format):
    """A format of numbered Parquet files of one ``schema``, with at most ``group_rows`` rows in a row group."""

    schema: pa.Schema
    group_rows: int
    options: Mapping[str, Any] = field(default_factory=dict)  # of `pyarrow.parquet.write_table`

    def parts(self, path: Path) -> list[RowGroup]:
        """Return the row groups of a folder. Raises as `read` and `row_groups` do."""
        rows = self.read(path, lambda _, **description: int(description[self.what]))
        return self.row_groups(*numbered_files(path, self.what), folder=path, rows=rows)

    def tables(self, path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a folder, a row group at a time."""
        return (self.read_group(group, columns) for group in self.parts(path))

    def write_part(self, path: Path, number: int, table: pa.Table) -> None:
        """Write file ``number`` of a folder; a repeated write is harmless."""
        file = numbered_path(path, self.what, number)
        write_table(table.cast(self.schema), file, group_rows=self.group_rows, **self.options)

    def move_part(self, file: Path, path: Path, number: int, kept: npt.NDArray[np.bool_]) -> None:
        """Move the ``kept`` rows of a file to file ``number`` of a folder; without any, there is no such file."""
        if not kept.all():
            if kept.any():
                self.write_part(path, number, self.table(file).filter(pa.array(kept)))
        elif len(kept) and file.exists():
            file.replace(numbered_path(path, self.what, number))

    def finish(self, path: Path, rows: int, **description: Any) -> None:
        """Write the file that describes the folder, and check that the folder has ``rows`` rows."""
        self.write(path, {self.what: rows, **description})
        self.parts(path)


class RowGroupWriter:
    """Context manager that writes tables of any size to a Parquet file in row groups of equal size.

    Options are those of `pyarrow.parquet.ParquetWriter`. Without rows, no file is written. A file appears when it is
    whole, so that a task that runs twice cannot leave a partial one.
    """

    def __init__(self, path: Path, schema: pa.Schema, *, group_rows: int, **options: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.rows = 0
        self.path, self.schema, self._size, self._options = path, schema, group_rows, options
        self._buffer: list[pa.Table] = []
        self._written_rows = 0
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """Append rows; they are buffered until a row group is full."""
        self._buffer.append(table)
        self.rows += table.num_rows
        if self.rows - self._written_rows >= self._size:
            self._flush((self.rows - self._written_rows) // self._size * self._size)

    def _flush(self, rows: int) -> None:
        buffer = pa.concat_tables(self._buffer)
        if self._writer is None:
            self._writer = pq.ParquetWriter(unfinished_path(self.path), self.schema, **self._options)
        self._writer.write_table(buffer.slice(0, rows), row_group_size=self._size)
        self._written_rows += rows
        self._buffer = [buffer.slice(rows)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self.rows > self._written_rows:
            self._flush(self.rows - self._written_rows)
        if self._writer is not None:
            self._writer.close()
            if kind is None:
                unfinished_path(self.path).replace(self.path)


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open a user's Parquet file. Raises InputError if it is not one, or is truncated."""
    try:
        return pq.ParquetFile(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a whole Parquet file: {error}. Get it again, or leave it out.") from error


def numbered_path(path: Path, stem: str, number: int) -> Path:
    """Return the path of a numbered file of a folder, such as ``documents-00000.parquet``."""
    return path / f"{stem}-{number:05d}.parquet"


def numbered_files(path: Path, stem: str) -> list[Path]:
    """Return the numbered files of a folder, sorted by number."""
    return sorted(path.glob(f"{stem}-*.parquet"), key=lambda file: int(file.stem.rpartition("-")[2]))


def write_table(table: pa.Table, path: Path, *, group_rows: int, **options: Any) -> None:
    """Write a Parquet file atomically."""
    write_atomically(path, partial(pq.write_table, table, row_group_size=group_rows, compression="zstd", **options))


def write_file(path: Path, data: bytes | memoryview) -> str:
    """Write a file, create its folder if missing, and return the SHA-256 in hexadecimal."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return _sha256(data)


def _sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
