"""How the iteration of PageRank came to its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "How the ranks converged"
_FIXED = "graphalytics"


@style.styled
def convergence(found: Mapping[str, Any]) -> Figure:
    """Draw the change of the ranks in each iteration, and the bound on their distance to the exact ones.

    Parameters
    ----------
    found
        The content of `convergence.json`.
    """
    log = found["log"]
    if not log:
        return style.explained(_TITLE, f"There was no iteration: {_why_none(found)}.")
    iterations = np.array([each["iteration"] for each in log])
    change, bound = (np.array([each[name] for each in log], dtype=float) for name in ("l1_change", "error_bound"))
    subtitle = (
        f"Definition {found['definition']}, damping {found['damping']:g}; {style.count(found['vertices'])} vertices, "
        f"{style.count(found['edges'])} edges. {_told(found)}"
    )
    figure, body = style.titled(9, 3.7, title=_TITLE, subtitle=subtitle, notes=_zeros(change))
    axes = body.subplots()
    for values, colour, mark, name in (
        (bound, style.BLUE, "s", "bound on the distance to the exact ranks"),
        (change, style.ORANGE, "o", "change in an iteration"),
    ):
        shown = values > 0
        axes.plot(iterations[shown], values[shown], color=colour, marker=mark, markersize=3.5, label=f"{name} (L1)")
    if found["definition"] != _FIXED:
        tolerance = found["tolerance"]
        axes.axhline(tolerance, color=style.VERMILION, linestyle="--", linewidth=1.2, label=f"tolerance: {tolerance:g}")
    _scale(axes, iterations=len(log), positive=bool((change > 0).any()))
    axes.legend(loc="best")
    return figure


def _why_none(found: Mapping[str, Any]) -> str:
    return "the graph has no vertex" if not found["vertices"] else "none was asked for"


def _told(found: Mapping[str, Any]) -> str:
    number = len(found["log"])
    iterations = "1 iteration" if number == 1 else f"{number} iterations"
    if found["definition"] == _FIXED:
        return f"The definition asks for exactly {iterations}, converged or not."
    return f"After {iterations} the exact ranks are within {found['error_bound']:.2g}."


def _zeros(change: np.ndarray[Any, np.dtype[np.float64]]) -> list[str]:
    zeros = int((change == 0).sum())
    if not zeros:
        return []
    what = "1 iteration" if zeros == 1 else f"{zeros} iterations"
    return [f"Not shown, for want of a place on a logarithmic axis: {what} without any change."]


def _scale(axes: Axes, *, iterations: int, positive: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_yscale("log")
    axes.set(xlabel="Iteration", ylabel="L1 norm", xlim=(0.5, iterations + 0.5))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True, min_n_ticks=1))
    if not positive:
        axes.text(0.5, 0.5, "The first ranks were exact.", transform=axes.transAxes, ha="center", color=style.TEXT_GREY)
