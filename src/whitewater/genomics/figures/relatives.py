"""Who is related to whom: kinship of pairs against the share of variants at which they have no allele in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "Kinship of pairs of samples"
# Samples of different continents are far below 0; how many of them are below this is said.
_LEAST_DRAWN = -0.3
# So far down the axis goes at least, to have room for the legend.
_LEGEND = -0.22
# Somewhat above the 1/2 of duplicates, which is the most that there is.
_MOST_DRAWN = 0.53


@dataclass(frozen=True)
class Degree:
    """A degree of relationship: its name in `relatedness.json`, how it is written and drawn, its least kinship."""

    key: str
    name: str
    least: float
    colour: str
    mark: str


# Bounds of A. Manichaikul et al. (2010), "Robust relationship inference in genome-wide association studies",
# Bioinformatics 26:2867, table 1.
DEGREES = (
    Degree("duplicate", "duplicates or twins", 2**-1.5, style.BLACK, "X"),
    Degree("first", "first degree", 2**-2.5, style.VERMILION, "o"),
    Degree("second", "second degree", 2**-3.5, style.BLUE, "s"),
    Degree("third", "third degree", 2**-4.5, style.GREEN, "^"),
)


@style.styled
def kinship(pairs: pd.DataFrame, *, relatedness: Mapping[str, Any]) -> Figure:
    """Draw the pairs of relatives by degree, and the kinship of all pairs.

    Parameters
    ----------
    pairs
        `kinship.parquet`: ``variants``, ``ibs0`` (numbers of variants) and ``kinship`` of the pairs of relatives.
    relatedness
        The content of `relatedness.json`.
    """
    degrees = relatedness["degrees"]
    found = ", ".join(f"{style.count(degrees[each.key])} {each.name}" for each in DEGREES)
    compared = sum(relatedness["histogram"]["counts"]) + relatedness["undefined"]
    if not compared:
        return style.explained(_TITLE, "No pairs were compared: genomics.relatedness.method is none.")
    subtitle = f"{style.count(compared)} pairs; relatives: {found}."
    bottom, below = _bottom(relatedness["histogram"])
    notes = ["Dotted: the kinship above which one of a pair is set aside."]
    notes += [f"Not shown: {style.count(below)} pairs of a kinship below {bottom:g}."] if below else []
    figure, body = style.titled(9, 4.2, title=_TITLE, subtitle=subtitle, notes=notes)
    left, right = body.subplots(1, 2, sharey=True, width_ratios=(1.5, 1))
    _draw_bounds(left, right)
    _draw_pairs(left, pairs)
    _draw_histogram(right, relatedness["histogram"])
    for axes in (left, right):
        axes.axhline(relatedness["maximum_kinship"], color=style.PURPLE, linestyle=":", linewidth=1.6, zorder=1)
    left.set(ylabel="Kinship (KING-robust)", ylim=(bottom, _MOST_DRAWN))
    return figure


def _draw_bounds(*panels: Axes) -> None:
    for axes in panels:
        for degree in DEGREES:
            axes.axhline(degree.least, color=style.GREY, linestyle="--", linewidth=0.8, zorder=1)


def _draw_pairs(axes: Axes, pairs: pd.DataFrame) -> None:
    axes.set_title("Relatives")
    axes.set_xlabel("Share of variants without a common allele (IBS0)")
    if pairs.empty:
        axes.text(0.5, 0.87, "No pair is related.", transform=axes.transAxes, ha="center", color=style.TEXT_GREY)
        return
    above = np.inf
    for degree in DEGREES:
        rows = pairs[(pairs["kinship"] >= degree.least) & (pairs["kinship"] < above)]
        above = degree.least
        axes.scatter(
            rows["ibs0"] / rows["variants"], rows["kinship"], s=24, color=degree.colour, marker=degree.mark,
            alpha=0.85, edgecolors="white", linewidths=0.3, label=degree.name, zorder=2,
        )  # fmt: skip
    axes.set_xlim(left=-0.002)
    axes.legend(loc="lower left", title="Relationship", alignment="left")
    style.in_percent(axes.xaxis)


def _draw_histogram(axes: Axes, histogram: Mapping[str, Any]) -> None:
    axes.set_title("All pairs")
    axes.stairs(
        histogram["counts"], histogram["edges"], orientation="horizontal", fill=True, color=style.SKY_BLUE,
        baseline=0.7,
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set(xlim=(0.7, 3 * max([10, *histogram["counts"]])), xlabel="Pairs")
    for degree, above in zip(DEGREES, (0.5, *(each.least for each in DEGREES)), strict=False):
        axes.annotate(
            degree.name, (1, (degree.least + above) / 2), xycoords=("axes fraction", "data"), xytext=(4, 0),
            textcoords="offset points", va="center", size=8, color=style.TEXT_GREY,
        )  # fmt: skip


def _bottom(histogram: Mapping[str, Any]) -> tuple[float, int]:
    """Return the least kinship that is drawn, and the number of pairs below it."""
    edges, counts = np.asarray(histogram["edges"], dtype=float)[:-1], np.asarray(histogram["counts"])
    used = edges[counts > 0]
    bottom = float(np.clip(used.min() - 0.02, _LEAST_DRAWN, _LEGEND)) if len(used) else _LEGEND
    return bottom, int(counts[edges < bottom - 1e-9].sum())
