"""Predictions beside what was observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from whitewater.engines import Array
from whitewater.figures import shapes, style
from whitewater.figures.shapes import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TENTHS, _CELLS, _NORMAL_95 = 10, 60, 1.96
# Extremes that would leave the bulk of the rows in a corner; how many rows lie outside is said.
_PREDICTED_RANGE, _OBSERVED_RANGE = (0.001, 0.999), 0.99


def draw_predictions(axes: Axes, predicted: Array, observed: Array, look: Look, *, measure: str) -> int:
    """Draw the density of rows and the tenths, and return how many rows lie outside the axes.

    ``predicted`` and ``observed`` are fractions, float64 (rows,), and ``measure`` is what they are called.
    """
    left, right = np.quantile(predicted, _PREDICTED_RANGE)
    # One scale for both, so that what is right lies at 45 degrees.
    bounds = _widened(min(0.0, left), max(right, float(np.quantile(observed, _OBSERVED_RANGE))))
    cells, *_ = np.histogram2d(predicted, observed, bins=_CELLS, range=(bounds, bounds))
    density = np.log1p(cells).T
    axes.imshow(
        np.where(density > 0, density, np.nan), cmap=style.DENSITY, origin="lower", aspect="equal",
        extent=(*bounds, *bounds), vmin=0, vmax=1.6 * max(float(density.max()), 1.0), interpolation="nearest",
    )  # fmt: skip
    axes.plot(bounds, bounds, "--", color=style.BLACK, linewidth=1)
    x, y, margin = tenths(predicted, observed)
    axes.errorbar(
        x, y, yerr=margin, color=look.color, marker=look.mark, markeredgecolor="black", markersize=6, linewidth=1.5
    )
    axes.set(xlim=bounds, ylim=bounds, xlabel=f"Predicted {measure}", ylabel=f"Observed {measure}")
    axes.grid(visible=False)
    shapes.in_percent(axes.xaxis, axes.yaxis)
    return len(observed) - int(cells.sum())


def tenths(predicted: Array, observed: Array) -> tuple[Array, Array, Array]:
    """Return the mean predicted and the mean observed in each tenth of the predictions, and half its 95 % interval.

    All float64 (tenths,); fewer than ten where many predictions are equal, because equal predictions stay together.
    """
    edges = np.unique(np.quantile(predicted, np.arange(1, _TENTHS) / _TENTHS))
    tenth = np.searchsorted(edges, predicted, side="right")
    rows = np.bincount(tenth, minlength=len(edges) + 1)
    kept = rows > 1
    rows = rows[kept]
    x, y, squares = (
        np.bincount(tenth, weights, len(kept))[kept] / rows for weights in (predicted, observed, observed**2)
    )
    deviation = np.sqrt(np.maximum(squares - y**2, 0) * rows / (rows - 1))
    return x, y, _NORMAL_95 * deviation / np.sqrt(rows)


def _widened(low: float, high: float) -> tuple[float, float]:
    """Return the range with some room, and of some width where all values are equal."""
    room = max(0.03 * (high - low), 0.005)
    return low - room, high + room


def interval(estimate: Mapping[str, float | None], factor: float, digits: int) -> str:
    """Return an estimate times a factor, with its interval, as text."""
    known = [factor * number for name in ("value", "low", "high") if (number := estimate[name]) is not None]
    if len(known) < 3:
        return "unknown"
    value, low, high = known
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
