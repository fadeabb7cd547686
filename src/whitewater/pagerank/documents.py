"""A folder of documents: the pages that have a text, and the addresses that stand for them.

======================== ==============================================================================================
file                     what it holds
======================== ==============================================================================================
``documents.json``       format, number of documents
``documents-00000...``   ``.parquet``, a row a document: vertex int64 (id of its URL), url text (in normal form), title
                         text, text text; row groups of at most `GROUP_DOCUMENTS`
``aliases.parquet``      a row an address that stands for a document: alias int64, vertex int64, reason text (redirect,
                         duplicate or canonical); in the order of alias, each once. ``vertex`` is a document, or for a
                         redirect to what was not fetched, the id of that URL.
======================== ==============================================================================================

Files are numbered with gaps: where no page of a row group of the pages is a document, there is none.
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
STEM = "documents"
GROUP_DOCUMENTS = 1000
SCHEMA = pa.schema([("vertex", pa.int64()), ("url", pa.string()), ("title", pa.string()), ("text", pa.string())])
ALIASES = pa.schema([("alias", pa.int64()), ("vertex", pa.int64()), ("reason", pa.string())])
ALIAS_ROWS = 1 << 20


@dataclass(frozen=True)
class DocumentsFolder:
    """An open folder of documents."""

    path: Path
    documents: int

    def row_groups(self) -> list[tuple[Path, int, int]]:
        """Return file, number and rows of each row group. Raises InputError if a file cannot be read."""
        return row_groups(numbered_files(self.path, STEM))

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the documents, a row group at a time. Raises InputError if one cannot be read."""
        return (read_row_group(path, group, columns) for path, group, _ in self.row_groups())

    def aliases(self) -> pa.Table:
        """Return the aliases (`ALIASES`)."""
        path = self.path / "aliases.parquet"
        tables = [read_row_group(path, group, None) for _, group, _ in row_groups([path])]
        return pa.concat_tables([ALIASES.empty_table(), *tables])


def open_documents(path: Path) -> DocumentsFolder:
    """Open a folder of documents.

    Raises
    ------
    InputError
        If it is none, is of another format, or a file cannot be read.
    IntegrityError
        If there are more or fewer documents than were written.
    """
    found = read_json(path / "documents.json")
    version = found.get("format") if isinstance(found, dict) else None
    if version != FORMAT:
        raise InputError(f"{path} has format {version}; this version reads {FORMAT}. Run the step parse again.")
    rows = sum(rows for _, _, rows in row_groups(numbered_files(path, STEM)))
    if rows != found.get("documents"):
        raise IntegrityError(f"{path} holds {rows} documents, not {found.get('documents')}. Run the step parse again.")
    return DocumentsFolder(path, rows)


def write_documents(path: Path, number: int, documents: pa.Table) -> None:
    """Write file ``number`` of a folder (columns of `SCHEMA`); if the same is written twice, the same is there."""
    write_table(documents.cast(SCHEMA), numbered(path, STEM, number), group_rows=GROUP_DOCUMENTS)


def finish_documents(path: Path, *, documents: int, aliases: pa.Table) -> DocumentsFolder:
    """Write the aliases (columns of `ALIASES`), and last the file that makes the folder one of documents."""
    path.mkdir(parents=True, exist_ok=True)
    write_table(aliases.cast(ALIASES).sort_by("alias"), path / "aliases.parquet", group_rows=ALIAS_ROWS)
    write_json(path / "documents.json", {"format": FORMAT, "documents": documents})
    return open_documents(path)
