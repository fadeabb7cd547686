"""Ridge regressions and random forests for groups of rows: selected by cross-validation, tested on later rows, stored.

A generic grid search copies the data for each candidate and fold and scores on the host. Here, each worker gets the
rows once; a task selects its fold, fits and scores on its device, and returns three numbers. Models are stored without
pickle: `<group>/ridge.json` and `<group>/forest.treelite`, as treelite serializes it.
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
NO_SPREAD = 1e-20  # a target with less variance is constant up to rounding
REFERENCE = "hour_mean"  # the baseline
# Loading a forest takes seconds and device memory, so each process does it once for all tasks and threads.
_load_forest, _LOADING = cache(forest_from_treelite), Lock()
_CONSTANT = 1e-9  # a column with less standard deviation, relative to its mean, is constant up to rounding

Group = TypeVar("Group", bound=str)
Rows = tuple[Array, Array, Array]  # features, target and time
Candidate = tuple[str, dict[str, Any]]  # "ridge" or "forest", and its parameters


class Scores(NamedTuple):
    """Errors of predictions."""

    squared_error: float  # mean
    r2: float | None  # None for a constant target
    mae: float


@dataclass(frozen=True)
class LinearModel:
    """A linear model of the columns of `Features.linear`, in their units."""

    coefficients: tuple[float, ...]
    intercept: float

    def predict(self, features: Array, forms: Features, device: Device) -> Array:
        """Return predictions as float64 (rows,) for float64 (rows, features)."""
        return forms.linear(features, device) @ device.to_device(np.array(self.coefficients)) + self.intercept


@dataclass(frozen=True)
class Models:
    """The two models of a group."""

    ridge: LinearModel
    forest: bytes  # serialized by treelite

    def predict(self, features: Array, forms: Features, device: Device) -> dict[str, Array]:
        """Return the predictions of each model as float64 (rows,) for float64 (rows, features)."""
        with _LOADING:
            forest = _load_forest(self.forest, device)
        return {"ridge": self.ridge.predict(features, forms, device), "forest": forest(forms.tree(features, device))}


@dataclass(frozen=True)
class Trained:
    """The models of a group, and how they predict its held-out rows.

    ``metrics`` has ``search``, the scores of all candidates and the best ones; ``held_out``, see `evaluate`;
    ``effects``, what a standard deviation of each column adds to the ridge's prediction; and ``importances``, the share
    of each feature in what the forest's splits explain.
    """

    models: Models
    predictions: dict[str, Array]  # of the held-out rows by model, float64 (rows,) on the host
    metrics: dict[str, Any]


def fit_groups(
    splits: Mapping[Group, tuple[Sample, Sample]], run: Run[Search], *, forms: Features, workers: Workers
) -> dict[Group, Trained]:
    """Select the models of each group by cross-validation, fit them on its training rows, test them on the others.

    ``splits`` has the training rows of each group, in random order, and the held-out rows. The most expensive tasks
    come first, so that all workers finish at about the same time.
    """

    def place(rows: Sample) -> Any:
        return workers.place(tuple(map(run.local_device.to_device, (rows.features, rows.target, rows.time))))

    placed = {group: (place(training), place(held_out)) for group, (training, held_out) in splits.items()}
    options: dict[str, Any] = {"forms": forms, "settings": run.settings, "device": run.device}
    candidates, folds = list(enumerate(grid(run.settings))), range(run.settings.folds)
    keys = [(number, fold, group) for (number, _), fold, group in product(reversed(candidates), folds, placed)]
    tasks = [(candidates[number][1], fold, placed[group][0]) for number, fold, group in keys]
    fold_scores = workers.map(partial(score_fold, **options), tasks, label="search", ordered=True)
    by_key = dict(zip(keys, fold_scores, strict=True))
    training = [
        ([summarize(each, [by_key[number, fold, group] for fold in folds]) for number, each in candidates], *parts)
        for group, parts in placed.items()
    ]
    return dict(zip(placed, workers.map(partial(train, **options), training, label="train", ordered=True), strict=True))


def grid(settings: Search) -> list[Candidate]:
    """Return the candidates, from the most to the least regular, which is also from the cheapest to the costliest."""
    depths, trees = sorted(settings.forest.depths), sorted(settings.forest.trees)
    return [
        *(("ridge", {"alpha": alpha}) for alpha in sorted(settings.ridge_alphas, reverse=True)),
        *(("forest", {"trees": count, "depth": depth}) for depth, count in product(depths, trees)),
    ]


def summarize(candidate: Candidate, folds: Sequence[Scores]) -> dict[str, Any]:
    """Return a candidate and its scores, as in `metrics.json`."""
    return {
        "model": candidate[0],
        "parameters": candidate[1],
        "folds": [{"r2": fold.r2, "mae": fold.mae} for fold in folds],
        "rmse": math.sqrt(fmean(fold.squared_error for fold in folds)),
        "mae": fmean(fold.mae for fold in folds),
    }


def choose(results: Sequence[Mapping[str, Any]], model: str) -> dict[str, Any]:
    """Return the parameters of a model with the smallest error over the folds; of equals, the most regular."""
    best = min((result for result in results if result["model"] == model), key=itemgetter("rmse"))
    return dict(best["parameters"])


def score_fold(task: tuple[Candidate, int, Rows], *, forms: Features, settings: Search, device: Device) -> Scores:
    """Fit a candidate outside a fold and score it on the fold: consecutive rows, because their order is random."""
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
    """Fit the best candidates on all training rows of a group, and test the models, as stored, on its later rows."""
    results, *parts = task
    (features, target, time), (later_features, observed, later_time) = (map(device.to_device, rows) for rows in parts)
    best = {model: choose(results, model) for model in ("ridge", "forest")}
    linear, effects = fit_ridge(features, target, **best["ridge"], forms=forms, device=device)
    fitted: Any = fit_forest(features, target, **best["forest"], forms=forms, settings=settings, device=device)
    models = Models(linear, forest_as_treelite(fitted, device))
    predictions = models.predict(later_features, forms, device)
    baselines = {
        "constant": device.xp.full(len(observed), target.mean()),
        REFERENCE: hour_mean(target, time, later_time, device),
    }
    metrics = {
        "search": {"candidates": results, "best": best},
        "held_out": evaluate(observed, baselines | predictions, settings=settings, device=device),
        "effects": dict(zip(forms.linear_columns(), device.to_host(effects).tolist(), strict=True)),
        "importances": dict(zip(forms.features, device.to_host(fitted.feature_importances_).tolist(), strict=True)),
    }
    return Trained(models, {name: device.to_host(each) for name, each in predictions.items()}, metrics)


def fit_ridge(
    features: Array, target: Array, *, alpha: float, forms: Features, device: Device
) -> tuple[LinearModel, Array]:
    """Fit a ridge regression on standardized columns of ``features``, float64 (rows, features).

    Returns the model in the units of the columns, and what one standard deviation of each column adds to the
    prediction: float64 (columns,) on the device.
    """
    xp = device.xp
    columns = forms.linear(features, device)
    mean = columns.mean(axis=0)
    columns -= mean
    # `std` would allocate another array of the size of all columns.
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
    """Fit a random forest; each tree sees at most ``rows_per_tree`` rows, drawn with replacement."""
    fraction = min(1.0, settings.forest.rows_per_tree / len(target))
    forest = random_forest(device, trees=trees, depth=depth, sample_fraction=fraction, seed=settings.seed)
    forest.fit(forms.tree(features, device), target.astype(device.xp.float32))
    return forest


def hour_mean(target: Array, time: Array, later_time: Array, device: Device) -> Array:
    """Return the mean of the training rows of the same hour of the day, or of all rows; times are in microseconds."""
    xp, hours = device.xp, time // HOUR % 24
    rows, total = (xp.bincount(hours, weights=weights, minlength=24) for weights in (None, target))
    return xp.where(rows > 0, total / xp.maximum(rows, 1), target.mean())[later_time // HOUR % 24]


def scores(observed: Array, predicted: Array) -> Scores:
    """Return the errors of predictions; both arrays are (rows,)."""
    squared_error = float(((observed - predicted) ** 2).mean())
    spread = float(((observed - observed.mean()) ** 2).mean())
    r2 = 1 - squared_error / spread if spread > NO_SPREAD else None
    return Scores(squared_error, r2, float(abs(observed - predicted).mean()))


def evaluate(observed: Array, predictions: Mapping[str, Array], *, settings: Search, device: Device) -> dict[str, Any]:
    """Return R2 and the mean absolute error of each model, and its gain over `REFERENCE`, with intervals.

    Intervals are percentiles of a bootstrap of rows: B. Efron and R. Tibshirani, "An Introduction to the Bootstrap",
    1993, chapter 13. All models share the resamples, so differences are paired; the host draws them for each device.

    ``observed`` and the predictions by model are float64 (rows,) on the device. Each model has ``r2`` and ``mae``; all
    but the reference also ``r2_gain`` (its R2 minus the reference's) and ``mae_gain`` (the reference's error minus its
    own), each as ``value``, ``low`` and ``high``: None for a constant target.
    """
    xp = device.xp
    # Centering leaves R2 unchanged, and the variance then loses no digits to a large mean.
    centered = observed - observed.mean()
    errors = [observed - prediction for prediction in predictions.values()]
    moments = xp.stack([centered, centered**2, *(error**2 for error in errors), *map(xp.abs, errors)], axis=1)
    weights = _weights(len(observed), settings, device)
    # Row 0 is the sample, the others are its resamples.
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
    """Yield the weights of rows, float64 (rows,): ones, and then how often each replicate draws each row."""
    yield device.xp.ones(rows)
    for replicate in range(settings.bootstrap):
        resample = np.random.default_rng([settings.seed, replicate]).integers(0, rows, rows)
        yield device.to_device(np.bincount(resample, minlength=rows).astype(np.float64))


def _interval(values: Array) -> dict[str, float | None]:
    low, high = np.quantile(values[1:], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    numbers = {"value": values[0], "low": low, "high": high}
    return {name: float(number) if np.isfinite(number) else None for name, number in numbers.items()}


def save(
    models: Mapping[str, Models], directory: Path, *, form: Format, described: Mapping[str, Any], columns: Iterable[str]
) -> None:
    """Write models into a directory and, last, the signed file of the format with their description."""
    files: dict[str, str] = {}
    for group, each in models.items():
        linear = json_bytes({"columns": columns, **vars(each.ridge)})
        contents = {f"{group}/ridge.json": linear, f"{group}/forest.treelite": each.forest}
        files |= {name: write_file(directory / name, data) for name, data in contents.items()}
    form.write_signed(directory, described, files)


def load(directory: Path, group: str, *, form: Format, files: Mapping[str, Any]) -> Models:
    """Read and check the models of a group; ``files`` are those of `Format.read_signed`."""
    linear = json.loads(form.read_file(directory, f"{group}/ridge.json", files))
    forest = form.read_file(directory, f"{group}/forest.treelite", files)
    return Models(LinearModel(tuple(linear["coefficients"]), linear["intercept"]), forest)
