"""Step `edges`: edges of pages or of files of edges, both as one folder."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from whitewater.local_files import as_fetched
from whitewater.pagerank.edges_of_files import edges_of_files
from whitewater.pagerank.edges_of_pages import edges_of_pages
from whitewater.pagerank.pages import open_pages
from whitewater.store import read_json

if TYPE_CHECKING:
    from whitewater.config.pagerank import EdgeRules
    from whitewater.step import Inputs, Output, Run

logger = logging.getLogger(__name__)


def edges(run: Run[EdgeRules], *, fetched: Path, documents: Inputs, links: Inputs, inputs: Path, edges: Output) -> None:
    """Write the edges of the source, without those that the rules of section ``pagerank.edges`` leave out.

    ``documents`` and ``links`` hold the folders that `parse` wrote, where the source has pages, and nothing else;
    ``inputs`` is the list of files that `fetch` wrote.

    Raises
    ------
    IntegrityError
        If a file of edges is not the one that `fetch` wrote down.
    """
    if links:
        folder = edges_of_pages(run, documents["documents"], links["links"], edges)
    else:
        with as_fetched(read_json(inputs)["files"], rule="pagerank_fetch", threads=run.threads):
            folder = edges_of_files(run, open_pages(fetched), edges)
    run.note(**folder.counts, vertices=folder.vertex_rows)
    logger.info("%d rows read, %d edges kept", folder.counts["read"], folder.edges)
