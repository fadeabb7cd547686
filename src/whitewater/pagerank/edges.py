"""Step `edges`: edges of pages, of files of edges, or of a wiki's dumps, all as one folder."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from whitewater.pagerank.edges_folder import EdgesFolder
from whitewater.pagerank.edges_of_files import edges_of_files
from whitewater.pagerank.edges_of_pages import edges_of_pages
from whitewater.pagerank.pages import open_pages
from whitewater.pagerank.wikipedia import edges_of_wikipedia

if TYPE_CHECKING:
    from whitewater.config.pagerank import EdgeRules
    from whitewater.step import Inputs, Output, Run

logger = logging.getLogger(__name__)


def edges(run: Run[EdgeRules], *, fetched: Path, documents: Inputs, links: Inputs, edges: Output) -> None:
    """Write the edges of the source, without those that the rules of section ``pagerank.edges`` leave out.

    ``documents`` and ``links`` hold the folders that `parse` wrote, where the source has pages, and nothing else.
    """
    folder = _written(run, fetched, documents=documents, links=links, folder=edges)
    run.note(**folder.counts, vertices=folder.described.vertices)
    logger.info("%d rows read, %d edges kept", folder.counts["read"], folder.edges)


def _written(run: Run[EdgeRules], fetched: Path, *, documents: Inputs, links: Inputs, folder: Path) -> EdgesFolder:
    if links:
        return edges_of_pages(run, documents["documents"], links["links"], folder)
    source = open_pages(fetched)
    if source.source == "wikipedia":
        return edges_of_wikipedia(run, source, folder)
    return edges_of_files(run, source, folder)
