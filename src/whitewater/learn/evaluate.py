"""How well models predict held-out rows: R2 and mean absolute error, with bootstrap intervals.

The percentile bootstrap resamples rows: B. Efron and R. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter
13. All models are scored on the same resamples, so the interval of a difference between two models is paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from whitewater.engines import Array, Device

CONFIDENCE = 0.95
# Variance below which a target is constant but for rounding.
NO_SPREAD = 1e-20
_BLOCK_BYTES = 32_000_000


class Scores(NamedTuple):
    """The mean squared error, R2, which is None where the observed do not vary, and the mean absolute error."""

    squared_error: float
    r2: float | None
    mae: float


def scores(observed: Array, predicted: Array) -> Scores:
    """Return how far predictions are from what was observed, both (rows,)."""
    squared_error = float(((observed - predicted) ** 2).mean())
    spread = float(((observed - observed.mean()) ** 2).mean())
    r2 = 1 - squared_error / spread if spread > NO_SPREAD else None
    return Scores(squared_error, r2, float(abs(observed - predicted).mean()))


def evaluate(
    observed: Array,
    predictions: Mapping[str, Array],
    *,
    reference: str,
    replicates: int,
    seed: int,
    device: Device,
) -> dict[str, Any]:
    """Return R2 and the mean absolute error of each model, with intervals, and what it gains over a reference.

    ``observed`` and the predictions by name of model, ``reference`` among them, are float64 (rows,) on the device.
    ``replicates`` resamples are behind each interval; they are drawn on the host, the same for each device. Of each
    model come ``r2`` and ``mae``, and of all but the reference ``r2_gain`` (its R2 minus the reference's) and
    ``mae_gain`` (the reference's error minus its own), each as ``value``, ``low`` and ``high``: None where the observed
    do not vary.
    """
    xp = device.xp
    moments = _moments(observed, predictions, device)
    once = xp.ones((1, len(observed)))
    weights = (once, *_resamples(len(observed), replicates, seed, device))
    # Row 0 is the sample itself, the others are its resamples.
    sums = np.concatenate([device.to_host(each @ moments) for each in weights])
    r2, mae = _r2_and_mae(sums)
    place = list(predictions).index(reference)
    report: dict[str, Any] = {}
    for position, name in enumerate(predictions):
        report[name] = {"r2": _interval(r2[:, position]), "mae": _interval(mae[:, position])}
        if position != place:
            report[name]["r2_gain"] = _interval(r2[:, position] - r2[:, place])
            report[name]["mae_gain"] = _interval(mae[:, place] - mae[:, position])
    return report


def _moments(observed: Array, predictions: Mapping[str, Array], device: Device) -> Array:
    """Return, row by row, what is summed: 1, y, y squared, and each model's squared and absolute errors."""
    xp = device.xp
    # R2 does not change when a constant is taken away, and the variance loses no digits to a large mean.
    centered = observed - observed.mean()
    errors = [observed - prediction for prediction in predictions.values()]
    columns = [xp.ones(len(observed)), centered, centered**2, *(error**2 for error in errors), *map(xp.abs, errors)]
    moments: Array = xp.stack(columns, axis=1)
    return moments


def _resamples(trips: int, replicates: int, seed: int, device: Device) -> Iterator[Array]:
    """Yield blocks of float64 (replicates, rows): how often each row is drawn; a replicate has its own stream."""
    block = max(1, _BLOCK_BYTES // (8 * trips))
    for first in range(0, replicates, block):
        counts = np.empty((min(block, replicates - first), trips))
        for row in range(len(counts)):
            drawn = np.random.default_rng([seed, first + row]).integers(0, trips, trips)
            counts[row] = np.bincount(drawn, minlength=trips)
        yield device.to_device(counts)


def _r2_and_mae(sums: Array) -> tuple[Array, Array]:
    """Return R2 and the mean absolute error, float64 (resamples, models); R2 is NaN where the target does not vary."""
    models = (sums.shape[1] - 3) // 2
    trips, total, squares = sums[:, 0:1], sums[:, 1:2], sums[:, 2:3]
    spread = squares / trips - (total / trips) ** 2
    spread = np.where(spread > NO_SPREAD, spread, np.nan)
    return 1 - sums[:, 3 : 3 + models] / trips / spread, sums[:, 3 + models :] / trips


def _interval(values: Array) -> dict[str, float | None]:
    value, resampled = values[0], values[1:]
    low, high = np.quantile(resampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    numbers = {"value": value, "low": low, "high": high}
    return {name: float(number) if np.isfinite(number) else None for name, number in numbers.items()}
