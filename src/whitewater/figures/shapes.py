"""What pictures of several applications draw: bars, histograms, thresholds, predictions."""

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

# Where logarithmic axes of counts begin, so that a bar of 1 can be seen.
LEAST_COUNT = 0.7
OTHER_REASONS = "other reasons"
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CLOCK = [f"{hour}:00" for hour in range(24)]
_TENTHS, _CELLS, _NORMAL_95 = 10, 60, 1.96
# Extremes that would leave the bulk of the rows in a corner; how many rows lie outside is said.
_PREDICTED_RANGE, _OBSERVED_RANGE = (0.001, 0.999), 0.99


@dataclass(frozen=True)
class Look:
    """How a group is named and drawn; the mark tells it from others where colors do not."""

    name: str
    color: str
    mark: str = "o"

    def entry(self, **changes: Any) -> Line2D:
        """Return its entry of a legend."""
        look = {"color": self.color, "marker": self.mark, "linestyle": "none", "label": self.name}
        return Line2D([], [], **look | changes)


def in_percent(*axes: Axis) -> None:
    """Label axes of fractions in percent, with few enough ticks to keep them apart."""
    for axis in axes:
        limit_ticks(axis, 6, steps=[1, 2, 5, 10])
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.6g} %"))


def limit_ticks(axis: Axis, most: int, **how: Any) -> None:
    """Let a linear axis have at most so many ticks and one; ``how`` is for `matplotlib.ticker.MaxNLocator`."""
    axis.set_major_locator(MaxNLocator(nbins=most, **how))


def write_beside(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], *, coords: Any = "data",
    size: float = 8, color: str = style.TEXT_GRAY, **look: Any,
) -> None:  # fmt: skip
    """Write small text some points away from a place."""
    axes.annotate(text, at, xycoords=coords, xytext=offset, textcoords="offset points", size=size, color=color, **look)


def write_at_right(axes: Axes, text: str, y: float, *, away: float = 4, **look: Any) -> None:
    """Write small text at the right of axes, at the height of a value."""
    write_beside(axes, text, (1, y), (away, 0), coords=("axes fraction", "data"), va="center", **look)


def draw_threshold(axes: Axes, value: float, label: str) -> None:
    """Draw a level that values are compared with as a dashed line across."""
    axes.axhline(value, color=style.VERMILION, linestyle="--", linewidth=1.2, label=label)


def draw_histogram(axes: Axes, counts: npt.ArrayLike, edges: npt.ArrayLike, **look: Any) -> None:
    """Draw filled steps, for an axis of counts that is logarithmic."""
    axes.stairs(counts, edges, fill=True, **{"baseline": LEAST_COUNT} | look)


def draw_week(axes: Axes, values: Array, *, limit: float) -> QuadMesh:
    """Draw values of each hour of the week, (7, 24) from Monday 0 h, NaN hatched; colors reach from -limit to limit."""
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
    """Return the most frequent of counted reasons, and the others as one where there are more than ``most``."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    if len(ordered) <= most:
        return dict(ordered)
    return {**dict(ordered[: most - 1]), OTHER_REASONS: sum(number for _, number in ordered[most - 1 :])}


def draw_bars(
    axes: Axes, bars: Mapping[str, int], *, total: int, colors: Sequence[str], xlabel: str, rows: int, room: float
) -> None:
    """Draw the share that each name has of a total as a bar from the left, with its number and share beside it.

    The first name is on top, of at least ``rows`` rows; ``room`` is the end of the axis as a multiple of the longest
    bar.
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
    # Room for text is not a share: the axis ends at 100 %.
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= min(1, axes.get_xlim()[1])])
    axes.spines.bottom.set_bounds(0, min(1, axes.get_xlim()[1]))


def log_spaced(last: int, most: int) -> Array:
    """Return at most so many whole numbers from 1 to the last, evenly spread on a logarithmic axis."""
    return np.unique(np.round(np.geomspace(1, last, most)).astype(np.int64))


def draw_predictions(axes: Axes, predicted: Array, observed: Array, look: Look, *, measure: str) -> int:
    """Draw the density of rows and the tenths, and return how many rows lie outside the axes.

    ``predicted`` and ``observed`` are fractions, float64 (rows,), and ``measure`` is what they are called.
    """
    left, right = np.quantile(predicted, _PREDICTED_RANGE)
    # One scale for both, so that what is right lies at 45 degrees.
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
    """Return the mean predicted and the mean observed in each tenth of the predictions, and half its 95 % interval.

    All float64 (tenths,); fewer than ten where many predictions are equal, because equal predictions stay together.
    """
    edges = np.unique(np.quantile(predicted, np.arange(1, _TENTHS) / _TENTHS))
    rows = pd.DataFrame({"predicted": predicted, "observed": observed})
    of_tenth = rows.groupby(np.searchsorted(edges, predicted, side="right"))
    # A tenth of one row has no margin.
    found = of_tenth.mean().assign(margin=_NORMAL_95 * of_tenth["observed"].sem()).dropna()
    x, y, margin = found.to_numpy().T
    return x, y, margin
