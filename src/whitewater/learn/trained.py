"""Ridge regressions and random forests of groups of rows: chosen by cross-validation, tested on later rows, and stored.

The slow way of a grid search is to hand an estimator to a generic one: each of the candidates x folds fits then moves
its own copy of the data, and scores its predictions on the host. Here the rows are placed once on each worker; a task
picks its fold there, fits, predicts and scores with arrays of its device, and three numbers come back.

Files are JSON and treelite, each with its SHA-256, so that reading one runs no code of its own:

=========================== ============================================================================
file                        content
=========================== ============================================================================
of the format               format, version, what a model is of, its groups, and the SHA-256 of the others
`<group>/ridge.json`        columns, their coefficients, intercept
`<group>/forest.treelite`   random forest as treelite serializes it
=========================== ============================================================================
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.io.folder import Format, write_file
from whitewater.io.store import json_bytes
from whitewater.learn.config import Search
from whitewater.learn.estimators import forest_as_treelite, forest_from_treelite, random_forest, ridge
from whitewater.learn.evaluate import Scores, evaluate, scores
from whitewater.learn.features import Features
from whitewater.learn.sample import TimeSplit
from whitewater.step import Run

HOUR = 3_600_000_000  # microseconds
# The baseline: the mean of the hour.
REFERENCE = "hour_mean"
# Loading a forest takes seconds, and memory of the device: a process loads it once, however many tasks and threads.
_loaded, _LOADING = cache(forest_from_treelite), Lock()
# A column that varies less than this, relative to its mean, is constant but for rounding.
_CONSTANT = 1e-9

Group = TypeVar("Group", bound=str)
# Features, target and time of the rows that a worker holds.
Rows = tuple[Array, Array, Array]


# A model of the grid, "ridge" or "forest", and its parameters.
Candidate = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class LinearModel:
    """A linear model of the columns of `Features.linear`, in their order and units."""

    coefficients: tuple[float, ...]
    intercept: float

    def predict(self, features: Array, forms: Features, device: Device) -> Array:
        """Return predictions as float64 (rows,) for float64 (rows, features)."""
        predictions: Array = forms.linear(features, device) @ device.to_device(np.array(self.coefficients))
        return predictions + self.intercept


@dataclass(frozen=True)
class Models:
    """The two models of a group; the forest is as treelite serializes it."""

    ridge: LinearModel
    forest: bytes

    def predict(self, features: Array, forms: Features, device: Device) -> dict[str, Array]:
        """Return the predictions of each model as float64 (rows,) for float64 (rows, features)."""
        with _LOADING:
            forest = _loaded(self.forest, device)
        ridge = self.ridge.predict(features, forms, device)
        return {"ridge": ridge, "forest": forest(forms.tree(features, device))}


@dataclass(frozen=True)
class Trained:
    """The models of a group, their predictions of its held-out rows, float64 (rows,) on the host, and their metrics.

    ``metrics`` hold ``search``, the scores of all candidates and the best ones; ``held_out``, see
    `whitewater.learn.evaluate.evaluate`; ``effects``, what a standard deviation of each column adds to the ridge's
    prediction; and ``importances``, the share of each feature in what the forest's splits explain.
    """

    models: Models
    predictions: dict[str, Array]
    metrics: dict[str, Any]


def fit_groups(
    splits: Mapping[Group, TimeSplit], run: Run[Search], *, forms: Features, workers: Workers
) -> dict[Group, Trained]:
    """Choose the models of each group by cross-validation, fit them on its training rows, test them on those held out.

    The rows are placed on the workers once.
    """
    placed: dict[Group, tuple[Any, ...]] = {
        group: tuple(
            workers.place(tuple(map(run.local_device.to_device, (part.features, part.target, part.time))))
            for part in (split.training, split.held_out)
        )
        for group, split in splits.items()
    }
    options: dict[str, Any] = {"forms": forms, "settings": run.settings, "device": run.device}
    results = search({group: training for group, (training, _) in placed.items()}, workers=workers, **options)
    tasks = [(results[group], *parts) for group, parts in placed.items()]
    return dict(zip(placed, workers.map(partial(train, **options), tasks, label="train", ordered=True), strict=True))


def grid(settings: Search) -> list[Candidate]:
    """Return the candidates, from the most to the least regular, which is also from the cheapest to the dearest."""
    depths, trees = sorted(settings.forest.depths), sorted(settings.forest.trees)
    return [
        *(("ridge", {"alpha": alpha}) for alpha in sorted(settings.ridge_alphas, reverse=True)),
        *(("forest", {"trees": count, "depth": depth}) for depth, count in product(depths, trees)),
    ]


def search(
    training: Mapping[Group, Rows], *, forms: Features, settings: Search, device: Device, workers: Workers
) -> dict[Group, list[dict[str, Any]]]:
    """Return each candidate of the grid with its scores on each fold and over all, for each group of rows.

    ``training`` are the rows of each group, in random order, or what stands for them in a task. The most expensive
    tasks come first, so that no worker is left with one at the end.
    """
    candidates, folds = [*enumerate(grid(settings))], range(settings.folds)
    keys = [(number, fold, group) for number, _ in reversed(candidates) for fold in folds for group in training]
    tasks = [(candidates[number][1], fold, training[group]) for number, fold, group in keys]
    work = partial(score_fold, forms=forms, settings=settings, device=device)
    found = dict(zip(keys, workers.map(work, tasks, label="search", ordered=True), strict=True))
    return {
        group: [summarize(each, [found[number, fold, group] for fold in folds]) for number, each in candidates]
        for group in training
    }


def summarize(candidate: Candidate, folds: Sequence[Scores]) -> dict[str, Any]:
    """Return a candidate with its scores, as in `metrics.json`."""
    return {
        "model": candidate[0],
        "parameters": candidate[1],
        "folds": [{"r2": fold.r2, "mae": fold.mae} for fold in folds],
        "rmse": math.sqrt(fmean(fold.squared_error for fold in folds)),
        "mae": fmean(fold.mae for fold in folds),
    }


def choose(results: Sequence[Mapping[str, Any]], model: str) -> dict[str, Any]:
    """Return the parameters of a model with the smallest error over the folds; of equals, the most regular."""
    best = min((each for each in results if each["model"] == model), key=itemgetter("rmse"))
    return dict(best["parameters"])


def score_fold(task: tuple[Candidate, int, Rows], *, forms: Features, settings: Search, device: Device) -> Scores:
    """Fit a candidate on the rows outside a fold, and score it on those inside.

    Rows are in a random order, such as that of their hash, so folds of consecutive rows are random, too.
    """
    (model, parameters), fold, rows = task
    features, target, _ = map(device.to_device, rows)
    first, last = (len(target) * each // settings.folds for each in (fold, fold + 1))
    inside, observed = features[first:last], target[first:last]
    features, target = (device.xp.concatenate([each[:first], each[last:]]) for each in (features, target))
    if model == "ridge":
        linear, _ = fit_ridge(features, target, **parameters, forms=forms, device=device)
        return scores(observed, linear.predict(inside, forms, device))
    forest = fit_forest(features, target, **parameters, forms=forms, settings=settings, device=device)
    return scores(observed, forest.predict(forms.tree(inside, device)))


def train(
    task: tuple[list[dict[str, Any]], Rows, Rows], *, forms: Features, settings: Search, device: Device
) -> Trained:
    """Fit the best candidates on all training rows of a group, and test them on its held-out rows.

    The scores are those of the models as they are stored.
    """
    results, *parts = task
    (features, target, time), (later_features, observed, later_time) = (map(device.to_device, rows) for rows in parts)
    best = {model: choose(results, model) for model in ("ridge", "forest")}
    linear, effects = fit_ridge(features, target, **best["ridge"], forms=forms, device=device)
    fitted: Any = fit_forest(features, target, **best["forest"], forms=forms, settings=settings, device=device)
    models = Models(linear, forest_as_treelite(fitted, device))
    of_models = models.predict(later_features, forms, device)
    predictions = {
        "constant": device.xp.full(len(observed), target.mean()),
        REFERENCE: hour_mean(target, time, later_time, device),
        **of_models,
    }
    importances = device.to_host(fitted.feature_importances_).tolist()
    metrics = {
        "search": {"candidates": results, "best": best},
        "held_out": evaluate(
            observed, predictions, reference=REFERENCE, replicates=settings.bootstrap, seed=settings.seed, device=device
        ),
        "effects": dict(zip(forms.linear_columns(), device.to_host(effects).tolist(), strict=True)),
        "importances": dict(zip(forms.features, importances, strict=True)),
    }
    return Trained(models, {name: device.to_host(each) for name, each in of_models.items()}, metrics)


def fit_ridge(
    features: Array, target: Array, *, alpha: float, forms: Features, device: Device
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
    fitted = ridge(device, alpha=alpha).fit(columns, target)
    coefficients = fitted.coef_ / scale
    intercept = float(fitted.intercept_) - float(mean @ coefficients)
    return LinearModel(tuple(device.to_host(coefficients).tolist()), intercept), fitted.coef_


def fit_forest(
    features: Array, target: Array, *, trees: int, depth: int, forms: Features, settings: Search, device: Device
) -> Any:
    """Fit a random forest of which each tree sees ``rows_per_tree`` rows at most, drawn with replacement."""
    fraction = min(1.0, settings.forest.rows_per_tree / len(target))
    forest = random_forest(device, trees=trees, depth=depth, sample_fraction=fraction, seed=settings.seed)
    forest.fit(forms.tree(features, device), target.astype(device.xp.float32))
    return forest


def hour_mean(target: Array, time: Array, later_time: Array, device: Device) -> Array:
    """Return the mean of the training rows of the same hour of the day; of all, where an hour has none.

    Times are int64 microseconds.
    """
    xp = device.xp
    hours = time // HOUR % 24
    rows = xp.bincount(hours, minlength=24)
    total = xp.bincount(hours, weights=target, minlength=24)
    means = xp.where(rows > 0, total / xp.maximum(rows, 1), target.mean())
    prediction: Array = means[later_time // HOUR % 24]
    return prediction


def save(
    models: Mapping[str, Models], directory: Path, *, form: Format, described: Mapping[str, Any], columns: Iterable[str]
) -> None:
    """Write models into a directory, the file of the format, with what describes them, last."""
    files: dict[str, str] = {}
    for group, each in models.items():
        linear = json_bytes({"columns": columns, **vars(each.ridge)})
        stored = {f"{group}/ridge.json": linear, f"{group}/forest.treelite": each.forest}
        files |= {name: write_file(directory / name, data) for name, data in stored.items()}
    form.write_signed(directory, described, files)


def load(directory: Path, group: str, *, form: Format, files: Mapping[str, Any]) -> Models:
    """Read the models of a group; ``files`` are those of `Format.read_signed`, by which every byte is checked."""
    linear = json.loads(form.read_file(directory, f"{group}/ridge.json", files))
    forest = form.read_file(directory, f"{group}/forest.treelite", files)
    return Models(LinearModel(tuple(linear["coefficients"]), linear["intercept"]), forest)
