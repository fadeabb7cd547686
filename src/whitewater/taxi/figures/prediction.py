"""How well the models predict held-out trips: predicted against observed tip fractions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater import style
from whitewater.devices import Array
from whitewater.taxi.figures.services import LOOKS, MEASURE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODELS = {"ridge": "Ridge regression", "forest": "Random forest"}
_TITLE = "Predicted against observed tips of held-out trips"
_TENTHS = 10
_CELLS = 60
# Extremes that would leave the bulk of the trips in a corner; how many trips lie outside is said.
_PREDICTED_RANGE = (0.001, 0.999)
_OBSERVED_RANGE = 0.99
_NORMAL_95 = 1.96


@style.styled
def predicted_against_observed(predictions: pd.DataFrame, *, metrics: Mapping[str, Any]) -> Figure:
    """Draw for each service and model the held-out trips, and the mean observed in each tenth of the predictions.

    Parameters
    ----------
    predictions
        `predictions.parquet`: ``service``, ``observed``, and a column for each model, as fractions.
    metrics
        The content of `metrics.json`; services that it says were skipped are named with the reason.
    """
    services = [service for service in LOOKS if service in set(predictions["service"])]
    notes = _skipped(metrics) or ([] if services else ["No model was fitted."])
    if not services:
        return style.explained(_TITLE, *notes)
    subtitle = (
        "Points: mean observed in each tenth of the predictions, with 95 % interval; dashed: right on average. "
        "Grey: trips, the darker the more (logarithmic). MAE: mean absolute error."
    )
    single = len(services) == 1
    rows, columns = (1, len(MODELS)) if single else (len(MODELS), len(services))
    figure, body = style.titled(4.7 * columns, 3.5 * rows, title=_TITLE, subtitle=subtitle, notes=notes)
    panels = iter(body.subplots(rows, columns, squeeze=False).flat)
    for model, name in MODELS.items():
        for service in services:
            trips = predictions[predictions["service"] == service]
            axes = next(panels)
            beyond = _draw_trips(axes, trips[model].to_numpy(float), trips["observed"].to_numpy(float), service=service)
            score, sample = _score(metrics, service, model), _sample(len(trips), beyond)
            axes.set_title(f"{LOOKS[service].name}, {name.lower()}\n{score}\n{sample}", size=9.5)
    return figure


def tenths(predicted: Array, observed: Array) -> tuple[Array, Array, Array]:
    """Return the mean predicted and the mean observed in each tenth of the predictions, and half its 95 % interval.

    All float64 (tenths,); fewer than ten where many predictions are equal, because equal predictions stay together.
    """
    edges = np.unique(np.quantile(predicted, np.arange(1, _TENTHS) / _TENTHS))
    tenth = np.searchsorted(edges, predicted, side="right")
    trips = np.bincount(tenth, minlength=len(edges) + 1)
    kept = trips > 1
    trips = trips[kept]
    x, y, squares = (
        np.bincount(tenth, weights, len(kept))[kept] / trips for weights in (predicted, observed, observed**2)
    )
    deviation = np.sqrt(np.maximum(squares - y**2, 0) * trips / (trips - 1))
    return x, y, _NORMAL_95 * deviation / np.sqrt(trips)


def _draw_trips(axes: Axes, predicted: Array, observed: Array, *, service: str) -> int:
    """Draw the density of trips and the tenths, and return how many trips lie outside the axes."""
    left, right = _widened(*np.quantile(predicted, _PREDICTED_RANGE))
    top = _widened(0, float(np.quantile(observed, _OBSERVED_RANGE)))[1]
    cells, *_ = np.histogram2d(predicted, observed, bins=_CELLS, range=((left, right), (0, top)))
    density = np.log1p(cells).T
    axes.imshow(
        np.where(density > 0, density, np.nan), cmap=style.DENSITY, origin="lower", aspect="auto",
        extent=(left, right, 0, top), vmin=0, vmax=1.6 * max(float(density.max()), 1.0), interpolation="nearest",
    )  # fmt: skip
    axes.plot([left, right], [left, right], "--", color=style.BLACK, linewidth=1)
    x, y, margin = tenths(predicted, observed)
    look = LOOKS[service]
    axes.errorbar(
        x, y, yerr=margin, color=look.colour, marker=look.mark, markeredgecolor="black", markersize=6, linewidth=1.5
    )
    axes.set(
        xlim=(left, right), ylim=(0, top), xlabel=f"Predicted {MEASURE.lower()}", ylabel=f"Observed {MEASURE.lower()}"
    )
    axes.grid(visible=False)
    style.in_percent(axes.xaxis, axes.yaxis)
    return len(observed) - int(cells.sum())


def _widened(low: float, high: float) -> tuple[float, float]:
    """Return the range with some room, and of some width where all values are equal."""
    room = max(0.03 * (high - low), 0.005)
    return low - room, high + room


def _score(metrics: Mapping[str, Any], service: str, model: str) -> str:
    held_out = metrics["services"][service]["held_out"][model]
    r2, error = held_out["r2"], held_out["mae"]
    return f"R² {_interval(r2, 1)}, MAE {_interval(error, 100)} points"


def _interval(estimate: Mapping[str, float | None], factor: float) -> str:
    value, low, high = (estimate[name] for name in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return "unknown"
    digits = 2 if factor == 1 else 1
    return f"{factor * value:.{digits}f} [{factor * low:.{digits}f}, {factor * high:.{digits}f}]"


def _sample(trips: int, beyond: int) -> str:
    outside = f", {style.count(beyond)} outside" if beyond else ""
    return f"n = {style.count(trips)}{outside}"


def _skipped(metrics: Mapping[str, Any]) -> list[str]:
    skipped = {service: each for service, each in metrics["services"].items() if each["status"] == "skipped"}
    return [f"{LOOKS[service].name}: no model, {each['reason']}." for service, each in skipped.items()]
