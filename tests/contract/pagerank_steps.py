"""The computing steps of the PageRank application in one process, on a device and a few hundred vertices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest

from benchmarks.gpu_proof.same import Rule
from tests.contract.executed import APPLICATIONS, ROOT, device_code
from tests.contract.site import Site
from tests.helpers.graphs import Graph, write_edges
from whitewater.graphs.build import with_kernels as edge_plan
from whitewater.graphs.config import Pagerank
from whitewater.graphs.pagerank import solving
from whitewater.io.store import read_json
from whitewater.step import Output
from whitewater_apps.pagerank import config
from whitewater_apps.pagerank.steps import communities as communities_step
from whitewater_apps.pagerank.steps import renumber as renumber_step
from whitewater_apps.pagerank.steps.communities import communities
from whitewater_apps.pagerank.steps.rank import rank
from whitewater_apps.pagerank.steps.renumber import renumber

Ids = npt.NDArray[np.int64]
VERTICES, EDGES, KNOWN = 402, 5_000, 20
# Bytes for edges under way, in GB, so few that they go to disk.
LITTLE_GB = 1e-6


# By name a folder of edges, and how they become a graph: ids that lie close together, and ids that do not; each rule
# for edges with the same ends; edges in memory and on disk.
GRAPHS = {
    "web": ("close", config.Renumber()),
    "counted": ("close", config.Renumber(duplicates="sum")),
    "weighted": ("weighted", config.Renumber(duplicates="maximum")),
    "weighted_spilled": ("weighted", config.Renumber(duplicates="sum", memory_gb=LITTLE_GB)),
    "distant": ("distant", config.Renumber(duplicates="maximum")),
    "distant_spilled": ("distant", config.Renumber(duplicates="sum", memory_gb=LITTLE_GB)),
    "some_named": ("some_named", config.Renumber()),
}


# A graph, and how its vertices are ranked.
def _ranked(graph: str, **settings: Any) -> tuple[str, Pagerank]:
    return graph, Pagerank.model_validate({"tolerance": 1e-10, **settings})


CHOSEN, EMPTY = "chosen.csv", "empty"
# The same recurrence from cuGraph's ranks comes to others within the tolerance.
LIBRARY = {
    "of_library": _ranked("web"),
    "of_library_weighted": _ranked("counted"),
    "of_library_personalized": _ranked("weighted", personalization=CHOSEN),
}
RANKS = {
    "networkx": _ranked("web", cugraph=False),
    "weighted": _ranked("counted", cugraph=False),
    "unweighted": _ranked("counted", cugraph=False, weighted=False),
    "personalized": _ranked("weighted", cugraph=False, personalization=CHOSEN),
    "distant": _ranked("distant", cugraph=False),
    "graphalytics": _ranked("web", definition="graphalytics", iterations=12),
    "gap": _ranked("web", definition="gap"),
    EMPTY: _ranked(EMPTY),
    **LIBRARY,
}


# A graph, ranks of it, and which groups of vertices are looked for.
GROUPS = {
    "leiden": ("web", "networkx", config.Communities()),
    "louvain": ("weighted", "personalized", config.Communities(method="louvain", resolution=0.8)),
    "none": ("distant", "distant", config.Communities(method="none")),
    EMPTY: (EMPTY, EMPTY, config.Communities()),
}


# Ranks from the same start are added up in another order; what begins with cuGraph's comes within the tolerance, of
# both devices. Communities are the library's. All else is equal byte by byte.
RULES = (
    *(Rule(f"ranks/{name}.parquet", 2 * settings.tolerance + 1e-14, summed=True)
      for name, (_, settings) in LIBRARY.items()),
    Rule("ranks/of_library*.json", compared=False),
    Rule("ranks/*.parquet", 1e-12, summed=True),
    Rule("ranks/*.json", left_out=("log", "error_bound")),
    Rule("groups/*.parquet", left_out=("rank", "community")),
    Rule("groups/*.json", left_out=("communities",)),
)  # fmt: skip
CALLS = {"cupy.abs", "cupy.divide", "cupy.flatnonzero", "cudf.DataFrame.sort_values", "cudf.DataFrame.rename"}
# Two numbers come down in each iteration.
CROSSINGS = {"renumber": (1, 1), "rank networkx": (1, 1.64), "rank of_library": (0.9, 1), "communities": (1, 1)}
CODE, FRAMES, OF_CPU = (
    [*device_code(ROOT / "graphs", APPLICATIONS / "pagerank"), ROOT / "graphs" / "build" / "with_dask.py"],
    (),
    ("add_up", "_sum_of_run", "_term"),
)
BESIDE = {
    # A folder whose vertices have names has a table of them; one without edges has vertices only.
    "return None", "return NumberedEdges(known, 0, iter(()))",
    # `test_graph_library` has stand-ins, for several GPUs, too.
    'logger.info("cuGraph would need about %.2f GB of GPU memory", cugraph_bytes(edges) / 1e9)',
    "return groups",
}  # fmt: skip


def write_inputs(directory: Path) -> Path:
    """Write folders of edges, with loops, repeated edges, dangling and isolated vertices; and a personalization."""
    folder = directory / "inputs"
    random = np.random.default_rng(11)
    source, target = _ends(random)
    weight = random.choice([0.1, 0.2, 0.7, 1e-6, 1e6], EDGES)
    # Of the known vertices, some are in no edge.
    known = np.arange(-KNOWN, VERTICES + KNOWN)
    names = [f"page {number}" for number in known.tolist()]
    table = pa.table({"vertex": known, "name": names})
    write_edges(folder / "close", source, target, vertices=table, group_rows=700)
    write_edges(folder / "weighted", source, target, weight, group_rows=700)
    far = np.sort(random.integers(-(2**63), 2**63 - 1, VERTICES))
    write_edges(folder / "distant", far[source], far[target], weight, directed=False, group_rows=700)
    some = pa.table({"vertex": far[::2], "name": [f"page {number}" for number in far[::2].tolist()]})
    write_edges(folder / "some_named", far[source], far[target], vertices=some, group_rows=700)
    pd.DataFrame({"vertex": [3, 250, 3], "weight": [1, 4, 0.5]}).to_csv(folder / CHOSEN, index=False)
    return folder


def _ends(random: np.random.Generator) -> tuple[Ids, Ids]:
    """Return edges within three groups, and a few between them; some vertices have no out-edges, one has very many."""
    group = random.integers(0, 3, EDGES)
    size = (VERTICES - 2) // 3
    source = group * size + random.integers(0, size // 2, EDGES)
    target = np.where(random.random(EDGES) < 0.8, group * size, 0) + random.integers(0, size, EDGES)
    target[:600], source[600:650] = 7, target[600:650]
    # Two vertices that are a component of their own.
    source[-3:], target[-3:] = VERTICES - 2, VERTICES - 1
    return source, target


@contextmanager
def spread_out() -> Iterator[None]:
    """Let so little data be worked on by workers, in several pieces, buckets and ranges of targets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(renumber_step, "SMALL", 0)
        patch.setattr(edge_plan, "SMALLEST_PIECE", 900)
        patch.setattr(edge_plan, "BUCKET_EDGES", 64)
        patch.setattr(solving, "PROGRESS_SECONDS", -1.0)
        patch.setattr(solving, "SMALL_EDGES", 0)
        patch.setattr(communities_step, "SMALL_EDGES", 0)
        yield


