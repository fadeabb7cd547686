"""Search for the best settings of an estimator by cross-validation, with the data moved to each worker once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers

Regressor = Any  # an estimator of scikit-learn or cuML
Setting = Mapping[str, Any]
Factory = Callable[..., Regressor]
Scorer = Callable[[Array, Array], Any]
Data = tuple[Array, Array]


@dataclass(frozen=True)
class Search:
    """What a search has found: ``scores``, float64 (settings, folds), and the best estimator, fitted on all rows."""

    scores: npt.NDArray[np.float64]
    estimator: Regressor


def search(
    factory: Factory, settings: Sequence[Setting], data: Data, *, folds: int, scorer: Scorer, device: Device,
    workers: Workers,
) -> Search:  # fmt: skip
    """Fit and score an estimator with each of the settings on each of the folds, and the best one on all rows.

    ``factory`` is called with a setting as keyword arguments, and its estimators may overwrite their rows. The data,
    columns (rows, columns) and target (rows,), are sent from the host to each worker once, where all fits and
    ``scorer``, of targets and predictions, the higher the better, compute on the device.
    """
    rows = len(data[1])
    placed = workers.place(data)
    copies = workers.keep_results(_on_device, [(device, placed)] * len(workers.threads))
    trials = [(place, part) for place in range(len(settings)) for part in fold_slices(rows, folds)]
    tasks = [
        (copies[trial % len(copies)], dict(settings[place]), part.start, part.stop)
        for trial, (place, part) in enumerate(trials)
    ]
    scores = np.full(len(trials), np.nan)
    for trial, score in workers.as_completed(_score, tasks, {"factory": factory, "scorer": scorer, "device": device}):
        scores[trial] = score
    table = scores.reshape(len(settings), folds)
    refit = [(copies[0], dict(settings[best_of(table)]))]
    ((_, estimator),) = workers.as_completed(_fit, refit, {"factory": factory})
    return Search(table, estimator)


def r2(observed: Array, predicted: Array) -> Any:
    """Return the coefficient of determination of predictions (rows,), as a number on the device of the arrays."""
    # The mean of many float32 has few digits.
    observed = observed.astype(np.float64)
    return 1.0 - ((observed - predicted) ** 2).sum() / ((observed - observed.mean()) ** 2).sum()


def fold_slices(rows: int, folds: int) -> list[slice]:
    """Return the rows that each fold leaves out: as `sklearn.model_selection.KFold` does without shuffling."""
    least, larger = divmod(rows, folds)
    edges = [fold * least + min(fold, larger) for fold in range(folds + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def best_of(scores: npt.NDArray[np.float64]) -> int:
    """Return the row of the highest mean, the first one of equals."""
    return int(np.argmax(scores.mean(axis=1)))


def _on_device(device: Device, data: Data) -> Data:
    x, y = data
    return device.to_device(x), device.to_device(y)


def _score(task: tuple[Data, Setting, int, int], *, factory: Factory, scorer: Scorer, device: Device) -> float:
    (x, y), setting, start, stop = task
    xp = device.xp
    estimator = factory(**setting)
    estimator.fit(xp.concatenate([x[:start], x[stop:]]), xp.concatenate([y[:start], y[stop:]]))
    return float(scorer(y[start:stop], estimator.predict(x[start:stop])))


def _fit(task: tuple[Data, Setting], *, factory: Factory) -> Regressor:
    (x, y), setting = task
    fitted: Regressor = factory(**setting).fit(x.copy(), y)
    return fitted
