"""What a run of the PageRank application found, in sentences."""

from __future__ import annotations

from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater.figures.style import percent
from whitewater.io.store import read_json
from whitewater.io.terminal_text import shorten
from whitewater.manifest import is_of_last_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

# Ranks that differ by less, relatively, are equal but for rounding.
_EQUAL = 1e-9
_LONGEST_NAME = 100
_FIXED = "graphalytics"
_LEVEL = 0.05
_GRAPH = (("vertex", "vertices"), ("edge", "edges"))


def headline(results: Path) -> list[str]:
    """Return what the results of one device, such as ``results/pagerank/cpu``, say, one sentence a line."""
    tellers = (
        (_ranks, ("vertices.parquet", "convergence.json")),
        (_convergence, ("convergence.json",)),
        (_groups, ("communities.json", "convergence.json")),
        (_search, ("queries.json",)),
    )
    sentences: list[str] = []
    for tell, names in tellers:
        paths = [results / name for name in names]
        if all(path.exists() and is_of_last_run(path) for path in paths):
            sentences += tell(*paths)
    return sentences


def _ranks(vertices: Path, convergence: Path) -> list[str]:
    ranks, found = read_column(vertices, "rank"), read_json(convergence)
    if not len(ranks):
        return ["The graph has no vertex."]
    first = int(ranks.argmax())
    (name,) = read_names(vertices, [first])
    is_web = name.startswith(("http://", "https://"))
    vertices_are, edges_are = (("page", "pages"), ("link", "links")) if is_web else _GRAPH
    number, edges = _counted(len(ranks), *vertices_are), _counted(found["edges"], *edges_are)
    sentences = [f"Of {number} with {edges}, {_first(ranks, _called(name), vertices_are[1])}."]
    if dangling := found["dangling_vertices"]:
        sentences.append(f"{percent(dangling / len(ranks))} are dangling: they have no {edges_are[1]} that count.")
    return sentences


def _counted(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _called(name: str) -> str:
    """Return a name in so many letters as a sentence bears, or what an id is called."""
    return f"vertex {name}" if name.lstrip("-").isdigit() else shorten(name, columns=_LONGEST_NAME)


def _first(ranks: npt.NDArray[np.float64], name: str, vertices: str) -> str:
    """Say which vertex ranks first, with its share of the sum of all ranks."""
    highest = float(ranks.max())
    ties = int((ranks >= highest * (1 - _EQUAL)).sum())
    share = f"{percent(highest / float(ranks.sum()))} of all rank"
    uniform = percent(1 / len(ranks))
    if ties == len(ranks) > 1:
        return f"all have the same rank: {share} each"
    if ties > 1:
        return f"{ties:,} {vertices} rank first, {name} among them: {share} each (uniform: {uniform})"
    return f"{name} ranks first: {share} (uniform: {uniform})"


def _convergence(path: Path) -> list[str]:
    found = read_json(path)
    if not found["log"]:
        return []
    iterations = _counted(found["iterations"], "iteration", "iterations")
    if found["definition"] == _FIXED:
        return [f"The ranks are those after {iterations}, as the definition {_FIXED} requires."]
    return [f"After {iterations} the ranks are within {found['error_bound']:.2g} (L1) of the exact ones "
            f"(definition {found['definition']})."]  # fmt: skip


def _groups(communities: Path, convergence: Path) -> list[str]:
    found, vertices = read_json(communities), read_json(convergence)["vertices"]
    components = found["components"]
    if not vertices:
        return []
    if components["count"] == 1:
        told = "One weakly connected component"
    else:
        told = (
            f"{components['count']:,} weakly connected components; the largest has "
            f"{percent(components['largest'] / vertices)} of all vertices"
        )
    return [f"{told}{_communities(found['communities'])}."]


def _communities(found: dict[str, Any]) -> str:
    if found["method"] == "none":
        return ""
    count = _counted(found["count"], "community", "communities")
    by = found["method"].capitalize()
    return f"; {count} ({by}, modularity {found['modularity']:.2f})"


def _search(path: Path) -> list[str]:
    found = read_json(path)["evaluation"]
    if not found:
        return []
    right, without = (round(found["judged"] * found[f"success_1{suffix}"]) for suffix in ("", "_without_prior"))
    lost = found["first_right_without_prior_only"]
    p_value = sign_test(right - without + lost, lost)
    told = f"p = {p_value:.2g}, sign test" + (", so the difference is within noise" if p_value > _LEVEL else "")
    return [
        f"The right page is first for {right:,} of {_counted(found['judged'], 'query', 'queries')}, for {without:,} "
        f"without PageRank ({told}); mean reciprocal rank {found['mrr']:.3f} with it, "
        f"{found['mrr_without_prior']:.3f} without."
    ]


def sign_test(better: int, worse: int) -> float:
    """Return the two-sided p-value of so many changes for the better and for the worse, if both were as likely."""
    changes = better + worse
    tail: int = sum(comb(changes, number) for number in range(min(better, worse) + 1))
    return min(1.0, tail / 2 ** (changes - 1)) if changes else 1.0


def read_column(vertices: Path, name: str) -> npt.NDArray[Any]:
    """Return a column of numbers of `vertices.parquet`, a row a vertex, in the order of their numbers."""
    import pyarrow.parquet as pq

    column: npt.NDArray[Any] = pq.read_table(vertices, columns=[name])[name].to_numpy()
    return column


def read_names(vertices: Path, rows: Sequence[int]) -> list[str]:
    """Return the names of some rows of `vertices.parquet`, or their ids where vertices have no names.

    Only the row groups that hold them are read.
    """
    import pyarrow.parquet as pq

    file = pq.ParquetFile(vertices)
    column = "name" if "name" in file.schema_arrow.names else "vertex"
    sizes = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    ends = np.cumsum(sizes)
    found: dict[int, str] = {}
    for group in sorted(set(np.searchsorted(ends, rows, side="right").tolist())):
        values = file.read_row_group(group, columns=[column])[column]
        first = int(ends[group]) - sizes[group]
        found |= {row: str(values[row - first].as_py()) for row in rows if first <= row < ends[group]}
    return [found[row] for row in rows]
