"""Step `index`: build an inverted index of the documents, with their ranks."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.engines import memory
from whitewater.errors import InputError, IntegrityError
from whitewater.graphs.vertex_ids import find_positions
from whitewater.io.folder import Files, RowGroup
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.text.config import Index
from whitewater.text.documents import DOCUMENTS
from whitewater.text.index_folder import finish_index, write_documents, write_postings
from whitewater.text.postings import BLOCK_BYTES, Block, cut, merge, tokenize_block

logger = logging.getLogger(__name__)
# Bytes of memory per byte of text: a word of six bytes takes 4 bytes in a block, 4 in the merge, and 16 as postings.
MEMORY_PER_BYTE = 4
VERTICES = Files(remedy="Run the step communities again.")


def index(run: Run[Index], *, documents: Path, vertices: Path, index: Output) -> None:
    """Index the documents.

    Raises InputError if there are none or they cannot be read, and IntegrityError if a document has no rank.
    """
    groups, ranks = _read_ranks(documents, vertices)
    sizes = DOCUMENTS.stored_bytes(groups)
    size = MEMORY_PER_BYTE * sum(sizes)
    memory.forecast(size, what=f"the index of {sum(sizes) / 1e9:.2f} GB of documents",
                    remedy="Index fewer documents, or free memory.")  # fmt: skip
    tasks = [groups[start:stop] for start, stop in cut(sizes, BLOCK_BYTES)]
    with run.workers() as workers:
        blocks = list(workers.map(tokenize_groups, tasks, label="index", ordered=True))
    postings = merge(blocks, settings=run.settings, threads=run.threads)
    write_postings(index, postings)
    write_documents(index, groups, lengths=postings.lengths, ranks=ranks)
    summary = finish_index(index, postings, run.settings, vertices=VERTICES.footer(vertices).num_rows)
    run.note(**summary.model_dump(include={"documents", "terms", "postings", "too_long"}))
    logger.info("%d documents have %d terms in %d postings", summary.documents, summary.terms, summary.postings)


def _read_ranks(documents: Path, vertices: Path) -> tuple[list[RowGroup], npt.NDArray[np.float64]]:
    groups = [group for group in DOCUMENTS.parts(documents) if group.rows]
    if not groups:
        raise InputError(f"{documents} holds no documents. See parse.json for what became of the pages.")
    ids = np.concatenate([DOCUMENTS.read_group(group, ["vertex"])["vertex"].to_numpy() for group in groups])
    table = VERTICES.table(vertices, ["vertex", "rank"])
    places = find_positions(ids, table["vertex"].to_numpy())
    unranked = ids[places < 0]
    if len(unranked):
        raise IntegrityError(f"{vertices}: {len(unranked)} documents have no rank, the first is vertex {unranked[0]}. "
                             "Run the steps from edges on again, on the same documents.")  # fmt: skip
    return groups, table["rank"].to_numpy()[places]


def tokenize_groups(groups: Sequence[RowGroup]) -> Block:
    """Tokenize the documents of row groups. Raises InputError if a text is not UTF-8."""
    table = pa.concat_tables([DOCUMENTS.read_group(group, ["title", "text"]) for group in groups])
    try:
        return tokenize_block(table["title"], table["text"])
    except pa.ArrowInvalid as error:
        raise InputError(f"{groups[0].path}: a text is not UTF-8: {error}. Run the step parse again.") from error


if __name__ == "__main__":
    main(index)
