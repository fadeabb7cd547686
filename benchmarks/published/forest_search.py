"""R15: a random search of 100 settings of a random forest by 5 folds, over 1e8 rows of 10 columns.

The source gives neither the data nor the settings. Here the data are Jerome Friedman's first function ("Multivariate
Adaptive Regression Splines", Annals of Statistics 19, 1991), which has 10 columns, five of which matter; the forests
are small, so that 500 of them are fitted in the time of a benchmark. As published each fit is a Dask task that is sent
its data and is scored on the host.

Forests differ between libraries, so that the answer is what the search did and how good its models are, not their
numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from pydantic import JsonValue

from benchmarks.published import model_search
from benchmarks.published.dask_cluster import dask_client
from benchmarks.published.row import BOTH, ONE_BLAS_THREAD, SEED, CallCase, Row, Timed, Variant, Work
from benchmarks.report import Size
from whitewater.engines import Device
from whitewater.learn.estimators import random_forest

ROWS = 100_000_000
COLUMNS = 10
TRIES = 100
FOLDS = 5
SPACE: Mapping[str, list[Any]] = {
    "trees": list(range(1, 7)),
    "depth": [4, 6, 8, 10],
    "sample_fraction": [0.4, 0.55, 0.7, 0.85, 1.0],
}
# The noise is a 25th of the variance of the target: no model can explain more. A constant explains 0.
EXPLAINED = (0.4, 0.97)
FEW_TREES, MANY_TREES = 2, 5

Setting = dict[str, Any]
Data = tuple[Any, Any]


@dataclass(frozen=True)
class Found:
    """Scores, float64 (settings, folds), and the forest of the best setting, fitted on all rows."""

    scores: Any
    forest: Any


def rows(work: Work) -> int:
    """Return the number of rows, of which each fold needs some."""
    return max(100, round(ROWS * work.scale))


def draw(work: Work) -> Data:
    """Return columns (rows, 10) and target (rows,), both float32, on the host."""
    from sklearn.datasets import make_friedman1

    x, y = make_friedman1(rows(work), n_features=COLUMNS, noise=1.0, random_state=SEED)
    return x.astype(np.float32), y.astype(np.float32)


def settings() -> list[Setting]:
    """Return the settings that are tried: drawn without replacement, the same for a seed."""
    from sklearn.model_selection import ParameterSampler

    return list(ParameterSampler(SPACE, TRIES, random_state=SEED))


def answer(found: Found) -> JsonValue:
    """Return how many fits were scored, of which settings, and whether the scores are those of good forests."""
    tried, means = settings(), found.scores.mean(axis=1)
    trees = np.array([setting["trees"] for setting in tried])
    least, most = EXPLAINED
    return {
        "fits": int(np.isfinite(found.scores).sum()),
        "settings": hashlib.sha256(json.dumps(tried, sort_keys=True).encode()).hexdigest(),
        "best_explains_most": bool(least < means.max() < most),
        # One draw of the settings in the wrong order, and this does not hold.
        "more_trees_are_better": bool(means[trees >= MANY_TREES].mean() > means[trees <= FEW_TREES].mean()),
        "refitted": found.forest is not None,
    }


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Each fit is a Dask task that is sent its rows from the host, and is scored on the host."""
    from sklearn.model_selection import KFold

    device = work.device
    (x, y), tried = draw(work), settings()
    with dask_client(device, work.cluster, threads=work.threads) as client:

        def call() -> Found:
            scores = [
                client.submit(fit_and_score, device, setting, (x[train], y[train]), (x[test], y[test]), pure=False)
                for setting in tried
                for train, test in KFold(FOLDS).split(x)
            ]
            table = np.reshape(client.gather(scores), (len(tried), FOLDS))
            best = tried[int(np.argmax(table.mean(axis=1)))]
            return Found(table, client.submit(fit, device, best, (x, y), pure=False).result())

        yield Timed(call, answer=answer)


def fit(device: Device, setting: Setting, data: Data) -> Any:
    """Move rows to the device and fit a forest."""
    x, y = data
    return random_forest(device, **setting, seed=SEED).fit(device.to_device(x), device.to_device(y))


def fit_and_score(device: Device, setting: Setting, train: Data, test: Data) -> float:
    """Move rows to the device, fit, predict there, and score on the host."""
    from sklearn.metrics import r2_score

    forest = fit(device, setting, train)
    x, y = test
    return float(r2_score(y, device.to_host(forest.predict(device.to_device(x)))))


@contextmanager
def each_fit(work: Work) -> Iterator[Timed]:
    """`model_search`: the data are sent to each worker once a call, and every score is computed on the device."""
    device = work.device
    data, tried = draw(work), settings()
    with device.workers(work.cluster, threads=work.threads) as workers:

        def call() -> Found:
            factory = partial(random_forest, device, seed=SEED)
            found = model_search.search(
                factory, tried, data, folds=FOLDS, scorer=model_search.r2, device=device, workers=workers
            )
            return Found(found.scores, found.estimator)

        yield Timed(call, answer=answer)


def case(name: str, *, share: float) -> CallCase:
    """Return the search in a share of the rows."""
    return CallCase(
        name=name,
        variants=(
            Variant("tuned", each_fit, devices=BOTH, environment=ONE_BLAS_THREAD),
            Variant("as_published", as_published, devices=BOTH, environment=ONE_BLAS_THREAD),
        ),
        oracle="as_published",
        size=lambda work: Size(rows=rows(work), bytes=4 * rows(work) * (COLUMNS + 1), basis="memory"),
        share=share,
    )


ROW = Row(
    id="R15",
    name="forest_search",
    title="Random search of 100 settings of a random forest by 5 folds, 1e8 rows of 10 columns",
    cases=(case("", share=1.0), case("quarter", share=0.25)),
)