def run_steps(site: Site, *, inputs: Path, results: Path) -> None:
    """Number the edges, rank the vertices of the graphs, and look for groups of them."""
    for folder in ("graphs", "ranks", "groups"):
        (results / folder).mkdir(parents=True)
    for name, (edges, numbered) in GRAPHS.items():
        site.run(
            "pagerank",
            renumber,
            settings=numbered,
            edges=inputs / edges,
            graph=Output(results / "graphs" / name),
            summary=Output(results / "graphs" / f"{name}.json"),
        )
    Graph(0, np.empty((0, 2), np.int64)).write(results / "graphs" / EMPTY)
    for name, (graph, settings) in RANKS.items():
        chosen = settings.personalization and str(inputs / settings.personalization)
        site.run(
            "pagerank",
            rank,
            settings=settings.model_copy(update={"personalization": chosen}),
            case=name,
            graph=results / "graphs" / graph,
            ranks=Output(results / "ranks" / f"{name}.parquet"),
            convergence=Output(results / "ranks" / f"{name}.json"),
        )
    for name, (graph, ranks, groups) in GROUPS.items():
        site.run(
            "pagerank",
            communities,
            settings=groups,
            graph=results / "graphs" / graph,
            ranks=results / "ranks" / f"{ranks}.parquet",
            vertices=Output(results / "groups" / f"{name}.parquet"),
            summary=Output(results / "groups" / f"{name}.json"),
        )


def check_data(folder: Path) -> None:
    """Check that edges were merged, reversed and loops, and that there are vertices without edges, and components."""
    for name, (edges, _) in GRAPHS.items():
        counts = read_json(folder / "graphs" / f"{name}.json")
        assert min(counts[each] for each in ("duplicates", "self_loops", "edges")) > 0
        assert (counts["reversed"] > 0) == edges.startswith("distant")
    web = read_json(folder / "graphs" / "web.json")
    assert min(web["dangling"], web["isolated"]) > 2 * KNOWN - 1
    components = read_json(folder / "groups" / "none.json")["components"]
    assert components["count"] > 1
