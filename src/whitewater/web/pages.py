"""A folder of fetched pages in Parquet.

===================== =================================================================================================
file                  contents
===================== =================================================================================================
``source.json``       format, source, number of pages, counts by kind, files by role, settings
``pages-00000...``    ``.parquet``, a row per page: url text (absolute), status int32 (200 if unknown), content_type
                      text or null (the header), location text or null (absolute target of a redirect), body binary
                      (decoded from transfer and content encodings)
===================== =================================================================================================

Each file is one row group of at most `GROUP_PAGES` pages and `GROUP_BYTES` of bodies (or one larger page), so reading
and writing take the memory of one file. For the source `edges`, which has no pages, there is only ``source.json``.
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
    # Bodies are all different: dictionaries and statistics of them would only cost time and space.
    options={"use_dictionary": ["status", "content_type"], "write_statistics": ["status"]},
)
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Larger bodies are not pages but videos or disk images: sources count them as too_large and skip them.
LARGEST_BODY = 64_000_000


@dataclass(frozen=True)
class Page:
    """A fetched page: an HTTP response with its body decoded."""

    url: str
    status: int
    content_type: str | None
    location: str | None
    body: bytes


@dataclass(frozen=True)
class PagesFolder:
    """A folder of pages; the fields are those of ``source.json``."""

    path: Path
    source: str
    pages: int
    counts: dict[str, int] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def row_groups(self) -> list[RowGroup]:
        """Return the row groups in the order of the pages."""
        return FORMAT.parts(self.path)

    def read(self, group: RowGroup) -> list[Page]:
        """Return the pages of a row group. Raises InputError if they cannot be read."""
        with FORMAT.explain_errors(group.path):
            return [Page(**row) for row in FORMAT.read_group(group, SCHEMA.names).to_pylist()]


def open_pages(path: Path) -> PagesFolder:
    """Open a folder of pages. Raises InputError if it is missing or has another format version."""
    return FORMAT.read(path, PagesFolder)


class PagesWriter:
    """Writes a folder of pages: `add` each page, then `finish`. The folder must not hold pages yet."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.pages = 0
        self._buffer: list[Page] = []
        self._bytes = 0
        self._files = 0

    def add(self, page: Page) -> None:
        """Add a page. Lone surrogates in its texts are stored as question marks."""
        if len(self._buffer) == GROUP_PAGES or self._bytes + len(page.body) > GROUP_BYTES:
            self.flush()
        self._buffer.append(page)
        self._bytes += len(page.body)
        self.pages += 1

    def flush(self) -> None:
        """Write the buffered pages to a file."""
        if self._buffer:
            columns = {name: [getattr(page, name) for page in self._buffer] for name in SCHEMA.names}
            for name in ("url", "content_type", "location"):
                columns[name] = [text and text.encode("utf-8", "replace").decode() for text in columns[name]]
            FORMAT.write_part(self.path, self._files, pa.table(columns, SCHEMA))
            self._files += 1
            self._buffer, self._bytes = [], 0

    def append_folder(self, part: Path, *, excluded: npt.NDArray[np.bool_]) -> None:
        """Move the pages of another, flushed writer to the end of this folder, and remove its folder.

        Pages that are ``excluded``, bool (pages,), are dropped. Files without any of them are moved as they are.
        """
        self.flush()
        start = 0
        for path in numbered_files(part, FORMAT.what):
            kept = ~excluded[start : start + FORMAT.footer(path).num_rows]
            FORMAT.move_part(path, self.path, self._files, kept)
            start += len(kept)
            self.pages += int(kept.sum())
            self._files += bool(kept.any())
        shutil.rmtree(part)

    def finish(self, *, source: str, **fields: Any) -> PagesFolder:
        """Write the last file and ``source.json``, with fields of `PagesFolder`; return the folder."""
        self.flush()
        FORMAT.finish(self.path, self.pages, source=source, **fields)
        return open_pages(self.path)
