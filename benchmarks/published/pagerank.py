"""R18: from an edge list to PageRank, and an inverted index of the words of documents.

The source claims about 1000 times the speed of NetworkX on a GPU and gives neither sizes nor seconds, so that nothing
is listed as published; `as_published` is NetworkX. Scale 1.0 is the size of the recorded benchmark: 64 million R-MAT
edges among 2**22 vertices, a million documents. See benchmarks/README.md, pagerank, for the definitions.
"""

from __future__ import annotations

from dataclasses import replace
from math import log2
from typing import Literal

from benchmarks import measure
from benchmarks.pagerank import corpus, rmat
from benchmarks.pagerank.commands import variant
from benchmarks.placement import Placement
from benchmarks.published.row import SEED, ProcessCase, Row, Work, missing_packages
from benchmarks.report import Size

EDGES, EDGES_A_VERTEX = 64_000_000, 16
# With fewer there are no 100 vertices to rank.
FEWEST_EDGES = 16_000
DOCUMENTS = 1_000_000
# Ranks are compared as multiples of the mean, of iterations that end at a change of 1e-8.
RANK_TOLERANCE = 1e-6
ORACLES = {"rank": "scipy", "index": "duckdb"}
# Name here, of the program, and the module that it needs.
PEERS = {
    "rank": (
        ("as_published", "networkx", "networkx"),
        ("scipy", "scipy", "scipy"),
        ("duckdb", "duckdb", "duckdb"),
    ),
    "index": (
        ("duckdb", "duckdb", "duckdb"),
        ("polars", "polars", "polars"),
        ("tantivy", "tantivy", "tantivy"),
    ),
}


def edges(work: Work) -> rmat.Edges:
    """Return the edges, which are made unless they are there."""
    count = max(FEWEST_EDGES, round(EDGES * work.scale))
    vertices = max(1, round(log2(max(2, count / EDGES_A_VERTEX))))
    return rmat.prepare(work.folder, scale=vertices, edges=count, seed=SEED)


def documents(work: Work) -> corpus.Corpus:
    """Return the documents, which are made unless they are there."""
    return corpus.prepare(work.folder, documents=max(1, round(DOCUMENTS * work.scale)), seed=SEED)


def rank(work: Work) -> list[measure.Variant]:
    """Return the commands that rank the vertices."""
    return _variants("rank", edges(work), work)


def index(work: Work) -> list[measure.Variant]:
    """Return the commands that index the documents."""
    return _variants("index", documents(work), work)


def _variants(case: Literal["rank", "index"], source: rmat.Edges | corpus.Corpus, work: Work) -> list[measure.Variant]:
    """Return ours on the device and, on the CPU, the peers; the oracle always."""
    written = work.folder / "written"
    placement = Placement(work.device.name, work.cluster.model_dump_json(exclude_defaults=True))
    folder, threads = source.folder, work.threads
    ours = variant(case, "whitewater", folder, written / "whitewater", threads=threads, placement=placement)
    theirs = [
        replace(
            variant(case, tool, folder, written / name, threads=threads),
            name=name,
            missing=missing_packages((package,)),
        )
        for name, tool, package in PEERS[case]
        if work.device.name == "cpu" or name == ORACLES[case]
    ]
    return [ours, *theirs]


def _prepare_edges(work: Work) -> None:
    edges(work)


def _prepare_documents(work: Work) -> None:
    documents(work)


ROW = Row(
    id="R18",
    name="pagerank",
    title="PageRank of 64 million R-MAT edges, and an inverted index of a million documents (NetworkX / 1000 claimed)",
    cases=(
        ProcessCase(
            name="rank",
            variants=rank,
            oracle=ORACLES["rank"],
            size=lambda work: Size(rows=edges(work).edges, bytes=edges(work).file_bytes, basis="file"),
            prepare=_prepare_edges,
            tolerance=RANK_TOLERANCE,
        ),
        ProcessCase(
            name="index",
            variants=index,
            oracle=ORACLES["index"],
            size=lambda work: Size(rows=documents(work).documents, bytes=documents(work).file_bytes, basis="file"),
            prepare=_prepare_documents,
        ),
    ),
)
