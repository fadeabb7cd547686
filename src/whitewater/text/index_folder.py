"""The folder of an inverted index, which is read one row group at a time.

===================== =================================================================================================
file                  what it holds
===================== =================================================================================================
``index.json``        format, counts, mean length of a document, settings; written last
``terms.parquet``     term (ascending by bytes of UTF-8), document_frequency int32, collection_frequency int64, offset
                      int64: the row of its first posting
``postings.parquet``  document int32, frequency int32 and, if stored, positions list of int32; by term, then document
``documents.parquet`` vertex int64, url, title, text, length int32 (weighted number of terms), rank float64; in the
                      order of the folder of documents, where the number of a document is its row
===================== =================================================================================================
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.config.base import Section
from whitewater.errors import InputError
from whitewater.io.folder import Format, RowGroup, RowGroupWriter
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater.text.config import Index
from whitewater.text.documents import DOCUMENTS
from whitewater.text.tokens import UNICODE, Terms

if TYPE_CHECKING:
    from whitewater.text.postings import Postings

FORMAT = Format("index.json", 1, "index", remedy="Run the step index again.")
TERM_ROWS, POSTING_ROWS = 1 << 12, 1 << 17
# A query reads few documents, but the whole footer, which grows with the number of row groups.
DOCUMENT_ROWS, DOCUMENT_ROW_GROUPS = 128, 1024
DOCUMENTS_SCHEMA = pa.schema([*DOCUMENTS.schema, ("length", pa.int32()), ("rank", pa.float64())])


class IndexSummary(Section):
    """The content of `index.json`; ``vertices`` counts those of the graph, ``too_long`` the words left out."""

    documents: int
    vertices: int
    terms: int
    postings: int
    mean_length: float
    too_long: int
    unicode: str = UNICODE
    settings: Index


class IndexFolder:
    """An open index. Its methods raise InputError if a file cannot be read."""

    def __init__(self, path: Path, **summary: Any) -> None:
        self.path, self.summary = path, IndexSummary(**summary)
        # Another version would split words differently.
        if self.summary.unicode != UNICODE:
            raise InputError(f"{path} was made with Unicode {self.summary.unicode}, but this Python has {UNICODE}. "
                             f"{FORMAT.remedy}")  # fmt: skip
        self._terms, self._postings, self._documents = (
            _Table(path / f"{name}.parquet", summary[name]) for name in ("terms", "postings", "documents")
        )

    @cached_property
    def terms(self) -> Terms:
        """How words of documents and queries become terms."""
        return Terms(self.summary.settings)

    @cached_property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Number of words of each document, int32 (documents,)."""
        return to_numpy(self._documents.column("length"))

    @cached_property
    def ranks(self) -> npt.NDArray[np.float64]:
        """PageRank of each document, float64 (documents,)."""
        return to_numpy(self._documents.column("rank"))

    def postings(self, term: str, *, positions: bool = False) -> pa.Table | None:
        """Return the documents with a term, its frequencies and, if asked for, positions; None without any document."""
        group = self._terms.last_group_from(term)
        if group < 0:
            return None
        table = self._terms.groups([group], ["term", "document_frequency", "offset"])
        terms = table["term"].to_pylist()
        row = bisect_left(terms, term)
        if terms[row : row + 1] != [term]:
            return None
        start = table["offset"][row].as_py()
        columns = ["document", "frequency", "positions"][: 2 + positions]
        return self._postings.rows(start, start + table["document_frequency"][row].as_py(), columns)

    def read(self, numbers: Sequence[int], columns: list[str]) -> list[dict[str, Any]]:
        """Read columns of documents, in the order of their numbers."""
        locations = [self._documents.locate(number) for number in numbers]
        tables = {group: self._documents.groups([group], columns) for group in {group for group, _ in locations}}
        return [record for group, row in locations for record in tables[group].slice(row, 1).to_pylist()]

    def numbers(self, urls: Iterable[str]) -> dict[str, int]:
        """Return the numbers of the documents with these URLs; URLs that are not in the index are left out."""
        import pyarrow.compute as pc

        column = self._documents.column("url")
        rows = np.flatnonzero(pc.is_in(column, value_set=pa.array(sorted(set(urls)), column.type)))
        return {column[row].as_py(): row for row in rows.tolist()}


