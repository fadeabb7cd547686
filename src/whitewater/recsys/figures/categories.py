"""How often categories occur, and how many rows their ids cover."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater import style
from whitewater.recsys.figures.frequencies import Learnt, frequencies, learnt_vocabularies
from whitewater.recsys.figures.names import shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "Categories and their ids"
# Points of a line; more could not be told apart.
_POINTS = 200
_MOST_BARS = 30
_LOOKS = ((style.BLUE, "o"), (style.ORANGE, "s"), (style.GREEN, "^"))


@style.styled
def categories(workflow: Path, *, rows: int) -> Figure:
    """Draw how often the categories of some columns occur by rank, and the share of the training rows that ids cover.

    Parameters
    ----------
    workflow
        The folder of the fitted workflow.
    rows
        Training rows.
    """
    learnt = learnt_vocabularies(workflow)
    if not learnt:
        return style.explained(_TITLE, "The workflow learns no vocabulary: it has no operator Categorify.")
    bars = sorted(learnt, key=lambda each: (_share(each, each.unknown), each.all_values, each.name), reverse=True)
    shown = bars[:_MOST_BARS]
    subtitle = (
        f"{_counted(learnt)} of {style.count(rows)} training rows. Left: how often the "
        f"values with an id of their own occur, {'of some columns' if len(learnt) > 3 else 'by column'}; right: how "
        "many rows have them."
    )
    figure, body = style.titled(
        9, max(4.6, 1.7 + 0.19 * len(shown)), title=_TITLE, subtitle=subtitle, notes=_notes(learnt, shown, rows)
    )
    left, right = body.subplots(1, 2)
    _draw_frequencies(left, learnt)
    _draw_bars(right, shown)
    return figure


def _counted(learnt: Sequence[Learnt]) -> str:
    return f"{style.count(len(learnt))} {'vocabulary' if len(learnt) == 1 else 'vocabularies'}"


def _share(each: Learnt, rows: int) -> float:
    return rows / each.rows if each.rows else 0.0


def _notes(learnt: Sequence[Learnt], shown: Sequence[Learnt], rows: int) -> list[str]:
    notes = []
    if any(each.rows != rows for each in learnt):
        notes.append("Of lists the elements count, and of columns that share a vocabulary the rows of all.")
    if omitted := len(learnt) - len(shown):
        notes.append(f"Not shown: {style.count(omitted)} columns that have fewer rows out of vocabulary.")
    return notes


def _draw_frequencies(axes: Axes, learnt: Sequence[Learnt]) -> None:
    highest = 0.0
    for (role, each), (colour, mark) in zip(_chosen(learnt), _LOOKS, strict=False):
        counts, values = frequencies(each.table)
        rank, count = _by_rank(counts, values)
        highest = max(highest, float(counts.max(initial=0)))
        axes.plot(rank, count, color=colour, marker=mark, markersize=3, linewidth=1, label=_label(role, each))
    for threshold in sorted({each.threshold for _, each in _chosen(learnt) if each.threshold > 1}):
        axes.axhline(
            threshold,
            color=style.VERMILION,
            linestyle="--",
            linewidth=1.2,
            label=f"threshold: {style.count(threshold)} rows",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set(xlabel="Rank of the value", ylabel="Training rows of the value", ylim=(0.7, max(highest, 10) * 2))
    axes.set_xlim(left=0.8, right=max(10.0, axes.get_xlim()[1]))
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=8.5)


def _chosen(learnt: Sequence[Learnt]) -> list[tuple[str, Learnt]]:
    """Return the vocabularies of most values, of as many as the middle one, and of fewest, each once."""
    ordered = sorted(learnt, key=lambda each: (-each.all_values, each.name))
    last = len(ordered) - 1
    places = dict.fromkeys((0, (last + 1) // 2, last))
    roles = {1: ("the only one",), 2: ("largest", "smallest"), 3: ("largest", "median", "smallest")}
    return [(role, ordered[place]) for role, place in zip(roles[len(places)], places, strict=True)]


def _by_rank(
    counts: npt.NDArray[np.int64], values: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return ranks from 1, evenly spread on a logarithmic axis with both ends, and the count of each."""
    last = np.cumsum(values)
    if not len(last):
        return last, counts
    ranks = np.unique(np.round(np.geomspace(1, last[-1], _POINTS)).astype(np.int64))
    return ranks, counts[np.searchsorted(last, ranks)]


def _label(role: str, each: Learnt) -> str:
    name = shown_name(each.name, points=70, size=8.5)
    if not each.all_values:
        return f"{role}, {name}: no value"
    if each.unknown_values is None:
        return f"{role}, {name}: {style.count(each.values)} values given"
    return f"{role}, {name}: {style.count(each.values)} of {style.count(each.all_values)} values"


def _draw_bars(axes: Axes, shown: Sequence[Learnt]) -> None:
    start = np.zeros(len(shown))
    places = np.arange(len(shown))
    for what, colour, rows in (
        ("id of its own", style.BLUE, [each.rows - each.nulls - each.unknown for each in shown]),
        ("out of vocabulary", style.ORANGE, [each.unknown for each in shown]),
        ("null", style.GREY, [each.nulls for each in shown]),
    ):
        shares = np.array([_share(each, number) for each, number in zip(shown, rows, strict=True)])
        axes.barh(places, shares, 0.78, left=start, color=colour, label=what)
        start += shares
    axes.set_yticks(places, [shown_name(each.name, points=80, size=8) for each in shown], size=8)
    axes.set(xlim=(0, 1), ylim=(max(len(shown), 6) - 0.4, -0.6), xlabel="Share of the training rows")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    style.in_percent(axes.xaxis)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=3, fontsize=8.5, columnspacing=1, handlelength=1.2)
