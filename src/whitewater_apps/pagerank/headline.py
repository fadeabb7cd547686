"""Summarize the results of a run in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whitewater.figures.words import count, percent, pluralize
from whitewater.io.store import read_json
from whitewater.io.terminal_text import shorten
from whitewater.manifest import is_of_last_run

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# A smaller relative difference between ranks is rounding.
_EQUAL = 1e-9


def headline(results: Path) -> list[str]:
    """Return sentences about the results of one device, such as ``results/pagerank/cpu``."""
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
    ranks, summary = read_column(vertices, "rank"), read_json(convergence)
    (name,) = read_names(vertices, [int(ranks.argmax())])
    is_web = name.startswith(("http://", "https://"))
    singular, plural, edge = ("page", "pages", "link") if is_web else ("vertex", "vertices", "edge")
    label = f"vertex {name}" if name.lstrip("-").isdigit() else shorten(name, columns=100)
    number = f"{count(len(ranks))} {singular if len(ranks) == 1 else plural}"
    sentences = [f"Of {number} with {pluralize(summary['edges'], edge)}, {_describe_first(ranks, label, plural)}."]
    if dangling := summary["dangling_vertices"]:
        sentences.append(f"{percent(dangling / len(ranks))} are dangling: they have no {edge}s that count.")
    return sentences


def _describe_first(ranks: npt.NDArray[np.float64], name: str, vertices: str) -> str:
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
    summary = read_json(path)
    if not summary["log"]:
        return []
    iterations = pluralize(summary["iterations"], "iteration")
    if summary["definition"] == "graphalytics":
        return [f"The ranks are those after {iterations}, as the definition graphalytics requires."]
    return [f"After {iterations} the ranks are within {summary['error_bound']:.2g} (L1) of the exact ones "
            f"(definition {summary['definition']})."]  # fmt: skip


def _groups(communities: Path, convergence: Path) -> list[str]:
    summary, vertices = read_json(communities), read_json(convergence)["vertices"]
    components, groups = summary["components"], summary["communities"]
    sentence = "One weakly connected component"
    if components["count"] != 1:
        share = percent(components["largest"] / vertices)
        sentence = f"{count(components['count'])} weakly connected components; the largest has {share} of all vertices"
    if groups["method"] != "none":
        method = f"{groups['method'].capitalize()}, modularity {groups['modularity']:.2f}"
        sentence += f"; {pluralize(groups['count'], 'community')} ({method})"
    return [f"{sentence}."]


def _search(path: Path) -> list[str]:
    scores = read_json(path)["evaluation"]
    if not scores:
        return []
    right, without = (round(scores["judged"] * scores[f"success_1{suffix}"]) for suffix in ("", "_without_prior"))
    lost = scores["first_right_without_prior_only"]
    p_value = sign_test(right - without + lost, lost)
    test = f"p = {p_value:.2g}, sign test" + (", so the difference is within noise" if p_value > 0.05 else "")
    return [
        f"The right page is first for {right:,} of {pluralize(scores['judged'], 'query')}, for {without:,} without "
        f"PageRank ({test}); mean reciprocal rank {scores['mrr']:.3f} with it, "
        f"{scores['mrr_without_prior']:.3f} without."
    ]


def sign_test(better: int, worse: int) -> float:
    """Return the two-sided p-value of the sign test."""
    changes = better + worse
    tail: int = sum(comb(changes, number) for number in range(min(better, worse) + 1))
    return min(1.0, tail / 2 ** (changes - 1)) if changes else 1.0


def read_column(vertices: Path, name: str) -> npt.NDArray[Any]:
    """Return a numeric column of `vertices.parquet`, in the order of the vertices."""
    import pyarrow.parquet as pq

    column: npt.NDArray[Any] = pq.read_table(vertices, columns=[name])[name].to_numpy()
    return column


def read_names(vertices: Path, rows: Sequence[int]) -> list[str]:
    """Return the names in rows of `vertices.parquet`, or the ids if vertices have no names."""
    from pyarrow.dataset import dataset

    table = dataset(vertices)
    column = "name" if "name" in table.schema.names else "vertex"
    return [str(name) for name in table.take(rows, columns=[column])[column].to_pylist()]
