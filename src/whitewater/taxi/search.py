"""Grid search by cross-validation: one task for each candidate and fold, over data that the workers hold already.

The slow way is to hand an estimator to a generic search: each of the candidates x folds fits then moves its own copy of
the data, and scores its predictions on the host. Here the trips are placed once on each worker; a task picks its fold
there, fits, predicts and scores with arrays of its device, and three numbers come back.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Any

from whitewater.config.taxi import Model
from whitewater.devices import Array, Device
from whitewater.taxi.features import FeatureSet, tree_matrix
from whitewater.taxi.fit import ForestCandidate, RidgeCandidate, fit_forest, fit_ridge
from whitewater.taxi.sample import RunTasks
from whitewater.taxi.schema import Service

Candidate = RidgeCandidate | ForestCandidate
# A service, a candidate, a fold, and the features and target of the training trips of the service: a tuple, because
# Dask puts data in the place of futures within tuples.
FoldTask = tuple[Service, Candidate, int, Array, Array]
# Variance below which a target is constant but for rounding.
NO_SPREAD = 1e-20


@dataclass(frozen=True)
class FoldScore:
    """How well a candidate predicted a fold; ``r2`` is None where the fold's target does not vary."""

    service: Service
    candidate: Candidate
    fold: int
    squared_error: float
    r2: float | None
    mae: float


@dataclass(frozen=True)
class Chosen:
    """The best candidates of a service."""

    ridge: RidgeCandidate
    forest: ForestCandidate


def search(
    training: Mapping[Service, tuple[Array, Array]],
    *,
    which: FeatureSet,
    settings: Model,
    device: Device,
    run_tasks: RunTasks,
) -> dict[Service, list[FoldScore]]:
    """Score each candidate of the grid on each fold, for each service.

    ``training`` are features and target of the training trips, or what stands for them in a task. The most expensive
    tasks come first, so that no worker is left with one at the end.
    """
    tasks = [
        (service, candidate, fold, *data)
        for candidate in candidates(settings)
        for fold in range(settings.folds)
        for service, data in training.items()
    ]
    found: dict[Service, list[FoldScore]] = {service: [] for service in training}
    work = partial(score_fold, which=which, settings=settings, device=device)
    for score in run_tasks(work, tasks, label="search"):
        found[score.service].append(score)
    return found


def candidates(settings: Model) -> list[Candidate]:
    """Return the grid, the most expensive candidates first."""
    forests: list[Candidate] = [
        ForestCandidate(trees, depth)
        for trees in sorted(settings.forest.trees, reverse=True)
        for depth in sorted(settings.forest.depths, reverse=True)
    ]
    return forests + [RidgeCandidate(alpha) for alpha in sorted(settings.ridge_alphas)]


def fold_bounds(trips: int, folds: int) -> list[tuple[int, int]]:
    """Return the first and last + 1 row of each fold.

    Trips are in the order of their hash, which is random, so folds of consecutive trips are random, too.
    """
    bounds = [trips * fold // folds for fold in range(folds + 1)]
    return list(pairwise(bounds))


def score_fold(task: FoldTask, *, which: FeatureSet, settings: Model, device: Device) -> FoldScore:
    """Fit a candidate on the trips outside a fold, and score it on those inside."""
    service, candidate, fold, features, target = task
    xp = device.xp
    first, last = fold_bounds(len(target), settings.folds)[fold]
    outside = xp.concatenate([features[:first], features[last:]]), xp.concatenate([target[:first], target[last:]])
    predict = _fit(candidate, *outside, which=which, settings=settings, device=device)
    squared_error, r2, mae = scores(target[first:last], predict(features[first:last]))
    return FoldScore(service, candidate, fold, squared_error, r2, mae)


def scores(observed: Array, predicted: Array) -> tuple[float, float | None, float]:
    """Return the mean squared error, R2 and the mean absolute error; R2 is None where the observed do not vary."""
    squared_error = float(((observed - predicted) ** 2).mean())
    spread = float(((observed - observed.mean()) ** 2).mean())
    r2 = 1 - squared_error / spread if spread > NO_SPREAD else None
    return squared_error, r2, float(abs(observed - predicted).mean())


def choose(found: Iterable[FoldScore]) -> Chosen:
    """Return the candidates with the smallest squared error over the folds; of equals, the most regular one."""
    folds = _by_candidate(found)
    errors = {candidate: fmean(score.squared_error for score in each) for candidate, each in folds.items()}
    return Chosen(
        ridge=min((each for each in errors if isinstance(each, RidgeCandidate)), key=errors.__getitem__),
        forest=min((each for each in errors if isinstance(each, ForestCandidate)), key=errors.__getitem__),
    )


def report(found: Iterable[FoldScore]) -> list[dict[str, Any]]:
    """Return the scores of every candidate and fold, for `metrics.json`."""
    return [
        {
            "model": "ridge" if isinstance(candidate, RidgeCandidate) else "forest",
            "parameters": asdict(candidate),
            "folds": [{"r2": score.r2, "mae": score.mae} for score in folds],
            "rmse": math.sqrt(fmean(score.squared_error for score in folds)),
            "mae": fmean(score.mae for score in folds),
        }
        for candidate, folds in _by_candidate(found).items()
    ]


def _by_candidate(found: Iterable[FoldScore]) -> dict[Candidate, list[FoldScore]]:
    """Return candidates from the most to the least regular, each with its folds in order, however tasks completed."""
    folds: dict[Candidate, list[FoldScore]] = defaultdict(list)
    for score in sorted(found, key=lambda score: (_freedom(score.candidate), score.fold)):
        folds[score.candidate].append(score)
    return folds


def _freedom(candidate: Candidate) -> tuple[int, float, float]:
    if isinstance(candidate, RidgeCandidate):
        return 0, -candidate.alpha, 0
    return 1, candidate.depth, candidate.trees


def _fit(
    candidate: Candidate, features: Array, target: Array, *, which: FeatureSet, settings: Model, device: Device
) -> Callable[[Array], Array]:
    if isinstance(candidate, RidgeCandidate):
        ridge, _ = fit_ridge(features, target, candidate, which=which, device=device)
        return lambda rows: ridge.predict(rows, which, device)
    forest = fit_forest(features, target, candidate, settings=settings, device=device)
    return lambda rows: forest.predict(tree_matrix(rows, device))
