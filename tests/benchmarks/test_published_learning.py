"""R13, R14, R15, R20 and R21: every variant gives the right answer, on one Dask cluster that all of them attach to."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_score

from benchmarks.measure import differences
from benchmarks.published import forest_search, futures, joblib_forest
from benchmarks.published.dask_cluster import cpu_dask_client
from benchmarks.published.row import SEED, CallCase, Work
from tests.benchmarks.published import disagreements, tiny_work
from whitewater.engines.config import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with cpu_dask_client(Cluster(kind="threads"), threads=2) as client:
        assert client.scheduler is not None
        yield Cluster(kind="attach", address=client.scheduler.address)


@pytest.fixture
def work(cluster: Cluster, tmp_path: Path) -> Work:
    return replace(tiny_work(tmp_path, scale=3e-5), cluster=cluster)


@pytest.mark.parametrize(
    ("row", "case", "scale"),
    [
        ("ridge_fit", "small", 1.0),
        ("ridge_fit", "large", 2e-4),
        ("grid_search", "28KB", 1.0),
        ("joblib_forest", "", 1e-3),
        ("futures", "", 1e-3),
    ],
)
def test_every_variant_gives_the_answer_of_the_oracle(row: str, case: str, scale: float, work: Work) -> None:
    assert disagreements(row, case, replace(work, scale=scale)) == []


def test_searches_of_forests_score_every_setting_as_scikit_learn_does(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forest_search, "TRIES", 6)
    case = forest_search.ROW.case("")
    assert isinstance(case, CallCase)
    with ExitStack() as stack:
        timed = {each.name: stack.enter_context(each.prepare(replace(work, scale=3e-6))) for each in case.variants}
        found = {name: each.call() for name, each in timed.items()}
        answers = {name: timed[name].answer(each) for name, each in found.items()}
    x, y = forest_search.draw(replace(work, scale=3e-6))
    expected = [cross_val_score(same_forest(setting), x, y, cv=5) for setting in forest_search.settings()[:2]]
    for each in found.values():
        np.testing.assert_allclose(each.scores[:2], expected, rtol=1e-9)
    answer: Any = answers["as_published"]
    assert answers == dict.fromkeys(answers, answer)
    assert {"fits": 30, "best_explains_most": True, "more_trees_are_better": True}.items() <= answer.items()


def same_forest(setting: dict[str, Any]) -> RandomForestRegressor:
    return RandomForestRegressor(
        n_estimators=setting["trees"],
        max_depth=setting["depth"],
        max_samples=setting["sample_fraction"],
        max_features=1 / 3,
        min_samples_leaf=5,
        random_state=SEED,
    )


def test_the_answer_of_a_forest_search_notices_scores_in_the_wrong_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest_search, "TRIES", 6)
    trees = np.array([setting["trees"] for setting in forest_search.settings()], dtype=float)
    scores = np.repeat(trees[:, None] / 10, forest_search.FOLDS, axis=1)
    answers = [forest_search.answer(forest_search.Found(each, "forest")) for each in (scores, 0.7 - scores)]
    assert [each.split(" ")[0] for each in differences(*answers, tolerance=0)] == ["answer.more_trees_are_better"]


@pytest.mark.parametrize("tasks", [1, 2, 3, 7])
def test_shares_of_trees_are_all_trees_once(tasks: int) -> None:
    shares = joblib_forest.shares_of(5, tasks)
    assert [tree for first, count in shares for tree in range(first, first + count)] == list(range(5))


def test_the_integral_is_that_of_the_antiderivative_and_every_branch_is_taken(work: Work) -> None:
    case = futures.ROW.case("")
    assert isinstance(case, CallCase)
    with case.variants[0].prepare(replace(work, scale=2e-3)) as timed:
        total = timed.call()
    assert total.integral == pytest.approx(futures.exact(20), rel=1e-9)
    assert min(total.accepted, total.split, total.resolved) > 0
    # Each split makes two pieces of one.
    assert total.accepted + total.resolved == 20 + total.split
