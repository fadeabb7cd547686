"""How the rank is spread: few vertices have most of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "PageRank by position"
# Positions that are drawn; more could not be told apart.
_POINTS = 600
# Ranks that differ by less, relatively, are equal but for rounding.
_EQUAL = 1e-9
# A sum that is less has lost rank, and not by rounding.
_WHOLE = 1 - 1e-6
_SHARES = (0.01, 0.1)
# To the left of earlier positions is no room for text.
_LEAST_MARKED = 10


@style.styled
def ranks(values: npt.NDArray[np.float64], *, convergence: Mapping[str, Any]) -> Figure:
    """Draw the ranks by position, both axes logarithmic, and the share of all rank that the first positions have.

    Parameters
    ----------
    values
        float64 (vertices,): the ranks, in any order.
    convergence
        The content of `convergence.json`.
    """
    if len(values) < 2:
        return style.explained(_TITLE, _too_few(len(values)))
    ordered = np.sort(values)[::-1]
    total = float(ordered.sum())
    subtitle = (
        f"{style.count(len(ordered))} vertices, {style.count(convergence['edges'])} edges; definition "
        f"{convergence['definition']}, damping {convergence['damping']:g}. {_told(ordered)}"
    )
    notes = [] if total > _WHOLE else [_lost(total)]
    figure, body = style.titled(9, 3.9, title=_TITLE, subtitle=subtitle, notes=notes)
    left, right = body.subplots(1, 2)
    positions = _positions(len(ordered))
    _draw_ranks(left, positions, ordered)
    _draw_shares(right, positions, np.cumsum(ordered) / total)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set(xlim=(0.8, len(ordered) * 1.25), xlabel="Position")
    return figure


def _too_few(vertices: int) -> str:
    return "The graph has one vertex, which has all rank." if vertices else "The graph has no vertex."


def _told(ordered: npt.NDArray[np.float64]) -> str:
    if ordered[0] - ordered[-1] <= _EQUAL * ordered[0]:
        return "All ranks are equal."
    last = int((ordered <= ordered[-1] * (1 + _EQUAL)).sum())
    return f"The highest is {ordered[0] * len(ordered):.3g} times the mean; {style.count(last)} have the lowest."


def _lost(total: float) -> str:
    return (
        f"The ranks add up to {total:.4g}: by this definition the rank of vertices without out-edges is lost. "
        "Shares are those of the sum."
    )


def _positions(vertices: int) -> npt.NDArray[np.int64]:
    """Return positions from 1 on, evenly spread on a logarithmic axis, both ends among them."""
    return np.unique(np.round(np.geomspace(1, vertices, _POINTS)).astype(np.int64))


def _draw_ranks(axes: Axes, positions: npt.NDArray[np.int64], ordered: npt.NDArray[np.float64]) -> None:
    shown = ordered[positions - 1]
    axes.plot(positions, shown, color=style.BLUE, marker="o", markersize=2.5, linewidth=1, label="rank")
    mean = float(ordered.mean())
    axes.axhline(mean, color=style.VERMILION, linestyle="--", linewidth=1.2, label=f"mean: {mean:.3g}")
    axes.set_yscale("log")
    positive = shown[shown > 0]
    axes.set(ylabel="Rank", ylim=(min(positive.min(), mean) / 2, max(positive.max(), mean) * 2))
    axes.legend(loc="upper right")


def _draw_shares(axes: Axes, positions: npt.NDArray[np.int64], cumulated: npt.NDArray[np.float64]) -> None:
    axes.plot(positions, cumulated[positions - 1], color=style.BLUE, label="of these ranks")
    axes.plot(
        positions, positions / len(cumulated), color=style.GREY, linestyle=":", linewidth=1.4, label="of equal ranks"
    )
    for share in _SHARES:
        position = round(share * len(cumulated))
        if position >= _LEAST_MARKED:
            _mark(axes, position, cumulated, share=share)
    axes.set(ylabel="Share of all rank up to a position", ylim=(0, 1.05))
    axes.legend(loc="upper left")
    style.in_percent(axes.yaxis)


def _mark(axes: Axes, position: int, cumulated: npt.NDArray[np.float64], *, share: float) -> None:
    height = float(cumulated[position - 1])
    axes.plot([position], [height], "o", color=style.VERMILION, markersize=5)
    axes.annotate(
        f"first {100 * share:g} %: {style.percent(height)}", (position, height), xytext=(-5, 5),
        textcoords="offset points", size=8.5, ha="right",
    )  # fmt: skip