def open_index(path: Path) -> IndexFolder:
    """Open an index. Raises InputError for another format or version of Unicode, IntegrityError if rows are missing."""
    return FORMAT.read(path, IndexFolder)


def write_documents(
    path: Path, groups: Sequence[RowGroup], *, lengths: npt.NDArray[np.int32], ranks: npt.NDArray[np.float64]
) -> None:
    """Write the documents with the length and the rank of each."""
    rows, start = max(DOCUMENT_ROWS, -(-len(lengths) // DOCUMENT_ROW_GROUPS)), 0
    with RowGroupWriter(
        path / "documents.parquet", DOCUMENTS_SCHEMA, group_rows=rows, compression="snappy", use_dictionary=False,
        write_statistics=False,
    ) as writer:  # fmt: skip
        for group in groups:
            stop = start + group.rows
            table = DOCUMENTS.read_group(group, DOCUMENTS_SCHEMA.names[:4])
            table = table.append_column("length", to_arrow(lengths[start:stop]))
            writer.write(table.append_column("rank", to_arrow(ranks[start:stop])).cast(DOCUMENTS_SCHEMA))
            start = stop


def write_postings(path: Path, postings: "Postings") -> None:
    """Write the terms and their postings."""
    path.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        postings.terms, path / "terms.parquet", row_group_size=TERM_ROWS, compression="zstd", use_dictionary=False
    )  # fmt: skip
    # Bit-packed differences are as small as zstd, and faster.
    packed = ["document", "frequency", "positions.list.element"][: postings.postings.num_columns]
    pq.write_table(
        postings.postings, path / "postings.parquet", row_group_size=POSTING_ROWS, compression="none",
        use_dictionary=False, write_statistics=False, column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
    )  # fmt: skip


def finish_index(path: Path, postings: "Postings", settings: Index, *, vertices: int) -> IndexSummary:
    """Write ``index.json``, which makes the folder an index."""
    mean_length = float(postings.lengths.mean(dtype=np.float64))
    summary = IndexSummary(documents=len(postings.lengths), vertices=vertices, terms=len(postings.terms),
                           postings=len(postings.postings), mean_length=mean_length, too_long=postings.too_long,
                           settings=settings)  # fmt: skip
    FORMAT.write(path, summary.model_dump(mode="json"))
    return summary


class _Table:
    """A Parquet file that is read by row groups."""

    def __init__(self, path: Path, rows: int) -> None:
        self._path = path
        with FORMAT.explain_errors(path):
            self._file = pq.ParquetFile(path)
        metadata = self._file.metadata
        FORMAT.check_rows(path, metadata.num_rows, rows)
        sizes = (metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        self._starts = list(accumulate(sizes, initial=0))

    def column(self, name: str) -> pa.ChunkedArray:
        return self.groups(range(len(self._starts) - 1), [name])[name]

    def groups(self, groups: Sequence[int], columns: list[str]) -> pa.Table:
        with FORMAT.explain_errors(self._path):
            return self._file.read_row_groups(groups, columns)

    def rows(self, start: int, stop: int, columns: list[str]) -> pa.Table:
        (first, row), (last, _) = self.locate(start), self.locate(stop - 1)
        return self.groups(range(first, last + 1), columns).slice(row, stop - start)

    def last_group_from(self, value: str) -> int:
        """Return the last row group whose first column starts at or before ``value``, or -1."""
        # Arrow's own search would import pandas.
        metadata = self._file.metadata
        groups = range(metadata.num_row_groups if metadata.num_rows else 0)
        return bisect_right(groups, value, key=lambda group: metadata.row_group(group).column(0).statistics.min) - 1

    def locate(self, number: int) -> tuple[int, int]:
        """Return the row group of a row of the file, and the row within it."""
        group = bisect_right(self._starts, number) - 1
        return group, number - self._starts[group]
