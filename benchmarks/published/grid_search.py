"""R14: ten penalties of a ridge regression by five folds, on the diabetes data and on them repeated.

``GridSearchCV(Ridge(), {"alpha": logspace(-3, -1, 10)}, cv=5).fit(X, y)``. The source was slow on GPUs because each of
the 50 fits was sent its data and every score was computed on the host: `tasks_with_data` does that. `tuned` sends the
data to each worker once, and fits and scores each model there, see `model_search`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from pydantic import JsonValue

from benchmarks.published import diabetes, model_search
from benchmarks.published.dask_cluster import dask_client
from benchmarks.published.row import BOTH, ONE_BLAS_THREAD, CallCase, Published, Row, Timed, Variant, Work
from whitewater.engines import Device
from whitewater.learn.estimators import ridge

ALPHAS = np.logspace(-3, -1, 10)
FOLDS = 5

Repeats = Callable[[Work], int]
Data = tuple[Any, Any]


class Line(NamedTuple):
    """A linear model: ``coefficients``, float64 (columns,), and ``intercept``."""

    coefficients: Any
    intercept: float


@dataclass(frozen=True)
class Found:
    """The mean score of each penalty, float64 (penalties,), and the model of the best one, fitted on all rows."""

    means: Any
    line: Line


def answer(found: Found) -> JsonValue:
    """Return the scores, the best penalty and its model."""
    return {
        "scores": [float(score) for score in found.means],
        "best_alpha": float(ALPHAS[int(np.argmax(found.means))]),
        "coefficients": [float(each) for each in found.line.coefficients],
        "intercept": float(found.line.intercept),
    }


@contextmanager
def as_published(work: Work, *, repeats: Repeats) -> Iterator[Timed]:
    """scikit-learn, one job after another, which is its default."""
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV

    x, y = diabetes.training_part(repeats(work))
    search = GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=FOLDS)

    def found(fitted: Any) -> JsonValue:
        best = fitted.best_estimator_
        return answer(Found(fitted.cv_results_["mean_test_score"], Line(best.coef_, best.intercept_)))

    yield Timed(lambda: search.fit(x, y), answer=found)


@contextmanager
def tasks_with_data(work: Work, *, repeats: Repeats) -> Iterator[Timed]:
    """Each fit is a Dask task that is sent its rows from the host, and is scored on the host."""
    from sklearn.model_selection import KFold

    device = work.device
    x, y = diabetes.training_part(repeats(work))
    with dask_client(device, work.cluster, threads=work.threads) as client:

        def call() -> Found:
            scores = [
                client.submit(fit_and_score, device, alpha, (x[train], y[train]), (x[test], y[test]), pure=False)
                for alpha in ALPHAS
                for train, test in KFold(FOLDS).split(x)
            ]
            means = np.reshape(client.gather(scores), (len(ALPHAS), FOLDS)).mean(axis=1)
            best = ALPHAS[int(np.argmax(means))]
            return Found(means, client.submit(fit, device, best, x, y, pure=False).result())

        yield Timed(call, answer=answer)


def fit(device: Device, alpha: float, x: Any, y: Any) -> Line:
    """Move rows to the device, fit, and bring the model back."""
    model: Any = ridge(device, alpha=alpha).fit(device.to_device(x).copy(), device.to_device(y))
    return Line(device.to_host(model.coef_), float(model.intercept_))


def fit_and_score(device: Device, alpha: float, train: Data, test: Data) -> float:
    """Move rows to the device, fit, predict there, and score on the host."""
    from sklearn.metrics import r2_score

    x, y = (device.to_device(part) for part in train)
    model = ridge(device, alpha=alpha).fit(x.copy(), y)
    return float(r2_score(test[1], device.to_host(model.predict(device.to_device(test[0])))))


@contextmanager
def each_fit(work: Work, *, repeats: Repeats) -> Iterator[Timed]:
    """`model_search`: every model is fitted and scored on the device, to which the data are sent once a call."""
    device = work.device
    data = diabetes.training_part(repeats(work))
    settings = [{"alpha": alpha} for alpha in ALPHAS]
    with device.workers(work.cluster, threads=work.threads) as workers:

        def call() -> Found:
            found = model_search.search(
                partial(ridge, device),
                settings,
                data,
                folds=FOLDS,
                scorer=model_search.r2,
                device=device,
                workers=workers,
            )
            model: Any = found.estimator
            return Found(found.scores.mean(axis=1), Line(device.to_host(model.coef_), float(model.intercept_)))

        yield Timed(call, answer=answer)


def case(name: str, repeats: Repeats, published: tuple[Published, ...]) -> CallCase:
    """Return the case of one size."""
    return CallCase(
        name=name,
        variants=(
            Variant("tuned", partial(each_fit, repeats=repeats), devices=BOTH, environment=ONE_BLAS_THREAD),
            Variant("as_published", partial(as_published, repeats=repeats)),
            Variant("as_published_dask", partial(tasks_with_data, repeats=repeats), devices=BOTH),
        ),
        oracle="as_published",
        size=lambda work: diabetes.size(repeats(work)),
        published=published,
    )


def scaled(repeats: int) -> Repeats:
    """Return how often the rows are repeated, of which there are ``repeats`` as published."""
    return lambda work: max(1, round(repeats * work.scale))


ROW = Row(
    id="R14",
    name="grid_search",
    title="`GridSearchCV` of 10 penalties of `Ridge` by 5 folds, on 28 KB, 2.8 MB and 28 MB",
    cases=(
        case(
            "28KB",
            lambda work: 1,
            (
                Published("scikit-learn", 0.088),
                Published("Dask-ML", 0.87),
                Published("cuML + scikit-learn", 6.5),
                Published("cuML + Dask-ML", 0.74),
            ),
        ),
        case("2.8MB", scaled(100), (Published("cuML + Dask-ML", 13.8),)),
        case("28MB", scaled(1000), (Published("scikit-learn", 4.87), Published("cuML + Dask-ML", 77.0))),
    ),
)
