"""A folder of pages as they were fetched: addresses, answers and bodies in Parquet, and where they come from.

===================== =================================================================================================
file                  what it holds
===================== =================================================================================================
``source.json``       format, source, number of pages, counts of what was fetched or refused, files by role, settings
``pages-00000...``    ``.parquet``, a row a page: url text (absolute), status int32 (200 where it is not known),
                      content_type text or null (the header), location text or null (where a redirect leads, absolute),
                      body binary (decoded from transfer and content encodings)
===================== =================================================================================================

A file is one row group of at most `GROUP_PAGES` pages and, unless one page is larger, `GROUP_BYTES` of bodies. So
whoever reads or writes pages needs the memory of one file, however many there are. A folder of the source `edges`,
which has no pages, is ``source.json`` alone.
"""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.io.folder import PartsFormat, RowGroup, numbered_files

GROUP_PAGES = 1000
GROUP_BYTES = 16_000_000
SCHEMA = pa.schema(
    [
        pa.field("url", pa.string(), nullable=False),
        pa.field("status", pa.int32(), nullable=False),
        pa.field("content_type", pa.string()),
        pa.field("location", pa.string()),
        pa.field("body", pa.binary(), nullable=False),
    ]
)
FORMAT = PartsFormat(
    "source.json",
    1,
    "pages",
    remedy="Run the step fetch again.",
    schema=SCHEMA,
    group_rows=GROUP_PAGES,
    # Bodies differ from each other: a dictionary or bounds of them would only cost time and room.
    options={"use_dictionary": ["status", "content_type"], "write_statistics": ["status"]},
)
REDIRECTS = frozenset({301, 302, 303, 307, 308})
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
    counts: dict[str, int] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def row_groups(self) -> list[RowGroup]:
        """Return the row groups, in the order of the pages; see `Format.row_groups`."""
        return FORMAT.parts(self.path)

    def read(self, group: RowGroup) -> list[Page]:
        """Return the pages of one of the `row_groups`. Raises InputError if they cannot be read."""
        with FORMAT.explained(group.path):
            return [Page(**row) for row in FORMAT.read_group(group, SCHEMA.names).to_pylist()]


def open_pages(path: Path) -> PagesFolder:
    """Open a folder of pages. Raises InputError if it is not one, or of another format."""
    return FORMAT.read(path, PagesFolder)


class PagesWriter:
    """Writes a folder of pages, a file at a time.

    ::

        writer = PagesWriter(path)
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
        self._files = 0

    def add(self, page: Page) -> None:
        """Add a page; what is not Unicode in its texts (lone surrogates) is stored as question marks."""
        if len(self._waiting) == GROUP_PAGES or self._bytes + len(page.body) > GROUP_BYTES:
            self.flush()
        self._waiting.append(page)
        self._bytes += len(page.body)
        self.pages += 1

    def flush(self) -> None:
        """Write what is waiting to a file."""
        if self._waiting:
            columns = {name: [getattr(page, name) for page in self._waiting] for name in SCHEMA.names}
            for name in ("url", "content_type", "location"):
                columns[name] = [text and text.encode("utf-8", "replace").decode() for text in columns[name]]
            FORMAT.write_part(self.path, self._files, pa.table(columns, SCHEMA))
            self._files += 1
            self._waiting, self._bytes = [], 0

    def take(self, part: Path, *, left_out: npt.NDArray[np.bool_]) -> None:
        """Move the pages of another writer, which is flushed, to the end of this folder, and remove the other one.

        Of its pages, some are ``left_out``, bool (pages,); files without any of them are moved as they are.
        """
        self.flush()
        start = 0
        for path in numbered_files(part, FORMAT.what):
            kept = ~left_out[start : start + FORMAT.footer(path).num_rows]
            FORMAT.move_part(path, self.path, self._files, kept)
            start += len(kept)
            self.pages += int(kept.sum())
            self._files += bool(kept.any())
        shutil.rmtree(part)

    def finish(self, *, source: str, **described: Any) -> PagesFolder:
        """Write the last file, and the one that makes the folder one of pages, with fields of `PagesFolder`."""
        self.flush()
        FORMAT.finish(self.path, self.pages, source=source, **described)
        return open_pages(self.path)
