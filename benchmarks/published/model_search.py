"""Search for the best settings of an estimator by cross-validation, with the data moved to each worker once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.devices import Array, Device
from whitewater.devices.protocol import Regressor
from whitewater.errors import ConfigError
from whitewater.workers import Workers

Setting = Mapping[str, Any]
Factory = Callable[..., Regressor]
Scorer = Callable[[Array, Array], Any]
Data = tuple[Array, Array]


@dataclass(frozen=True)
class Search:
    """What a search has found: ``scores``, float64 (settings, folds), and the best estimator, fitted on all rows."""

    scores: npt.NDArray[np.float64]
    estimator: Regressor

    @property
    def means(self) -> npt.NDArray[np.float64]:
        """The mean score of each setting."""
        means: npt.NDArray[np.float64] = self.scores.mean(axis=1)
        return means

    @property
    def best(self) -> int:
        """The place of the setting of the highest mean score, the first one of equals."""
        return best_of(self.scores)


def search(
    factory: Factory, settings: Sequence[Setting], data: Data, *, folds: int, scorer: Scorer, device: Device,
    workers: Workers,
) -> Search:  # fmt: skip
    """Fit and score an estimator with each of the settings on each of the folds, and the best one on all rows.

    Parameters
    ----------
    factory
        Called with a setting as keyword arguments it returns an estimator, such as `Device.ridge`. Each estimator gets
        rows of its own, which it may overwrite.
    settings
        The settings that are tried, at least one.
    data
        Columns (rows, columns) and target (rows,), on the host; they are sent to each worker once.
    folds
        Number of parts that the rows are cut into, as they stand, sizes as even as they can be; each is left out once.
        Rows that are in an order that matters must be shuffled before.
    scorer
        Called with targets and predictions, both on the device; returns a number, the higher the better.
    device
        Where estimators and scorer compute.
    workers
        Where the fits run, one after another on each thread.

    Raises
    ------
    ConfigError
        If there are no settings, or fewer than two folds, or more folds than rows.
    """
    rows = len(data[1])
    if not settings:
        raise ConfigError("the search has no settings: give at least one.")
    if not 2 <= folds <= rows:
        raise ConfigError(f"{folds} folds of {rows} rows: give at least 2 folds, and at least one row for each.")
    placed = workers.place(data)
    copies = workers.hold(_on_device, [(device, placed)] * len(workers.threads))
    trials = [(place, part) for place in range(len(settings)) for part in fold_slices(rows, folds)]
    tasks = [
        (copies[trial % len(copies)], dict(settings[place]), part.start, part.stop)
        for trial, (place, part) in enumerate(trials)
    ]
    scores = np.full(len(trials), np.nan)
    for trial, score in workers.completed(_score, tasks, {"factory": factory, "scorer": scorer, "device": device}):
        scores[trial] = score
    table = scores.reshape(len(settings), folds)
    refit = [(copies[0], dict(settings[best_of(table)]))]
    ((_, estimator),) = workers.completed(_fit, refit, {"factory": factory})
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
    return device.from_host(x), device.from_host(y)


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
