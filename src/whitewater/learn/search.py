"""Ridge regressions and random forests, chosen by cross-validation on the workers.

The slow way of a grid search is to hand an estimator to a generic one: each of the candidates x folds fits then moves
its own copy of the data, and scores its predictions on the host. Here the rows are placed once on each worker; a task
picks its fold there, fits, predicts and scores with arrays of its device, and three numbers come back.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import pairwise
from statistics import fmean
from threading import Lock
from typing import Any

import numpy as np

from whitewater.engines import Array, Device
from whitewater.learn.config import Search
from whitewater.learn.estimators import Regressor, forest_from_treelite, random_forest, ridge
from whitewater.learn.evaluate import scores
from whitewater.learn.features import Features

# Loading a forest takes seconds, and memory of the device: of several threads that want it, one loads it.
_LOADING = Lock()
# A column that varies less than this, relative to its mean, is constant but for rounding.
_CONSTANT = 1e-9

# Applies a function to tasks, on workers or here, under a label, and yields the results in any order.
RunTasks = Callable[..., Iterator[Any]]


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
# A group, a candidate, a fold, and the features and target of the training rows of the group: a tuple, because Dask
# puts data in the place of futures within tuples.
FoldTask = tuple[str, Candidate, int, Array, Array]


@dataclass(frozen=True)
class LinearModel:
    """A linear model of the columns of `Features.linear`, in their order and units."""

    coefficients: tuple[float, ...]
    intercept: float

    def predict(self, features: Array, forms: Features, device: Device) -> Array:
        """Return predictions as float64 (rows,) for float64 (rows, features)."""
        coefficients = device.to_device(np.array(self.coefficients))
        return _by_slices(lambda rows: forms.linear(rows, device) @ coefficients + self.intercept, features, device)


@dataclass(frozen=True)
class ForestModel:
    """A random forest as treelite serializes it."""

    serialized: bytes

    def predict(self, features: Array, forms: Features, device: Device) -> Array:
        """Return predictions as float64 (rows,) for float64 (rows, features)."""
        with _LOADING:
            predict = _loaded(self.serialized, device)
        return _by_slices(lambda rows: predict(forms.tree(rows, device)), features, device)


@cache
def _loaded(serialized: bytes, device: Device) -> Callable[[Array], Array]:
    """Return the predictions of a stored forest; a process loads it once, however many tasks it predicts in."""
    return forest_from_treelite(serialized, device)


@dataclass(frozen=True)
class FoldScore:
    """How well a candidate predicted a fold; ``r2`` is None where the fold's target does not vary."""

    group: str
    candidate: Candidate
    fold: int
    squared_error: float
    r2: float | None
    mae: float


def search(
    training: Mapping[str, tuple[Array, Array]],
    *,
    forms: Features,
    settings: Search,
    device: Device,
    run_tasks: RunTasks,
) -> dict[str, list[FoldScore]]:
    """Score each candidate of the grid on each fold, for each group of rows.

    ``training`` are features and target of the rows of each group, in random order, or what stands for them in a task.
    The most expensive tasks come first, so that no worker is left with one at the end.
    """
    forests: list[Candidate] = [
        ForestCandidate(trees, depth)
        for trees in sorted(settings.forest.trees, reverse=True)
        for depth in sorted(settings.forest.depths, reverse=True)
    ]
    tasks = [
        (group, candidate, fold, *data)
        for candidate in [*forests, *map(RidgeCandidate, sorted(settings.ridge_alphas))]
        for fold in range(settings.folds)
        for group, data in training.items()
    ]
    found: dict[str, list[FoldScore]] = {group: [] for group in training}
    for score in run_tasks(partial(score_fold, forms=forms, settings=settings, device=device), tasks, label="search"):
        found[score.group].append(score)
    return found


def fold_bounds(rows: int, folds: int) -> list[tuple[int, int]]:
    """Return the first and last + 1 row of each fold.

    Rows are in a random order, such as that of their hash, so folds of consecutive rows are random, too.
    """
    return list(pairwise(rows * fold // folds for fold in range(folds + 1)))


def score_fold(task: FoldTask, *, forms: Features, settings: Search, device: Device) -> FoldScore:
    """Fit a candidate on the rows outside a fold, and score it on those inside."""
    group, candidate, fold, *data = task
    features, target = map(device.to_device, data)
    first, last = fold_bounds(len(target), settings.folds)[fold]
    inside, observed = features[first:last], target[first:last]
    features, target = (device.xp.concatenate([each[:first], each[last:]]) for each in (features, target))
    if isinstance(candidate, RidgeCandidate):
        linear, _ = fit_ridge(features, target, candidate, forms=forms, device=device)
        predicted = linear.predict(inside, forms, device)
    else:
        forest = fit_forest(features, target, candidate, forms=forms, settings=settings, device=device)
        predicted = forest.predict(forms.tree(inside, device))
    return FoldScore(group, candidate, fold, *scores(observed, predicted))


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


def fit_ridge(
    features: Array, target: Array, candidate: RidgeCandidate, *, forms: Features, device: Device
) -> tuple[LinearModel, Array]:
    """Fit a ridge regression on columns that are standardized by their own mean and standard deviation.

    Returns the model in the units of the columns of ``features``, float64 (rows, features), and float64 (columns,) on
    the device: what one standard deviation of each column adds to the prediction.
    """
    xp = device.xp
    columns = forms.linear(features, device)
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
    features: Array, target: Array, candidate: ForestCandidate, *, forms: Features, settings: Search, device: Device
) -> Regressor:
    """Fit a random forest of which each tree sees ``rows_per_tree`` rows at most, drawn with replacement."""
    forest: Regressor = random_forest(
        device,
        trees=candidate.trees,
        depth=candidate.depth,
        sample_fraction=min(1.0, settings.forest.rows_per_tree / len(target)),
        seed=settings.seed,
    )
    forest.fit(forms.tree(features, device), target.astype(device.xp.float32))
    return forest


def _by_slices(predict: Callable[[Array], Array], features: Array, device: Device) -> Array:
    """Predict slice by slice, which bounds the memory of the models' own forms of the features."""
    predictions: Array = device.xp.empty(len(features), device.xp.float64)
    for start in range(0, len(features), device.slice_rows):
        part = slice(start, start + device.slice_rows)
        predictions[part] = predict(features[part])
    return predictions
