"""The search agrees with scikit-learn's, and moves the data once."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold

from benchmarks.published.model_search import Search, best_of, fold_slices, r2, search
from whitewater import engines
from whitewater.engines.workers import Workers, thread_workers
from whitewater.learn.estimators import ridge

CPU = engines.resolve("cpu")
ALPHAS = [1e-3, 0.1, 10.0]


def some_data(rows: int = 103) -> tuple[Any, Any]:
    generator = np.random.default_rng(5)
    x = generator.normal(size=(rows, 4)) + 3.0
    return x, x @ [1.0, -2.0, 0.5, 0.0] + generator.normal(size=rows)


def ridges(data: tuple[Any, Any], *, alphas: Sequence[float] = ALPHAS, folds: int = 5) -> Search:
    tried = [{"alpha": alpha} for alpha in alphas]
    with thread_workers(2) as workers:
        return search(partial(ridge, CPU), tried, data, folds=folds, scorer=r2, device=CPU, workers=workers)


def test_scores_and_the_refitted_model_are_those_of_scikit_learn() -> None:
    x, y = some_data()
    theirs = GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=5).fit(x, y)
    ours = ridges((x, y))
    model: Any = ours.estimator
    np.testing.assert_allclose(
        ours.scores.T, [theirs.cv_results_[f"split{fold}_test_score"] for fold in range(5)], rtol=1e-12
    )
    assert best_of(ours.scores) == theirs.best_index_
    np.testing.assert_allclose(model.coef_, theirs.best_estimator_.coef_, rtol=1e-12)


@given(rows=st.integers(2, 200), folds=st.integers(2, 9))
@settings(deadline=None, max_examples=30)
def test_folds_are_those_of_scikit_learn(rows: int, folds: int) -> None:
    folds = min(folds, rows)
    held_out = [test for _, test in KFold(folds).split(np.zeros(rows))]
    assert [list(range(rows))[part] for part in fold_slices(rows, folds)] == [part.tolist() for part in held_out]


def test_the_first_of_equal_settings_is_the_best() -> None:
    assert best_of(ridges(some_data(), alphas=[10.0, 0.1, 0.1]).scores) == 1


def test_estimators_that_overwrite_their_rows_leave_the_data_as_they_were() -> None:
    x, y = some_data()
    before = x.copy(), y.copy()
    ridges((x, y))
    assert np.array_equal(x, before[0])
    assert np.array_equal(y, before[1])


class Watched(Workers):
    """Threads that count what is moved to them."""

    def __init__(self, threads: Workers) -> None:
        super().__init__(threads.pool, threads.count)
        self.placed: list[Any] = []
        self.held: list[Any] = []

    def place(self, value: Any) -> Any:
        self.placed.append(value)
        return value

    def keep_results(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        self.held.extend(arguments)
        return super().keep_results(function, arguments)


def test_the_data_are_sent_once_and_moved_to_the_device_once_for_each_worker() -> None:
    data = some_data()
    with thread_workers(2) as workers:
        watched = Watched(workers)
        search(partial(ridge, CPU), [{"alpha": 1.0}] * 4, data, folds=3, scorer=r2, device=CPU, workers=watched)
    assert [placed is data for placed in watched.placed] == [True]
    assert len(watched.held) == len(watched.threads)


def test_the_error_of_an_estimator_reaches_the_user() -> None:
    factory = partial(ridge, CPU)
    with thread_workers(1) as workers, pytest.raises(TypeError, match="beta"):
        search(factory, [{"beta": 1.0}], some_data(), folds=2, scorer=r2, device=CPU, workers=workers)
