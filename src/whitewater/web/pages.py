"""A folder of pages as they were fetched: addresses, answers and bodies in Parquet, and where they come from.

===================== =================================================================================================
file                  what it holds
===================== =================================================================================================
``source.json``       format, source, number of pages, counts of what was fetched or refused, files by role, settings
``pages-00000...``    ``.parquet``, a row a page: url text (absolute), status int32 (200 where it is not known),
                      content_type text or null (the header), location text or null (where a redirect leads, absolute),
                      body binary (decoded from transfer and content encodings)
===================== =================================================================================================

Row groups hold at most `GROUP_PAGES` pages and, unless one page is larger, `GROUP_BYTES` of bodies; files at most
`FILE_GROUPS` row groups. So whoever reads or writes pages needs the memory of one row group, however many there are.
A folder of the source `edges`, which has no pages, is ``source.json`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.io.folder import Format, RowGroup, numbered, numbered_files

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FORMAT = Format("source.json", 1, "pages", remedy="Run the step fetch again.")
SCHEMA = pa.schema(
    [
        pa.field("url", pa.string(), nullable=False),
        pa.field("status", pa.int32(), nullable=False),
        pa.field("content_type", pa.string()),
        pa.field("location", pa.string()),
        pa.field("body", pa.binary(), nullable=False),
    ]
)
REDIRECTS = frozenset({301, 302, 303, 307, 308})
GROUP_PAGES = 1000
GROUP_BYTES = 16_000_000
FILE_GROUPS = 16
# Larger bodies are not pages (films, images of disks): sources count them as too_large and leave them out.
LARGEST_BODY = 64_000_000


@dataclass(frozen=True)
class Page:
    """An answer to a request for a page."""

    url: str
    status: int
    content_type: str | None
    location: str | None
    body: bytes


@dataclass(frozen=True)
class PagesFolder:
    """An open folder of pages; the fields are those of ``source.json``."""

    path: Path
    source: str
    pages: int
    counts: dict[str, int]
    files: dict[str, list[str]]
    settings: dict[str, Any]

    def row_groups(self) -> list[RowGroup]:
        """Return the row groups, in the order of the pages; see `Format.row_groups`."""
        return FORMAT.row_groups(*page_files(self.path), folder=self.path, rows=self.pages)

    def read(self, group: RowGroup) -> list[Page]:
        """Return the pages of one of the `row_groups`. Raises InputError if they cannot be read."""
        with FORMAT.explained(group.path):
            return [Page(**row) for row in FORMAT.read_group(group, SCHEMA.names).to_pylist()]


def open_pages(path: Path) -> PagesFolder:
    """Open a folder of pages. Raises InputError if it is not one, or of another format."""
    return FORMAT.read(path, PagesFolder)


def page_files(path: Path) -> list[Path]:
    """Return the files of pages in a folder, in the order of the pages."""
    return numbered_files(path, "pages")


class PagesWriter:
    """Writes a folder of pages, a row group at a time; a context manager, which closes what an error left open.

    ::

        with PagesWriter(path) as writer:
            writer.add(page)
            writer.finish(source="html", counts={"pages": writer.pages})
    """

    def __init__(self, path: Path) -> None:
        """Make the folder, which may exist, but must not hold pages."""
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.pages = 0
        self._waiting: list[Page] = []
        self._bytes = 0
        self._file: pq.ParquetWriter | None = None
        self._files = 0
        self._groups = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_file()

    def add(self, page: Page) -> None:
        """Add a page; what is not Unicode in its texts (lone surrogates) is stored as question marks."""
        if self._waiting and self._bytes + len(page.body) > GROUP_BYTES:
            self._write_group()
        self._waiting.append(page)
        self._bytes += len(page.body)
        self.pages += 1
        if len(self._waiting) == GROUP_PAGES:
            self._write_group()

    def close(self) -> None:
        """Write what is waiting and close the file; further pages go to another one."""
        if self._waiting:
            self._write_group()
        self._close_file()

    def take(self, part: Path, *, left_out: npt.NDArray[np.bool_]) -> None:
        """Move the pages of another writer, which is closed, to the end of this folder, and remove the other one.

        Of its pages, some are ``left_out``, bool (pages,); files without any of them are moved as they are.
        """
        self.close()
        start = 0
        for path in page_files(part):
            mask = left_out[start : start + FORMAT.footer(path).num_rows]
            start += len(mask)
            self.pages += int((~mask).sum())
            if not mask.any():
                path.rename(self._next_path())
                continue
            if not mask.all():
                _copy_without(path, mask, self._next_path())
            path.unlink()
        part.rmdir()

    def finish(
        self,
        *,
        source: str,
        counts: Mapping[str, int] | None = None,
        files: Mapping[str, Sequence[str]] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> PagesFolder:
        """Close the last file, and write the one that makes the folder one of pages."""
        self.close()
        described = {"source": source, "pages": self.pages, "counts": counts or {}, "files": files or {}}
        FORMAT.write(self.path, {**described, "settings": settings or {}})
        return open_pages(self.path)

    def _write_group(self) -> None:
        if self._file is None:
            self._file = _created(self._next_path())
        # `status` and `body` need no repair, and pass through.
        arrays = [pa.array([_storable(getattr(page, field.name)) for page in self._waiting], field.type)
                  for field in SCHEMA]  # fmt: skip
        self._file.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), row_group_size=len(self._waiting))
        self._waiting, self._bytes = [], 0
        self._groups += 1
        if self._groups == FILE_GROUPS:
            self._close_file()

    def _next_path(self) -> Path:
        path = numbered(self.path, "pages", self._files)
        self._files += 1
        return path

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._groups = None, 0


def _created(path: Path) -> pq.ParquetWriter:
    # Bodies differ from each other: a dictionary or bounds of them would only cost time and room.
    dictionary = ["status", "content_type"]
    return pq.ParquetWriter(path, SCHEMA, compression="zstd", use_dictionary=dictionary, write_statistics=["status"])


def _copy_without(path: Path, left_out: npt.NDArray[np.bool_], copy: Path) -> None:
    start = 0
    with _created(copy) as writer:
        for group in FORMAT.row_groups(path):
            rows = FORMAT.read_group(group).filter(pa.array(~left_out[start : start + group.rows]))
            start += group.rows
            if len(rows):
                writer.write_table(rows)


def _storable(value: str | int | bytes | None) -> str | int | bytes | None:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
