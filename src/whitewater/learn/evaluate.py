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
    # R2 does not change when a constant is taken away, and the variance loses no digits to a large mean.
    centered = observed - observed.mean()
    errors = [observed - prediction for prediction in predictions.values()]
    moments = xp.stack([centered, centered**2, *(error**2 for error in errors), *map(xp.abs, errors)], axis=1)
    weights = _weights(len(observed), replicates, seed, device)
    # Row 0 is the sample itself, the others are its resamples.
    means = np.stack([device.to_host(each @ moments) for each in weights]) / len(observed)
    spread = means[:, 1] - means[:, 0] ** 2
    spread = np.where(spread > NO_SPREAD, spread, np.nan)
    squared, absolute = means[:, 2:].T.reshape(2, len(errors), -1)
    r2, mae = (dict(zip(predictions, each, strict=True)) for each in (1 - squared / spread, absolute))
    report = {name: {"r2": _interval(r2[name]), "mae": _interval(mae[name])} for name in predictions}
    for name, gains in report.items():
        if name != reference:
            gains["r2_gain"] = _interval(r2[name] - r2[reference])
            gains["mae_gain"] = _interval(mae[reference] - mae[name])
    return report


def _weights(rows: int, replicates: int, seed: int, device: Device) -> Iterator[Array]:
    """Yield how often each row counts, float64 (rows,): once, and then as often as each replicate draws it."""
    yield device.xp.ones(rows)
    for replicate in range(replicates):
        drawn = np.random.default_rng([seed, replicate]).integers(0, rows, rows)
        yield device.to_device(np.bincount(drawn, minlength=rows).astype(np.float64))


def _interval(values: Array) -> dict[str, float | None]:
    value, resampled = values[0], values[1:]
    low, high = np.quantile(resampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    numbers = {"value": value, "low": low, "high": high}
    return {name: float(number) if np.isfinite(number) else None for name, number in numbers.items()}
