"""A ridge regression and a random forest of each group of rows: tested on later rows, and stored as files.

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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.io.folder import Format, write_file
from whitewater.io.store import json_bytes
from whitewater.learn.config import Search
from whitewater.learn.estimators import forest_as_treelite
from whitewater.learn.evaluate import evaluate
from whitewater.learn.features import Features
from whitewater.learn.sample import Split
from whitewater.learn.search import (
    ForestCandidate,
    ForestModel,
    GridScores,
    LinearModel,
    RidgeCandidate,
    choose,
    fit_forest,
    fit_ridge,
    search,
)
from whitewater.step import Run

Group = TypeVar("Group", bound=str)
HOUR = 3_600_000_000  # microseconds
# The baseline: the mean of the hour.
REFERENCE = "hour_mean"
# The scores of the candidates of a group, and features, target and time of its training rows and of its held-out rows:
# a tuple, because Dask puts data in the place of futures within tuples.
TrainTask = tuple[GridScores, Array, Array, Array, Array, Array, Array]


@dataclass(frozen=True)
class Models:
    """The two models of a group."""

    ridge: LinearModel
    forest: ForestModel


@dataclass(frozen=True)
class Trained:
    """The models of a group, and how they predict its held-out rows.

    ``search``: the scores of the candidates that they were chosen from; ``effects``: what a standard deviation of each
    column adds to the ridge's prediction; ``importances``: the share of each feature in what the forest's splits
    explain; ``scores``: see `whitewater.learn.evaluate.evaluate`; ``ridge`` and ``forest``: predictions of the held-out
    rows, float64 (rows,) on the host.
    """

    model: Models
    search: GridScores
    effects: dict[str, float]
    importances: dict[str, float]
    scores: dict[str, Any]
    ridge: Array
    forest: Array


def fit_groups(
    splits: Mapping[Group, Split], run: Run[Search], *, forms: Features, workers: Workers
) -> dict[Group, Trained]:
    """Choose the models of each group by cross-validation, fit them on its training rows, test them on those held out.

    The rows are placed on the workers once.
    """
    placed: dict[Group, tuple[Any, ...]] = {
        group: tuple(
            workers.place(run.local_device.to_device(array))
            for part in (split.training, split.held_out)
            for array in (part.features, part.target, part.time)
        )
        for group, split in splits.items()
    }
    training: dict[str, tuple[Any, Any]] = {group: data[:2] for group, data in placed.items()}
    results = search(training, forms=forms, settings=run.settings, device=run.device, workers=workers)
    tasks = [(results[group], *data) for group, data in placed.items()]
    work = partial(train, forms=forms, settings=run.settings, device=run.device)
    return dict(zip(placed, workers.map(work, tasks, label="train", ordered=True), strict=True))


def train(task: TrainTask, *, forms: Features, settings: Search, device: Device) -> Trained:
    """Fit the best candidates on all training rows of a group, and test them on its held-out rows.

    The scores are those of the models as they are stored.
    """
    results, *data = task
    features, target, time, later_features, observed, later_time = map(device.to_device, data)
    ridge, effects = fit_ridge(features, target, choose(results, RidgeCandidate), forms=forms, device=device)
    best = choose(results, ForestCandidate)
    fitted: Any = fit_forest(features, target, best, forms=forms, settings=settings, device=device)
    forest = ForestModel(forest_as_treelite(fitted, device))
    predictions = {
        "constant": device.xp.full(len(observed), target.mean()),
        REFERENCE: hour_mean(target, time, later_time, device),
        "ridge": ridge.predict(later_features, forms, device),
        "forest": forest.predict(later_features, forms, device),
    }
    importances = device.to_host(fitted.feature_importances_).tolist()
    return Trained(
        Models(ridge, forest),
        results,
        dict(zip(forms.linear_columns(), device.to_host(effects).tolist(), strict=True)),
        dict(zip(forms.features, importances, strict=True)),
        evaluate(
            observed, predictions, reference=REFERENCE, replicates=settings.bootstrap, seed=settings.seed, device=device
        ),
        device.to_host(predictions["ridge"]),
        device.to_host(predictions["forest"]),
    )


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
        ridge = {"columns": columns, "coefficients": each.ridge.coefficients, "intercept": each.ridge.intercept}
        stored = {f"{group}/ridge.json": json_bytes(ridge), f"{group}/forest.treelite": each.forest.serialized}
        files |= {name: write_file(directory / name, data) for name, data in stored.items()}
    form.write_signed(directory, described, files)


def load(directory: Path, group: str, *, form: Format, files: Mapping[str, Any]) -> Models:
    """Read the models of a group; ``files`` are those of `Format.read_signed`, by which every byte is checked."""
    ridge = json.loads(form.read_file(directory, f"{group}/ridge.json", files))
    forest = form.read_file(directory, f"{group}/forest.treelite", files)
    return Models(LinearModel(tuple(ridge["coefficients"]), ridge["intercept"]), ForestModel(forest))
