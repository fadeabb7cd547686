"""Step `index`: the text of the documents as an inverted index, with their ranks beside it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater import memory
from whitewater.errors import InputError, IntegrityError
from whitewater.folder import Files, RowGroup
from whitewater.pagerank.documents import DOCUMENTS
from whitewater.pagerank.index_folder import IndexWriter
from whitewater.pagerank.postings import BLOCK_BYTES, Block, cut, merge, tokenise_block

if TYPE_CHECKING:
    from whitewater.config.pagerank import Index
    from whitewater.step import Output, Run

logger = logging.getLogger(__name__)
# Bytes of documents that are held at once to be put in the order of their vertices; in two orders for a while.
SORTED_BYTES = 512 << 20
# Bytes of memory for a byte of text: words of six bytes are 4 bytes in a block, 4 among all, and 16 as postings.
MEMORY_A_BYTE = 4
COLUMNS = ["vertex", "url", "title", "text"]
VERTICES = Files(remedy="Run the step communities again.")


@dataclass(frozen=True)
class Documents:
    """The documents in the order in which they are stored: row groups with any, and the bytes of each.

    ``vertices``, int64, and ``ranks``, float64, are those of each; ``numbers``, int64, are their places in ascending
    order of vertices.
    """

    groups: Sequence[RowGroup]
    sizes: Sequence[int]
    vertices: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.float64]
    numbers: npt.NDArray[np.int64]

    def in_order(self, lengths: npt.NDArray[np.int32], *, multiple: int) -> Iterator[pa.Table]:
        """Read the documents in the order of their numbers, some at once, a multiple of so many.

        All are read for each part, so that a part fits into memory.
        """
        parts = -(-sum(self.sizes) // SORTED_BYTES)
        size = multiple * max(1, -(-len(self.numbers) // (multiple * max(1, parts))))
        ranks = np.empty_like(self.ranks)
        ranks[self.numbers] = self.ranks
        for start in range(0, len(self.numbers), size):
            part = self._between(start, start + size)
            more = {"length": lengths[start : start + size], "rank": ranks[start : start + size]}
            yield pa.table({name: part[name] for name in COLUMNS} | more)

    def _between(self, start: int, stop: int) -> pa.Table:
        """Return the documents whose numbers are from ``start`` to before ``stop``, in their order."""
        tables, numbers, first = [], [], 0
        for group in self.groups:
            here = self.numbers[first : first + group.rows]
            chosen = np.flatnonzero((here >= start) & (here < stop))
            first += group.rows
            if len(chosen):
                tables.append(_as_large(DOCUMENTS.read_group(group, COLUMNS)).take(chosen))
                numbers.append(here[chosen])
        return pa.concat_tables(tables).combine_chunks().take(np.argsort(np.concatenate(numbers)))


def index(run: Run[Index], *, documents: Path, vertices: Path, index: Output) -> None:
    """Make an index of the documents.

    Raises
    ------
    InputError
        If there are no documents, or they cannot be read.
    IntegrityError
        If a document has no rank, or two are of one vertex.
    """
    found = read_documents(documents, vertices)
    _check_memory(sum(found.sizes))
    tasks = [found.groups[start:stop] for start, stop in cut(found.sizes, BLOCK_BYTES)]
    with run.cluster() as client:
        blocks = list(run.map(tokenise_groups, tasks, client=client, label="index", ordered=True))
    postings = merge(blocks, numbers=found.numbers, settings=run.settings, threads=run.threads)
    writer = IndexWriter(index, documents=len(found.numbers), settings=run.settings)
    with ThreadPoolExecutor(run.threads) as pool:
        writing = [
            pool.submit(writer.write_documents, found.in_order(postings.lengths, multiple=writer.document_rows)),
            pool.submit(writer.write_postings, postings),
            pool.submit(writer.write_terms, postings),
        ]
    for each in writing:
        each.result()
    described = writer.finish(postings, vertices=VERTICES.footer(vertices).num_rows)
    told = described.model_dump(include={"documents", "terms", "postings", "too_long"})
    run.note(**told)
    logger.info("%d documents have %d terms in %d postings", described.documents, described.terms, described.postings)


def read_documents(documents: Path, vertices: Path) -> Documents:
    """Find the documents and their ranks; see `index`."""
    groups = [group for group in DOCUMENTS.parts(documents) if group.rows]
    if not groups:
        raise InputError(f"{documents} holds no documents, so there is nothing to index. See parse.json for what "
                         "became of the pages.")  # fmt: skip
    ids = np.concatenate([DOCUMENTS.read_group(group, ["vertex"])["vertex"].to_numpy() for group in groups])
    order = np.argsort(ids)
    repeated = np.flatnonzero(np.diff(ids[order]) == 0)
    if len(repeated):
        raise IntegrityError(f"{documents}: {len(repeated)} documents are of the vertex of another, the first of "
                             f"vertex {ids[order[repeated[0]]]}. Run the step parse again.")  # fmt: skip
    numbers = np.empty(len(ids), np.int64)
    numbers[order] = np.arange(len(ids))
    return Documents(groups, DOCUMENTS.stored_bytes(groups), ids, _ranks(ids, vertices), numbers)


def tokenise_groups(groups: Sequence[RowGroup]) -> Block:
    """Cut the documents of row groups into words.

    Raises
    ------
    InputError
        If a text is not UTF-8.
    """
    table = pa.concat_tables([_as_large(DOCUMENTS.read_group(group, ["title", "text"])) for group in groups])
    try:
        return tokenise_block(table["title"], table["text"])
    except pa.ArrowInvalid as error:
        raise InputError(f"{groups[0].path}: a text is not UTF-8: {error}. Run the step parse again.") from error


def _check_memory(size: int) -> None:
    memory.forecast(
        MEMORY_A_BYTE * size + 2 * min(size, SORTED_BYTES),
        what=f"the index of {size / 1e9:.2f} GB of documents",
        remedy="Index fewer documents, or free memory.",
    )


def _ranks(ids: npt.NDArray[np.int64], vertices: Path) -> npt.NDArray[np.float64]:
    table = VERTICES.table(vertices, ["vertex", "rank"])
    ranked, ranks = table["vertex"].to_numpy(), table["rank"].to_numpy()
    places = np.minimum(np.searchsorted(ranked, ids), max(0, len(ranked) - 1))
    without = ids if not len(ranked) else ids[ranked[places] != ids]
    if len(without):
        raise IntegrityError(f"{vertices}: {len(without)} documents have no rank, the first is vertex {without[0]}. "
                             "Run the steps from edges on again, on the same documents.")  # fmt: skip
    found: npt.NDArray[np.float64] = ranks[places]
    return found


def _as_large(table: pa.Table) -> pa.Table:
    """Return a table whose texts may have more than 2 GiB together."""
    fields = [field.with_type(pa.large_string()) if pa.types.is_string(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))
