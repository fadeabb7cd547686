"""Ridge regressions and random forests of groups of rows: chosen by cross-validation, tested on later rows, and stored.

A generic grid search moves a copy of the data for each candidate and fold, and scores predictions on the host. Here the
rows are placed once on each worker; a task picks its fold there, fits and scores on its device, and three numbers come
back.

Reading a stored model runs no code of its own: `<group>/ridge.json` has the columns, their coefficients and the
intercept; `<group>/forest.treelite` is the forest as treelite serializes it.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.io.folder import Format, write_file
from whitewater.io.store import json_bytes
from whitewater.learn.config import Search
from whitewater.learn.estimators import forest_as_treelite, forest_from_treelite, random_forest, ridge
from whitewater.learn.features import Features
from whitewater.learn.sample import Sample
from whitewater.step import Run

HOUR = 3_600_000_000  # microseconds
CONFIDENCE = 0.95
# Variance below which a target is constant but for rounding.
NO_SPREAD = 1e-20
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


class Scores(NamedTuple):
    """The mean squared error, R2, which is None where the observed do not vary, and the mean absolute error."""

    squared_error: float
    r2: float | None
    mae: float


@dataclass(frozen=True)
class LinearModel:
    """A linear model of the columns of `Features.linear`, in their order and units."""

    coefficients: tuple[float, ...]
    intercept: float

    def predict(self, features: Array, forms: Features, device: Device) -> Array:
        """Return predictions as float64 (rows,) for float64 (rows, features)."""
        return forms.linear(features, device) @ device.to_device(np.array(self.coefficients)) + self.intercept


@dataclass(frozen=True)
class Models:
    """The two models of a group; the forest is as treelite serializes it."""

    ridge: LinearModel
    forest: bytes

    def predict(self, features: Array, forms: Features, device: Device) -> dict[str, Array]:
        """Return the predictions of each model as float64 (rows,) for float64 (rows, features)."""
        with _LOADING:
            forest = _loaded(self.forest, device)
        return {"ridge": self.ridge.predict(features, forms, device), "forest": forest(forms.tree(features, device))}


@dataclass(frozen=True)
class Trained:
    """The models of a group, their predictions of its held-out rows, float64 (rows,) on the host, and their metrics.

    ``metrics`` hold ``search``, the scores of all candidates and the best ones; ``held_out``, see `evaluate`;
    ``effects``, what a standard deviation of each column adds to the ridge's prediction; and ``importances``, the share
    of each feature in what the forest's splits explain.
    """

    models: Models
    predictions: dict[str, Array]
    metrics: dict[str, Any]


def fit_groups(
    splits: Mapping[Group, tuple[Sample, Sample]], run: Run[Search], *, forms: Features, workers: Workers
) -> dict[Group, Trained]:
    """Choose the models of each group by cross-validation, fit them on its training rows, test them on those held out.

    ``splits`` are the rows of each group to learn from, in random order, and those held out. The most expensive tasks
    come first, so that no worker is left with one at the end.
    """

    def place(rows: Sample) -> Any:
        return workers.place(tuple(map(run.local_device.to_device, (rows.features, rows.target, rows.time))))

    placed = {group: (place(training), place(held_out)) for group, (training, held_out) in splits.items()}
    options: dict[str, Any] = {"forms": forms, "settings": run.settings, "device": run.device}
    candidates, folds = list(enumerate(grid(run.settings))), range(run.settings.folds)
    keys = list(product(reversed(candidates), folds, placed))
    searched = [(candidate, fold, placed[group][0]) for (_, candidate), fold, group in keys]
    scored = workers.map(partial(score_fold, **options), searched, label="search", ordered=True)
    found = dict(zip(((number, fold, group) for (number, _), fold, group in keys), scored, strict=True))
    tasks = [
        ([summarize(each, [found[number, fold, group] for fold in folds]) for number, each in candidates], *parts)
        for group, parts in placed.items()
    ]
    return dict(zip(placed, workers.map(partial(train, **options), tasks, label="train", ordered=True), strict=True))


def grid(settings: Search) -> list[Candidate]:
    """Return the candidates, from the most to the least regular, which is also from the cheapest to the dearest."""
    depths, trees = sorted(settings.forest.depths), sorted(settings.forest.trees)
    return [
        *(("ridge", {"alpha": alpha}) for alpha in sorted(settings.ridge_alphas, reverse=True)),
        *(("forest", {"trees": count, "depth": depth}) for depth, count in product(depths, trees)),
    ]


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
    """Fit the best candidates on all training rows of a group, and test them as they are stored, on its later rows."""
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
    metrics = {
        "search": {"candidates": results, "best": best},
        "held_out": evaluate(observed, predictions, settings=settings, device=device),
        "effects": dict(zip(forms.linear_columns(), device.to_host(effects).tolist(), strict=True)),
        "importances": dict(zip(forms.features, device.to_host(fitted.feature_importances_).tolist(), strict=True)),
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
    """Return the mean of the training rows of the same hour, or of all if it has none; times are in microseconds."""
    xp, hours = device.xp, time // HOUR % 24
    rows, total = (xp.bincount(hours, weights=weights, minlength=24) for weights in (None, target))
    return xp.where(rows > 0, total / xp.maximum(rows, 1), target.mean())[later_time // HOUR % 24]


def scores(observed: Array, predicted: Array) -> Scores:
    """Return how far predictions are from what was observed, both (rows,)."""
    squared_error = float(((observed - predicted) ** 2).mean())
    spread = float(((observed - observed.mean()) ** 2).mean())
    r2 = 1 - squared_error / spread if spread > NO_SPREAD else None
    return Scores(squared_error, r2, float(abs(observed - predicted).mean()))


def evaluate(observed: Array, predictions: Mapping[str, Array], *, settings: Search, device: Device) -> dict[str, Any]:
    """Return R2 and the mean absolute error of each model, with intervals, and what it gains over `REFERENCE`.

    Intervals are percentiles of a bootstrap of rows: B. Efron and R. Tibshirani, "An Introduction to the Bootstrap",
    1993, chapter 13. All models are scored on the same resamples, so that of a difference is paired; they are drawn on
    the host, the same for each device.

    ``observed`` and the predictions by name of model are float64 (rows,) on the device. Of each model come ``r2`` and
    ``mae``, and of all but the reference ``r2_gain`` (its R2 minus the reference's) and ``mae_gain`` (the reference's
    error minus its own), each as ``value``, ``low`` and ``high``: None where the observed do not vary.
    """
    xp = device.xp
    # R2 does not change when a constant is taken away, and the variance loses no digits to a large mean.
    centered = observed - observed.mean()
    errors = [observed - prediction for prediction in predictions.values()]
    moments = xp.stack([centered, centered**2, *(error**2 for error in errors), *map(xp.abs, errors)], axis=1)
    weights = _weights(len(observed), settings, device)
    # Row 0 is the sample itself, the others are its resamples.
    means = np.stack([device.to_host(each @ moments) for each in weights]) / len(observed)
    spread = means[:, 1] - means[:, 0] ** 2
    spread = np.where(spread > NO_SPREAD, spread, np.nan)
    squared, absolute = means[:, 2:].T.reshape(2, len(errors), -1)
    r2, mae = (dict(zip(predictions, each, strict=True)) for each in (1 - squared / spread, absolute))
    report = {name: {"r2": _interval(r2[name]), "mae": _interval(mae[name])} for name in predictions}
    for name, gains in report.items():
        if name != REFERENCE:
            gains["r2_gain"] = _interval(r2[name] - r2[REFERENCE])
            gains["mae_gain"] = _interval(mae[REFERENCE] - mae[name])
    return report


def _weights(rows: int, settings: Search, device: Device) -> Iterator[Array]:
    """Yield how often each row counts, float64 (rows,): once, and then as often as each replicate draws it."""
    yield device.xp.ones(rows)
    for replicate in range(settings.bootstrap):
        drawn = np.random.default_rng([settings.seed, replicate]).integers(0, rows, rows)
        yield device.to_device(np.bincount(drawn, minlength=rows).astype(np.float64))


def _interval(values: Array) -> dict[str, float | None]:
    low, high = np.quantile(values[1:], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    numbers = {"value": values[0], "low": low, "high": high}
    return {name: float(number) if np.isfinite(number) else None for name, number in numbers.items()}


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
