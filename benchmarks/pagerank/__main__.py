"""Measure the PageRank benchmarks: `python -m benchmarks.pagerank --case rank`; see benchmarks/README.md."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from benchmarks.arguments import add_tools, parser_of, plan_of, with_tools
from benchmarks.measure import Variant, measure, this_python
from benchmarks.pagerank import corpus, rmat
from benchmarks.pagerank.commands import variant
from benchmarks.process_tree import MeasurementError, run
from benchmarks.report import Report, Size, table

TOOLS = {
    "rank": ("whitewater", "scipy", "graphblas", "networkit", "igraph", "duckdb"),
    "index": ("whitewater", "duckdb", "polars", "tantivy"),
}
ORACLES = {"rank": "scipy", "index": "duckdb"}
PACKAGES = (
    "networkx",
    "networkit",
    "python-graphblas",
    "suitesparse-graphblas",
    "igraph",
    "duckdb",
    "polars",
    "tantivy",
)
SCALE = 20
SEED = 1
FLOOR_SAMPLES = 5
# Ranks are compared as multiples of the mean, of iterations that end at a change of 1e-8.
RANK_TOLERANCE = 1e-6


def rank(arguments: Any) -> Report:
    """Make the edges, measure, and return the report."""
    edges = rmat.prepare(arguments.data, scale=arguments.scale, edges=arguments.edges, seed=SEED)
    options = ["--edges", str(edges.folder), "--threads", str(arguments.threads)]
    return measure(
        f"pagerank: rank the vertices of {edges.edges:,} R-MAT edges, scale {arguments.scale}",
        _variants("rank", edges.folder, arguments),
        oracle=arguments.oracle,
        plan=plan_of(arguments, tolerance=RANK_TOLERANCE),
        size=Size(rows=edges.edges, bytes=edges.file_bytes, basis="file"),
        parameters={"scale": arguments.scale, "edges": edges.edges, "seed": SEED, "floor": _floor(options)},
        packages=PACKAGES,
    )


def index(arguments: Any) -> Report:
    """Make the documents, measure, and return the report."""
    documents = corpus.prepare(arguments.data, documents=arguments.documents, seed=SEED)
    return measure(
        f"pagerank: inverted index of {documents.documents:,} documents",
        _variants("index", documents.folder, arguments),
        oracle=arguments.oracle,
        plan=plan_of(arguments, tolerance=1e-9),
        size=Size(rows=documents.documents, bytes=documents.file_bytes, basis="file"),
        parameters={"documents": documents.documents, "seed": SEED},
        packages=PACKAGES,
    )


def _variants(case: Literal["rank", "index"], source: Path, arguments: Any) -> list[Variant]:
    return [
        variant(case, name, source, arguments.data / "written" / name, threads=arguments.threads)
        for name in arguments.tools
    ]


def _floor(options: list[str]) -> JsonValue:
    """Measure the floor in processes of its own, and return the median seconds."""
    samples = []
    for _ in range(FLOOR_SAMPLES):
        cost = run((this_python(), "-m", "benchmarks.pagerank.floor", *options), environment={}, timeout=600)
        if cost.exit_status:
            raise MeasurementError(f"the floor was not measured: {cost.errors}")
        samples.append(json.loads(cost.output)["read_seconds"])
    return {"read_seconds": statistics.median(samples)}


def phases(report: Report) -> str:
    """Return the median of each phase that variants measured of themselves, as text."""
    lines = []
    for name, outcome in report.outcomes.items():
        measured = [sample.phases for sample in outcome.samples]
        medians = {phase: statistics.median(each[phase] for each in measured) for phase in (measured or [{}])[0]}
        told = ", ".join(f"{phase} {seconds:.4g}" for phase, seconds in medians.items())
        lines += [f"{name:<20} {told}"] if told else []
    return "\n".join(lines)


def _arguments() -> Any:
    parser = parser_of("pagerank", rounds=6)
    parser.add_argument("--case", choices=tuple(TOOLS), default="rank", help="rank a graph, or index documents")
    parser.add_argument("--scale", type=int, default=SCALE, help="rank: binary logarithm of the vertices")
    parser.add_argument("--edges", type=int, default=16_000_000, help="rank: edges")
    parser.add_argument("--documents", type=int, default=100_000, help="index: documents")
    add_tools(parser)
    return with_tools(parser, TOOLS, ORACLES, slow={"rank": ("networkx",)})


def main() -> int:
    """Measure, write a report, and return 1 if any answer was wrong."""
    arguments = _arguments()
    ranking = arguments.case == "rank"
    try:
        report = rank(arguments) if ranking else index(arguments)
    except MeasurementError as error:
        sys.exit(f"pagerank: {error}")
    finally:
        shutil.rmtree(arguments.data / "written", ignore_errors=True)
    size = f"{arguments.scale}-{arguments.edges}" if ranking else arguments.documents
    report.write(arguments.results / f"pagerank-{arguments.case}-{size}.json")
    print(table(report), flush=True)
    print(phases(report))
    if ranking:
        print(f"Floor: {report.parameters['floor']}")
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main())
