"""A folder of links between pages, as they were found.

================== ====================================================================================================
file               what it holds
================== ====================================================================================================
``links.json``     format, number of links
``links-00000...`` ``.parquet``, a row a link: source int64 (id of the document's URL), target int64 (id of the URL that
                   it leads to), target_url text (that URL in normal form; dictionary of the row group)
================== ====================================================================================================

A document has a link to a target once at most. Targets may be aliases, or nothing that was fetched. The numbers of the
files are those of the documents, with gaps where these have no links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from whitewater.errors import InputError, IntegrityError
from whitewater.pagerank.parquet_folder import numbered, numbered_files, read_row_group, row_groups, write_table
from whitewater.store import read_json, write_json

FORMAT = 1
STEM = "links"
GROUP_LINKS = 1 << 20
SCHEMA = pa.schema(
    [("source", pa.int64()), ("target", pa.int64()), ("target_url", pa.dictionary(pa.int32(), pa.string()))]
)


@dataclass(frozen=True)
class LinksFolder:
    """An open folder of links."""

    path: Path
    links: int

    def row_groups(self) -> list[tuple[Path, int, int]]:
        """Return file, number and rows of each row group. Raises InputError if a file cannot be read."""
        return row_groups(numbered_files(self.path, STEM))

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the links, a row group at a time. Raises InputError if one cannot be read."""
        return (read_row_group(path, group, columns) for path, group, _ in self.row_groups())


def open_links(path: Path) -> LinksFolder:
    """Open a folder of links.

    Raises
    ------
    InputError
        If it is none, or of another format, or a file cannot be read.
    IntegrityError
        If there are more or fewer links than were written.
    """
    found = read_json(path / "links.json")
    version = found.get("format") if isinstance(found, dict) else None
    if version != FORMAT:
        raise InputError(f"{path} has format {version}; this version reads {FORMAT}. Run the step parse again.")
    rows = sum(rows for _, _, rows in row_groups(numbered_files(path, STEM)))
    if rows != found.get("links"):
        raise IntegrityError(f"{path} holds {rows} links, not {found.get('links')}. Run the step parse again.")
    return LinksFolder(path, rows)


def write_links(path: Path, number: int, links: pa.Table) -> None:
    """Write file ``number`` of a folder (columns of `SCHEMA`); if the same is written twice, the same is there."""
    write_table(links.cast(SCHEMA), numbered(path, STEM, number), group_rows=GROUP_LINKS)


def finish_links(path: Path, *, links: int) -> LinksFolder:
    """Write the file that makes the folder one of links."""
    path.mkdir(parents=True, exist_ok=True)
    write_json(path / "links.json", {"format": FORMAT, "links": links})
    return open_links(path)
