"""What a run of the PageRank application found, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whitewater.figures.words import count, counted, percent
from whitewater.io.store import read_json
from whitewater.io.terminal_text import shorten
from whitewater.manifest import is_of_last_run

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Ranks that differ by less, relatively, are equal but for rounding.
_EQUAL = 1e-9
_LONGEST_NAME = 100
_LEVEL = 0.05


def headline(results: Path) -> list[str]:
    """Return what the results of one device, such as ``results/pagerank/cpu``, say, one sentence a line."""
    sentences: list[str] = []
    for describe, names in (
        (_ranks, ("vertices.parquet", "convergence.json")),
        (_convergence, ("convergence.json",)),
        (_groups, ("communities.json", "convergence.json")),
        (_search, ("queries.json",)),
    ):
        paths = [results / name for name in names]
        if all(path.exists() and is_of_last_run(path) for path in paths):
            sentences += describe(*paths)
    return sentences


def _ranks(vertices: Path, convergence: Path) -> list[str]:
    ranks, found = read_column(vertices, "rank"), read_json(convergence)
    (name,) = read_names(vertices, [int(ranks.argmax())])
    is_web = name.startswith(("http://", "https://"))
    one, several, edge = ("page", "pages", "link") if is_web else ("vertex", "vertices", "edge")
    called = f"vertex {name}" if name.lstrip("-").isdigit() else shorten(name, columns=_LONGEST_NAME)
    number = f"{count(len(ranks))} {one if len(ranks) == 1 else several}"
    sentences = [f"Of {number} with {counted(found['edges'], edge)}, {_first(ranks, called, several)}."]
    if dangling := found["dangling_vertices"]:
        sentences.append(f"{percent(dangling / len(ranks))} are dangling: they have no {edge}s that count.")
    return sentences


def _first(ranks: npt.NDArray[np.float64], name: str, vertices: str) -> str:
    """Say which vertex ranks first, with its share of the sum of all ranks."""
    highest = float(ranks.max())
    ties = int((ranks >= highest * (1 - _EQUAL)).sum())
    share = f"{percent(highest / float(ranks.sum()))} of all rank"
    uniform = percent(1 / len(ranks))
    if ties == len(ranks) > 1:
        return f"all have the same rank: {share} each"
    if ties > 1:
        return f"{count(ties)} {vertices} rank first, {name} among them: {share} each (uniform: {uniform})"
    return f"{name} ranks first: {share} (uniform: {uniform})"


def _convergence(path: Path) -> list[str]:
    found = read_json(path)
    if not found["log"]:
        return []
    iterations = counted(found["iterations"], "iteration")
    if found["definition"] == "graphalytics":
        return [f"The ranks are those after {iterations}, as the definition graphalytics requires."]
    return [f"After {iterations} the ranks are within {found['error_bound']:.2g} (L1) of the exact ones "
            f"(definition {found['definition']})."]  # fmt: skip


def _groups(communities: Path, convergence: Path) -> list[str]:
    found, vertices = read_json(communities), read_json(convergence)["vertices"]
    components, groups = found["components"], found["communities"]
    said = "One weakly connected component"
    if components["count"] != 1:
        share = percent(components["largest"] / vertices)
        said = f"{count(components['count'])} weakly connected components; the largest has {share} of all vertices"
    if groups["method"] != "none":
        how = f"{groups['method'].capitalize()}, modularity {groups['modularity']:.2f}"
        said += f"; {counted(groups['count'], 'community')} ({how})"
    return [f"{said}."]


def _search(path: Path) -> list[str]:
    found = read_json(path)["evaluation"]
    if not found:
        return []
    right, without = (round(found["judged"] * found[f"success_1{suffix}"]) for suffix in ("", "_without_prior"))
    lost = found["first_right_without_prior_only"]
    p_value = sign_test(right - without + lost, lost)
    test = f"p = {p_value:.2g}, sign test" + (", so the difference is within noise" if p_value > _LEVEL else "")
    return [
        f"The right page is first for {right:,} of {counted(found['judged'], 'query')}, for {without:,} without "
        f"PageRank ({test}); mean reciprocal rank {found['mrr']:.3f} with it, {found['mrr_without_prior']:.3f} without."
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
    """Return the names of some rows of `vertices.parquet`, or their ids where vertices have no names."""
    from pyarrow.dataset import dataset

    table = dataset(vertices)
    column = "name" if "name" in table.schema.names else "vertex"
    return [str(name) for name in table.take(rows, columns=[column])[column].to_pylist()]
