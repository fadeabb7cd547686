"""Tip models of a service: a ridge regression and a random forest, chosen by cross-validation, tested on later trips.

The slow way of a grid search is to hand an estimator to a generic one: each of the candidates x folds fits then moves
its own copy of the data, and scores its predictions on the host. Here the trips are placed once on each worker; a task
picks its fold there, fits, predicts and scores with arrays of its device, and three numbers come back.
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

import numpy as np

from whitewater.engines import Array, Device
from whitewater.learn.estimators import Regressor, forest_as_treelite, forest_from_treelite, random_forest, ridge
from whitewater_apps.taxi.config import Model
from whitewater_apps.taxi.evaluate import evaluate, hour_mean_prediction, scores
from whitewater_apps.taxi.features import FeatureSet, linear_columns, linear_matrix, tree_matrix
from whitewater_apps.taxi.sample import RunTasks
from whitewater_apps.taxi.schema import Service

# A column that varies less than this, relative to its mean, is constant but for rounding.
_CONSTANT = 1e-9


@dataclass(frozen=True)
class RidgeCandidate:
    """A ridge regression of the grid."""

    alpha: float


@dataclass(frozen=True)
class ForestCandidate:
    """A random forest of the grid."""

    trees: int
    depth: int


Candidate = RidgeCandidate | ForestCandidate
Chosen = tuple[RidgeCandidate, ForestCandidate]
# A service, a candidate, a fold, and the features and target of the training trips of the service: a tuple, because
# Dask puts data in the place of futures within tuples.
FoldTask = tuple[Service, Candidate, int, Array, Array]
# A service, its candidates, and features, target and pickup time of its training trips and of its held-out trips.
TrainTask = tuple[Service, Chosen, Array, Array, Array, Array, Array, Array]


@dataclass(frozen=True)
class LinearModel:
    """A linear model of the columns of `whitewater_apps.taxi.features.linear_matrix`, in their order and units."""

    coefficients: tuple[float, ...]
    intercept: float

    def predict(self, features: Array, which: FeatureSet, device: Device) -> Array:
        """Return predictions as float64 (trips,) for float64 (trips, features)."""
        coefficients = device.to_device(np.array(self.coefficients))
        return _by_slices(
            lambda rows: linear_matrix(rows, which, device) @ coefficients + self.intercept, features, device
        )


@dataclass(frozen=True)
class ForestModel:
    """A random forest as treelite serialises it."""

    serialised: bytes

    def predict(self, features: Array, device: Device) -> Array:
        """Return predictions as float64 (trips,) for float64 (trips, features)."""
        predict = forest_from_treelite(self.serialised, device)
        return _by_slices(lambda rows: predict(tree_matrix(rows, device)), features, device)


@dataclass(frozen=True)
class ServiceModel:
    """The two models of a service."""

    ridge: LinearModel
    forest: ForestModel


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
class Trained:
    """The models of a service, and how they predict its held-out trips.

    ``effects``: what a standard deviation of each column adds to the ridge's prediction; ``importances``: the share of
    each feature in what the forest's splits explain; ``scores``: see `whitewater_apps.taxi.evaluate.evaluate`;
    ``ridge`` and ``forest``: predictions of the held-out trips, float64 (trips,) on the host.
    """

    service: Service
    model: ServiceModel
    effects: dict[str, float]
    importances: dict[str, float]
    scores: dict[str, Any]
    ridge: Array
    forest: Array


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
    forests: list[Candidate] = [
        ForestCandidate(trees, depth)
        for trees in sorted(settings.forest.trees, reverse=True)
        for depth in sorted(settings.forest.depths, reverse=True)
    ]
    tasks = [
        (service, candidate, fold, *data)
        for candidate in [*forests, *map(RidgeCandidate, sorted(settings.ridge_alphas))]
        for fold in range(settings.folds)
        for service, data in training.items()
    ]
    found: dict[Service, list[FoldScore]] = {service: [] for service in training}
    for score in run_tasks(partial(score_fold, which=which, settings=settings, device=device), tasks, label="search"):
        found[score.service].append(score)
    return found


def fold_bounds(trips: int, folds: int) -> list[tuple[int, int]]:
    """Return the first and last + 1 row of each fold.

    Trips are in the order of their hash, which is random, so folds of consecutive trips are random, too.
    """
    return list(pairwise(trips * fold // folds for fold in range(folds + 1)))


def score_fold(task: FoldTask, *, which: FeatureSet, settings: Model, device: Device) -> FoldScore:
    """Fit a candidate on the trips outside a fold, and score it on those inside."""
    service, candidate, fold, features, target = task
    first, last = fold_bounds(len(target), settings.folds)[fold]
    inside, observed = features[first:last], target[first:last]
    features, target = (device.xp.concatenate([each[:first], each[last:]]) for each in (features, target))
    if isinstance(candidate, RidgeCandidate):
        ridge, _ = fit_ridge(features, target, candidate, which=which, device=device)
        predicted = ridge.predict(inside, which, device)
    else:
        forest = fit_forest(features, target, candidate, settings=settings, device=device)
        predicted = forest.predict(tree_matrix(inside, device))
    return FoldScore(service, candidate, fold, *scores(observed, predicted))


def choose(found: Iterable[FoldScore]) -> Chosen:
    """Return the candidates with the smallest squared error over the folds; of equals, the most regular one."""
    folds = _by_candidate(found)
    errors = {candidate: fmean(score.squared_error for score in each) for candidate, each in folds.items()}
    return (
        min((each for each in errors if isinstance(each, RidgeCandidate)), key=errors.__getitem__),
        min((each for each in errors if isinstance(each, ForestCandidate)), key=errors.__getitem__),
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


def train_service(task: TrainTask, *, which: FeatureSet, settings: Model, device: Device) -> Trained:
    """Fit the chosen candidates on all training trips of a service, and test them on its held-out trips.

    The scores are those of the models as they are stored.
    """
    service, chosen, features, target, pickup, later_features, observed, later_pickup = task
    ridge, effects = fit_ridge(features, target, chosen[0], which=which, device=device)
    fitted: Any = fit_forest(features, target, chosen[1], settings=settings, device=device)
    forest = ForestModel(forest_as_treelite(fitted, device))
    predictions = {
        "constant": device.xp.full(len(observed), target.mean()),
        "hour_mean": hour_mean_prediction(target, pickup, later_pickup, device),
        "ridge": ridge.predict(later_features, which, device),
        "forest": forest.predict(later_features, device),
    }
    importances = device.to_host(fitted.feature_importances_).tolist()
    return Trained(
        service,
        ServiceModel(ridge, forest),
        dict(zip(linear_columns(which), device.to_host(effects).tolist(), strict=True)),
        dict(zip(which.features, importances, strict=True)),
        evaluate(observed, predictions, replicates=settings.bootstrap, seed=settings.seed, device=device),
        device.to_host(predictions["ridge"]),
        device.to_host(predictions["forest"]),
    )


def fit_ridge(
    features: Array, target: Array, candidate: RidgeCandidate, *, which: FeatureSet, device: Device
) -> tuple[LinearModel, Array]:
    """Fit a ridge regression on columns that are standardised by their own mean and standard deviation.

    Returns the model in the units of the columns of ``features``, float64 (trips, features), and float64 (columns,) on
    the device: what one standard deviation of each column adds to the prediction.
    """
    xp = device.xp
    columns = linear_matrix(features, which, device)
    mean = columns.mean(axis=0)
    columns -= mean
    # Without a temporary array of the size of all columns, which `std` would make.
    scale = xp.sqrt(xp.einsum("ij,ij->j", columns, columns) / len(columns))
    scale = xp.where(scale > _CONSTANT * (1 + xp.abs(mean)), scale, 1.0)
    columns /= scale
    fitted = ridge(device, alpha=candidate.alpha).fit(columns, target)
    coefficients = fitted.coef_ / scale
    intercept = float(fitted.intercept_) - float(mean @ coefficients)
    return LinearModel(tuple(device.to_host(coefficients).tolist()), intercept), fitted.coef_


def fit_forest(
    features: Array, target: Array, candidate: ForestCandidate, *, settings: Model, device: Device
) -> Regressor:
    """Fit a random forest of which each tree sees ``rows_per_tree`` trips at most, drawn with replacement.

    It predicts from the form that `whitewater_apps.taxi.features.tree_matrix` gives.
    """
    forest = random_forest(
        device,
        trees=candidate.trees,
        depth=candidate.depth,
        sample_fraction=min(1.0, settings.forest.rows_per_tree / len(target)),
        seed=settings.seed,
    )
    forest.fit(tree_matrix(features, device), target.astype(device.xp.float32))
    return forest


def _by_slices(predict: Callable[[Array], Array], features: Array, device: Device) -> Array:
    """Predict slice by slice, which bounds the memory of the models' own forms of the features."""
    predictions: Array = device.xp.empty(len(features), device.xp.float64)
    for start in range(0, len(features), device.slice_rows):
        part = slice(start, start + device.slice_rows)
        predictions[part] = predict(features[part])
    return predictions
