"""Parts of pictures that several applications draw: bars, histograms, thresholds, predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import QuadMesh
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from whitewater.engines import Array
from whitewater.figures import style, words

LEAST_COUNT = 0.7  # the start of logarithmic axes of counts, so that a bar of 1 is visible
OTHER_REASONS = "other reasons"
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CLOCK = [f"{hour}:00" for hour in range(24)]
_TENTHS, _CELLS, _NORMAL_95 = 10, 60, 1.96
# Quantiles that the axes cover: extremes would push most rows into a corner.
_PREDICTED_RANGE, _OBSERVED_RANGE = (0.001, 0.999), 0.99


@dataclass(frozen=True)
class Look:
    """How to name and draw a group; the mark distinguishes groups without color."""

    name: str
    color: str
    mark: str = "o"

    def entry(self, **changes: Any) -> Line2D:
        """Return an entry for a legend."""
        look = {"color": self.color, "marker": self.mark, "linestyle": "none", "label": self.name}
        return Line2D([], [], **look | changes)


def in_percent(*axes: Axis) -> None:
    """Label axes of fractions in percent, with few enough ticks to keep them apart."""
    for axis in axes:
        limit_ticks(axis, 6, steps=[1, 2, 5, 10])
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.6g} %"))


def limit_ticks(axis: Axis, most: int, **how: Any) -> None:
    """Limit a linear axis to ``most`` + 1 ticks; ``how`` is for `matplotlib.ticker.MaxNLocator`."""
    axis.set_major_locator(MaxNLocator(nbins=most, **how))


def write_beside(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], *, coords: Any = "data",
    size: float = 8, color: str = style.TEXT_GRAY, **look: Any,
) -> None:  # fmt: skip
    """Write small text at an offset, in points, from a place."""
    axes.annotate(text, at, xycoords=coords, xytext=offset, textcoords="offset points", size=size, color=color, **look)


def write_at_right(axes: Axes, text: str, y: float, *, away: float = 4, **look: Any) -> None:
    """Write small text to the right of axes, at the height of a value."""
    write_beside(axes, text, (1, y), (away, 0), coords=("axes fraction", "data"), va="center", **look)


def draw_threshold(axes: Axes, value: float, label: str) -> None:
    """Draw a threshold as a horizontal dashed line."""
    axes.axhline(value, color=style.VERMILION, linestyle="--", linewidth=1.2, label=label)


def draw_histogram(axes: Axes, counts: npt.ArrayLike, edges: npt.ArrayLike, **look: Any) -> None:
    """Draw a filled histogram for a logarithmic axis of counts."""
    axes.stairs(counts, edges, fill=True, **{"baseline": LEAST_COUNT} | look)


def draw_week(axes: Axes, values: Array, *, limit: float) -> QuadMesh:
    """Draw values of each hour of the week, (7, 24) from Monday 0 h, NaN hatched; colors span -limit to limit."""
    axes.set_facecolor("white")
    axes.patch.set(hatch="////", edgecolor=style.GRAY)
    mesh = axes.pcolormesh(
        np.arange(25), np.arange(8), values, cmap=style.DIVERGING, vmin=-limit, vmax=limit, edgecolor="white",
        linewidth=0.4,
    )  # fmt: skip
    axes.invert_yaxis()
    axes.grid(False)
    axes.set_yticks(np.arange(7) + 0.5, WEEKDAYS)
    axes.set_xticks(np.arange(0, 24, 3) + 0.5, CLOCK[::3])
    return mesh


def most_frequent(counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Return at most ``most`` reasons with their counts, the rarer ones summed up as `OTHER_REASONS`."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    if len(ordered) > most:
        ordered[most - 1 :] = [(OTHER_REASONS, sum(number for _, number in ordered[most - 1 :]))]
    return dict(ordered)


def draw_bars(
    axes: Axes, bars: Mapping[str, int], *, total: int, colors: Sequence[str], xlabel: str, rows: int, room: float
) -> None:
    """Draw horizontal bars of each name's share of a total, with number and share beside them.

    There is space for at least ``rows`` bars, the first on top. The axis ends at ``room`` times the longest bar.
    """
    places, numbers = np.arange(len(bars)), np.array(list(bars.values()))
    axes.barh(places, numbers / total, 0.7, color=colors)
    for place, number in enumerate(numbers.tolist()):
        text = f"{words.count(number)} ({words.percent(number / total)})"
        write_beside(axes, text, (number / total, place), (4, 0), va="center", size=8.5, color=style.BLACK)
    axes.set_yticks(places, list(bars))
    axes.set(ylim=(max(len(bars), rows) - 0.4, -0.6), xlim=(0, room * numbers.max() / total), xlabel=xlabel)
    axes.grid(visible=False, axis="y")
    in_percent(axes.xaxis)
    # Beyond 100 % the axis only makes room for text.
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= min(1, axes.get_xlim()[1])])
    axes.spines.bottom.set_bounds(0, min(1, axes.get_xlim()[1]))


def log_spaced(last: int, most: int) -> Array:
    """Return at most ``most`` integers from 1 to ``last``, evenly spaced on a logarithmic axis."""
    return np.unique(np.round(np.geomspace(1, last, most)).astype(np.int64))


def draw_predictions(axes: Axes, predicted: Array, observed: Array, look: Look, *, measure: str) -> int:
    """Draw the density of rows and the tenths, from fractions, float64 (rows,); count the rows outside the axes."""
    left, right = np.quantile(predicted, _PREDICTED_RANGE)
    # One scale for both, so that correct predictions lie on the diagonal.
    low, high = min(0.0, left), max(right, np.quantile(observed, _OBSERVED_RANGE))
    room = max(0.03 * (high - low), 0.005)
    bounds = low - room, high + room
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
    in_percent(axes.xaxis, axes.yaxis)
    return len(observed) - int(cells.sum())


def tenths(predicted: Array, observed: Array) -> tuple[Array, Array, Array]:
    """Return mean prediction, mean observation and half its 95 % interval, float64 (tenths,).

    Equal predictions stay together, so there may be fewer than ten tenths.
    """
    edges = np.unique(np.quantile(predicted, np.arange(1, _TENTHS) / _TENTHS))
    rows = pd.DataFrame({"predicted": predicted, "observed": observed})
    groups = rows.groupby(np.searchsorted(edges, predicted, side="right"))
    # A tenth of one row has no margin, and is dropped.
    means = groups.mean().assign(margin=_NORMAL_95 * groups["observed"].sem()).dropna()
    x, y, margin = means.to_numpy().T
    return x, y, margin
