"""The folders that the step `parse` writes: documents, and the links between them.

======================== ==============================================================================================
file                     what it holds
======================== ==============================================================================================
``documents.json``       format, number of documents
``documents-00000...``   ``.parquet``, a row per document: vertex int64 (id of its URL), url (normalized), title, text
``aliases.parquet``      a row per address of a document: alias int64, ascending and unique, vertex int64, reason text
                         (redirect, duplicate or canonical). ``vertex`` is a document, or for a redirect to a page that
                         was not fetched, the id of its URL.
``links.json``           in the other folder: format, number of links
``links-00000...``       ``.parquet``, a row per link: source int64 (id of the document's URL), target int64 (id of the
                         URL that it leads to), target_url text (normalized; dictionary of the row group)
======================== ==============================================================================================

Files are numbered by the row groups of the pages, with gaps where these have no documents or links. Each pair of source
and target occurs once. Targets may be aliases, or pages that were not fetched.
"""

from pathlib import Path

import pyarrow as pa

from whitewater.io.folder import PartsFormat, write_table

ALIASES = pa.schema([("alias", pa.int64()), ("vertex", pa.int64()), ("reason", pa.string())])
_DOCUMENT = pa.schema([("vertex", pa.int64()), ("url", pa.string()), ("title", pa.string()), ("text", pa.string())])
_URL = pa.dictionary(pa.int32(), pa.string())
_LINK = pa.schema([("source", pa.int64()), ("target", pa.int64()), ("target_url", _URL)])
_REMEDY = "Run the step parse again."
DOCUMENTS = PartsFormat("documents.json", 1, "documents", remedy=_REMEDY, schema=_DOCUMENT, group_rows=1000)
LINKS = PartsFormat("links.json", 1, "links", remedy=_REMEDY, schema=_LINK, group_rows=1 << 20)


def write_aliases(path: Path, aliases: pa.Table) -> None:
    """Write the aliases (columns of `ALIASES`) into a folder of documents."""
    write_table(aliases.cast(ALIASES).sort_by("alias"), path / "aliases.parquet", group_rows=1 << 20)


def read_aliases(path: Path) -> pa.Table:
    """Return the aliases of a folder of documents. Raises InputError if they cannot be read."""
    return DOCUMENTS.table(path / "aliases.parquet")
