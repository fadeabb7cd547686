"""What the PageRank application says of its results: only what the files have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy.stats import binomtest

from whitewater_apps.pagerank.headline import headline, sign_test


def write_ranks(
    place: Path, ranks: Sequence[float], *, names: Sequence[str] | None = None, dangling: int = 0, **convergence: Any
) -> None:
    columns = {"vertex": range(10, 10 + len(ranks)), "rank": list(ranks)}
    table = pd.DataFrame(columns if names is None else {**columns, "name": list(names)})
    table.astype({"vertex": int, "rank": float}).to_parquet(place / "vertices.parquet", index=False)
    found = {
        "definition": "networkx", "edges": 7_120, "vertices": len(ranks), "dangling_vertices": dangling, "log": [],
        "iterations": 0, "error_bound": None, **convergence,
    }  # fmt: skip
    (place / "convergence.json").write_text(json.dumps(found))


def write_groups(place: Path, *, components: Sequence[int], communities: int | None) -> None:
    method = "none" if communities is None else "leiden"
    found = {
        "components": {"count": len(components), "largest": max(components)},
        "communities": {
            "method": method,
            "count": communities or 0,
            "modularity": None if communities is None else 0.7,
        },
    }
    (place / "communities.json").write_text(json.dumps(found))


def test_nothing_is_said_of_files_that_are_not_there(tmp_path: Path) -> None:
    assert headline(tmp_path) == []


def test_nothing_is_said_of_queries_that_an_earlier_run_of_another_source_left(tmp_path: Path) -> None:
    write_ranks(tmp_path, [1.0], edges=1)
    found = {"judged": 2, "success_1": 1, "success_1_without_prior": 1, "mrr": 1, "mrr_without_prior": 1,
             "first_right_without_prior_only": 0}  # fmt: skip
    (tmp_path / "queries.json").write_text(json.dumps({"evaluation": found}))
    ranks = "Of 1 vertex with 1 edge, vertex 10 ranks first: 100 % of all rank (uniform: 100 %)."
    assert len(headline(tmp_path)) == 2
    made = [{"path": f"results/pagerank/cpu/{name}"} for name in ("vertices.parquet", "convergence.json")]
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 1, "outputs": made}))
    assert headline(tmp_path) == [ranks]


def test_the_first_page_has_its_share_and_that_of_equal_ranks(tmp_path: Path) -> None:
    names = [f"https://a.example/{number}" for number in range(4)]
    write_ranks(tmp_path, [0.1, 0.2, 0.6, 0.1], names=names, dangling=1)
    assert headline(tmp_path) == [
        "Of 4 pages with 7,120 links, https://a.example/2 ranks first: 60.0 % of all rank (uniform: 25.0 %).",
        "25.0 % are dangling: they have no links that count.",
    ]


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([0.4, 0.4, 0.2], "2 vertices rank first, vertex 10 among them: 40.0 % of all rank each (uniform: 33.3 %)."),
        ([0.25, 0.25, 0.25, 0.25], "all have the same rank: 25.0 % of all rank each."),
        ([1.0], "vertex 10 ranks first: 100 % of all rank (uniform: 100 %)."),
    ],
    ids=["ties", "all equal", "one vertex"],
)
def test_ties_are_not_told_as_a_first(tmp_path: Path, ranks: list[float], said: str) -> None:
    write_ranks(tmp_path, ranks)
    assert headline(tmp_path)[0].endswith(said)


def test_the_bound_is_told_where_the_definition_converges_and_iterations_where_it_does_not(tmp_path: Path) -> None:
    log: dict[str, Any] = {"log": [{}], "iterations": 55, "error_bound": 8.04e-11}
    write_ranks(tmp_path, [0.5, 0.5], **log)
    assert headline(tmp_path)[1:] == [
        "After 55 iterations the ranks are within 8e-11 (L1) of the exact ones (definition networkx)."
    ]
    write_ranks(tmp_path, [0.5, 0.5], **{**log, "definition": "graphalytics"})
    assert headline(tmp_path)[1:] == [
        "The ranks are those after 55 iterations, as the definition graphalytics requires."
    ]


def test_components_and_communities_are_counted(tmp_path: Path) -> None:
    write_ranks(tmp_path, [0.1, 0.2, 0.3, 0.4])
    write_groups(tmp_path, components=[3, 1], communities=1_200)
    assert headline(tmp_path)[-1] == (
        "2 weakly connected components; the largest has 75.0 % of all vertices; 1,200 communities "
        "(Leiden, modularity 0.70)."
    )
    write_groups(tmp_path, components=[4], communities=None)
    assert headline(tmp_path)[-1] == "One weakly connected component."


def test_the_search_is_measured_with_and_without_pagerank_where_answers_are_known(tmp_path: Path) -> None:
    measured = {"judged": 24, "mrr": 0.9583, "mrr_without_prior": 0.727, "success_1": 22 / 24}
    measured |= {"success_1_without_prior": 13 / 24, "first_right_without_prior_only": 0}
    found = {"queries": [], "evaluation": measured}
    (tmp_path / "queries.json").write_text(json.dumps(found))
    assert headline(tmp_path) == [
        "The right page is first for 22 of 24 queries, for 13 without PageRank (p = 0.0039, sign test); "
        "mean reciprocal rank 0.958 with it, 0.727 without."
    ]
    measured["first_right_without_prior_only"] = 11
    (tmp_path / "queries.json").write_text(json.dumps(found))
    assert "(p = 0.15, sign test, so the difference is within noise)" in headline(tmp_path)[0]
    (tmp_path / "queries.json").write_text(json.dumps({"queries": [], "evaluation": None}))
    assert headline(tmp_path) == []


@pytest.mark.parametrize("changes", [(0, 0), (1, 0), (9, 0), (20, 11), (3, 8)])
def test_the_sign_test_is_scipys_binomial_test(changes: tuple[int, int]) -> None:
    expected = binomtest(changes[0], sum(changes)).pvalue if any(changes) else 1.0
    assert sign_test(*changes) == pytest.approx(expected)
