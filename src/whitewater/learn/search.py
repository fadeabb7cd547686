"""Ridge regressions and random forests, chosen by cross-validation on the workers.

The slow way of a grid search is to hand an estimator to a generic one: each of the candidates x folds fits then moves
its own copy of the data, and scores its predictions on the host. Here the rows are placed once on each worker; a task
picks its fold there, fits, predicts and scores with arrays of its device, and three numbers come back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import pairwise
from statistics import fmean
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.learn.config import Search
from whitewater.learn.estimators import Regressor, forest_from_treelite, random_forest, ridge
from whitewater.learn.evaluate import Scores, scores
from whitewater.learn.features import Features

# Loading a forest takes seconds, and memory of the device: of several threads that want it, one loads it.
_LOADING = Lock()
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
Kind = TypeVar("Kind", RidgeCandidate, ForestCandidate)
# The scores of each candidate on each fold, in the order of the grid.
GridScores = Mapping[Candidate, Sequence[Scores]]
# A candidate, a fold, and the features and target of the training rows: a tuple, because Dask puts data in the place of
# futures within tuples.
FoldTask = tuple[Candidate, int, Array, Array]


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


def grid(settings: Search) -> list[Candidate]:
    """Return the candidates, from the most to the least regular, which is also from the cheapest to the dearest."""
    forest = settings.forest
    return [
        *(RidgeCandidate(alpha) for alpha in sorted(settings.ridge_alphas, reverse=True)),
        *(ForestCandidate(trees, depth) for depth in sorted(forest.depths) for trees in sorted(forest.trees)),
    ]


def search(
    training: Mapping[str, tuple[Array, Array]],
    *,
    forms: Features,
    settings: Search,
    device: Device,
    workers: Workers,
) -> dict[str, GridScores]:
    """Score each candidate of the grid on each fold, for each group of rows.

    ``training`` are features and target of the rows of each group, in random order, or what stands for them in a task.
    The most expensive tasks come first, so that no worker is left with one at the end.
    """
    candidates = grid(settings)
    by_group = {group: dict[Candidate, list[Scores]]((each, []) for each in candidates) for group in training}
    tasks = [(each, fold, group) for each in candidates[::-1] for fold in range(settings.folds) for group in training]
    work = partial(score_fold, forms=forms, settings=settings, device=device)
    data = [(candidate, fold, *training[group]) for candidate, fold, group in tasks]
    results = workers.map(work, data, label="search", ordered=True)
    for (candidate, _, group), result in zip(tasks, results, strict=True):
        by_group[group][candidate].append(result)
    return {**by_group}


def fold_bounds(rows: int, folds: int) -> list[tuple[int, int]]:
    """Return the first and last + 1 row of each fold.

    Rows are in a random order, such as that of their hash, so folds of consecutive rows are random, too.
    """
    return list(pairwise(rows * fold // folds for fold in range(folds + 1)))


def score_fold(task: FoldTask, *, forms: Features, settings: Search, device: Device) -> Scores:
    """Fit a candidate on the rows outside a fold, and score it on those inside."""
    candidate, fold, *data = task
    features, target = map(device.to_device, data)
    first, last = fold_bounds(len(target), settings.folds)[fold]
    inside, observed = features[first:last], target[first:last]
    features, target = (device.xp.concatenate([each[:first], each[last:]]) for each in (features, target))
    if isinstance(candidate, RidgeCandidate):
        linear, _ = fit_ridge(features, target, candidate, forms=forms, device=device)
        return scores(observed, linear.predict(inside, forms, device))
    forest = fit_forest(features, target, candidate, forms=forms, settings=settings, device=device)
    return scores(observed, forest.predict(forms.tree(inside, device)))


def choose(results: GridScores, kind: type[Kind]) -> Kind:
    """Return the candidate of a kind with the smallest squared error over the folds; of equals, the most regular."""
    errors = {each: _squared_error(folds) for each, folds in results.items() if isinstance(each, kind)}
    return min(errors, key=errors.__getitem__)


def report(results: GridScores) -> list[dict[str, Any]]:
    """Return the scores of every candidate and fold, for `metrics.json`."""
    return [
        {
            "model": "ridge" if isinstance(candidate, RidgeCandidate) else "forest",
            "parameters": asdict(candidate),
            "folds": [{"r2": fold.r2, "mae": fold.mae} for fold in folds],
            "rmse": math.sqrt(_squared_error(folds)),
            "mae": fmean(fold.mae for fold in folds),
        }
        for candidate, folds in results.items()
    ]


def _squared_error(folds: Sequence[Scores]) -> float:
    return fmean(fold.squared_error for fold in folds)


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
