"""Documents, their ranks and indexes of them, for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.helpers.pagerank_search_oracle import Page
from whitewater.text import index_folder
from whitewater.text import postings as postings_module
from whitewater.text.config import Index
from whitewater.text.documents import DOCUMENTS
from whitewater.text.index_folder import IndexFolder
from whitewater.text.postings import Postings, cut, merge, tokenize_block

WORDS = ["flood", "Flood", "CONTROL", "the", "control", "ÉTÉ", "e\u0301te\u0301", "1998", "\u0130zmir", "ΣΑΣ", "don't",
         "x_y", "rivers", "river", "a", "𐐀𐐁", "水"]  # fmt: skip
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@st.composite
def collections(draw: st.DrawFn, *, most: int = 8) -> list[Page]:
    """Draw documents in any order; some have equal texts and ranks."""
    number = draw(st.integers(1, most))
    vertices = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=number, max_size=number, unique=True))
    texts = draw(st.lists(st.tuples(SENTENCES, SENTENCES), min_size=number, max_size=number))
    ranks = draw(st.lists(st.sampled_from([0.01, 0.05, 0.2]), min_size=number, max_size=number))
    return [
        Page(vertex, f"https://example.org/{place}", *text, rank)
        for place, (vertex, text, rank) in enumerate(zip(vertices, texts, ranks, strict=True))
    ]


def table_of(pages: Sequence[Page]) -> pa.Table:
    columns: dict[str, Any] = {
        name: [getattr(page, name) for page in pages] for name in ("vertex", "url", "title", "text")
    }
    types = {"vertex": pa.int64(), "url": pa.string(), "title": pa.string(), "text": pa.string()}
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def write_documents(path: Path, pages: Sequence[Page], *, group_rows: int = 1000, file_rows: int = 1000) -> Path:
    """Write a folder of documents, its files of so many rows."""
    path.mkdir(parents=True)
    table = table_of(pages)
    for start in range(0, len(pages), file_rows):
        file = path / f"documents-{start // file_rows:05d}.parquet"
        pq.write_table(table.slice(start, file_rows), file, row_group_size=group_rows)
    (path / "documents.json").write_text(json.dumps({"format": 1, "documents": len(pages)}))
    return path


def write_ranks(path: Path, pages: Sequence[Page], *, others: int = 0) -> Path:
    """Write the ranks of documents, and of vertices that are none."""
    ranks = {page.vertex: page.rank for page in pages} | {10**6 + other: 0.5 for other in range(others)}
    vertices = sorted(ranks)
    pq.write_table(pa.table({"vertex": vertices, "rank": [ranks[vertex] for vertex in vertices]}), path)
    return path


def build_postings(titles: pa.ChunkedArray, texts: pa.ChunkedArray, *, settings: Index, threads: int) -> Postings:
    """Build the inverted index of columns of text; a document's number is its row."""
    both = zip(titles.to_pylist(), texts.to_pylist(), strict=True)
    sizes = [len(title or "") + len(text or "") for title, text in both]
    blocks = [slice(start, stop) for start, stop in cut(sizes, postings_module.BLOCK_BYTES)]
    tokenized = [tokenize_block(titles[rows], texts[rows]) for rows in blocks]
    return merge(tokenized, settings=settings, threads=threads)


def make_index(path: Path, pages: Sequence[Page], *, vertices: int | None = None, **settings: Any) -> IndexFolder:
    """Make an index without the step's workers."""
    table, chosen = table_of(pages), Index(**settings)
    postings = build_postings(table["title"], table["text"], settings=chosen, threads=1)
    documents = write_documents(path.with_name(f"{path.name}-documents"), pages)
    ranks = np.array([page.rank for page in pages])
    index_folder.write_documents(path, DOCUMENTS.parts(documents), lengths=postings.lengths, ranks=ranks)
    index_folder.write_postings(path, postings)
    index_folder.finish_index(path, postings, chosen, vertices=vertices or len(pages))
    return index_folder.open_index(path)
