"""Grid search by cross-validation: one task for each candidate and fold, over data that the workers hold already.

The slow way is to hand an estimator to a generic search: each of the candidates x folds fits then moves its own copy of
the data, and scores its predictions on the host. Here the trips are placed once on each worker; a task picks its fold
there, fits, predicts and scores with arrays of its device, and three numbers come back.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from whitewater.config.taxi import Model
from whitewater.devices import Array, Device
from whitewater.taxi.features import FeatureSet, tree_matrix
from whitewater.taxi.fit import FAMILIES, Candidate, Family, ForestCandidate, RidgeCandidate, fit_forest, fit_ridge
from whitewater.taxi.schema import Service
# Variance below which a target is constant but for rounding.
NO_SPREAD = 1e-20
# A service, a candidate, a fold, and the features and target of the training trips of the service: a tuple, because
# Dask puts data in the place of futures within tuples.
FoldTask = tuple[Service, Candidate, int, Array, Array]


@dataclass(frozen=True)
class FoldScore:
    """How well a candidate predicted a fold; ``r2`` is None where the fold's target does not vary."""

    service: Service
    candidate: Candidate
    fold: int
    squared_error: float
    r2: float | None
    mae: float


def candidates(settings: Model) -> list[Candidate]:
    """Return the grid, the most expensive candidates first, so that no worker is left with one at the end."""
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
    return list(zip(bounds[:-1], bounds[1:], strict=True))


def score_fold(task: FoldTask, *, which: FeatureSet, settings: Model, device: Device) -> FoldScore:
    """Fit a candidate on the trips outside a fold, and score it on those inside."""
    service, candidate, fold, features, target = task
    xp = device.xp
    first, last = fold_bounds(len(target), settings.folds)[fold]
    predict = _fit(
        candidate,
        xp.concatenate([features[:first], features[last:]]),
        xp.concatenate([target[:first], target[last:]]),
        which=which,
        settings=settings,
        device=device,
    )
    observed = target[first:last]
    squared_error, r2, mae = scores(observed, predict(features[first:last]))
    return FoldScore(service, candidate, fold, squared_error, r2, mae)


def scores(observed: Array, predicted: Array) -> tuple[float, float | None, float]:
    """Return the mean squared error, R2 and the mean absolute error; R2 is None where the observed do not vary."""
    squared = (observed - predicted) ** 2
    spread = float(((observed - observed.mean()) ** 2).mean())
    r2 = 1 - float(squared.mean()) / spread if spread > NO_SPREAD else None
    return float(squared.mean()), r2, float(abs(observed - predicted).mean())


def best(found: Iterable[FoldScore]) -> dict[Family, Candidate]:
    """Return the candidate of each family with the smallest squared error over the folds; of equals, the simplest."""
    errors = {candidate: fmean(score.squared_error for score in folds) for candidate, folds in _by_candidate(found)}
    return {
        family: min((each for each in errors if each.family == family), key=errors.__getitem__) for family in FAMILIES
    }


def report(found: Iterable[FoldScore]) -> list[dict[str, Any]]:
    """Return the scores of every candidate and fold, for `metrics.json`."""
    return [
        {
            "model": candidate.family,
            "parameters": parameters(candidate),
            "folds": [{"r2": score.r2, "mae": score.mae} for score in folds],
            "rmse": math.sqrt(fmean(score.squared_error for score in folds)),
            "mae": fmean(score.mae for score in folds),
        }
        for candidate, folds in _by_candidate(found)
    ]


def parameters(candidate: Candidate) -> dict[str, float]:
    """Return the parameters of a candidate by name."""
    return {name: value for name, value in asdict(candidate).items() if name != "family"}


def _by_candidate(found: Iterable[FoldScore]) -> list[tuple[Candidate, list[FoldScore]]]:
    """Return candidates from the strongest regularisation to the weakest, each with its folds in order."""
    folds: dict[Candidate, list[FoldScore]] = defaultdict(list)
    for score in sorted(found, key=lambda score: score.fold):
        folds[score.candidate].append(score)
    return sorted(folds.items(), key=lambda item: _complexity(item[0]))


def _complexity(candidate: Candidate) -> tuple[int, float, float]:
    if isinstance(candidate, RidgeCandidate):
        return FAMILIES.index(candidate.family), -candidate.alpha, 0
    return FAMILIES.index(candidate.family), candidate.depth, candidate.trees


def _fit(
    candidate: Candidate, features: Array, target: Array, *, which: FeatureSet, settings: Model, device: Device
) -> Callable[[Array], Array]:
    if isinstance(candidate, RidgeCandidate):
        ridge = fit_ridge(features, target, which=which, alpha=candidate.alpha, device=device)
        return lambda rows: ridge.predict(rows, which, device)
    forest = fit_forest(features, target, candidate=candidate, settings=settings, device=device)
    return lambda rows: forest.predict(tree_matrix(rows, device))
