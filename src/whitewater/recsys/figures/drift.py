"""How far each column is from the first day, day by day, or by whatever the log has for days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater import style
from whitewater.recsys.drift_measures import VERDICTS
from whitewater.recsys.figures.names import shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

_MOST_COLUMNS = 40
# Inches of a row; of fewer rows, these are higher.
_ROW = 0.215
_LEAST_ROWS = 3
# Cells beside each other; of more days, several are one cell.
_MOST_CELLS = 60
# In so many there is room for the number.
_MOST_WRITTEN = 12
# Light to dark, of ColorBrewer, which lists it as safe for any colour vision.
_COLOURS = "YlOrBr"
_SHORT = {"psi": "PSI", "ks": "KS", "jensen_shannon": "JS", "new_categories": "new"}

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Cells:
    """A row for each column, a cell for each span of days: the greatest PSI, NaN for none, and the worst verdict.

    ``verdict`` is the place in `VERDICTS`; ``days`` are the first and the last one of each span, (spans, 2).
    """

    psi: Floats
    verdict: Integers
    days: Integers


@style.styled
def drift(found: Mapping[str, Any]) -> Figure:
    """Draw the population stability index of each column and day as a map, and which of them drift.

    Parameters
    ----------
    found
        The content of `drift.json`.
    """
    period = found["period"]
    title = f"Drift from the first {period}"
    if not found["columns"]:
        return style.explained(title, "The log has no column of numbers or categories.")
    if len(found["days"]) < 2:
        return style.explained(title, f"All rows are of one {period}: there is no later one to compare with it.")
    shown = sorted(found["columns"], key=_worst)[:_MOST_COLUMNS]
    cells = _cells(shown)
    height = 1.9 + _ROW * max(len(shown), _LEAST_ROWS)
    figure, body = style.titled(9, height, title=title, subtitle=_told(found), notes=_notes(found, cells, shown))
    axes, below = body.subplots(2, 1, height_ratios=[_ROW * max(len(shown), _LEAST_ROWS), 0.14])
    threshold = found["thresholds"]["psi"]
    mesh = _draw_cells(axes, cells, threshold=threshold)
    _mark(axes, cells)
    _label(axes, shown, cells, period=period)
    _draw_scale(below, mesh, threshold=threshold)
    return figure


def _worst(column: Mapping[str, Any]) -> tuple[int, float, str]:
    return VERDICTS.index(column["verdict"]), -_most(column), column["name"]


def _most(column: Mapping[str, Any]) -> float:
    return max((each["psi"] for each in column["days"] if each["psi"] is not None), default=0.0)


def _cells(columns: Sequence[Mapping[str, Any]]) -> _Cells:
    days = np.array([each["day"] for each in columns[0]["days"]])
    psi = np.array([[each["psi"] for each in column["days"]] for column in columns], float)
    verdict = np.array([[VERDICTS.index(each["verdict"]) for each in column["days"]] for column in columns])
    starts = np.arange(0, len(days), -(-len(days) // _MOST_CELLS))
    last = np.append(starts[1:], len(days)) - 1
    return _Cells(
        # Of a number and NaN it is the number.
        np.fmax.reduceat(psi, starts, axis=1),
        np.minimum.reduceat(verdict, starts, axis=1),
        np.column_stack([days[starts], days[last]]),
    )


def _told(found: Mapping[str, Any]) -> str:
    drifting, chance = (len(found["summary"][verdict]) for verdict in ("drift", "chance"))
    limits = ", ".join(f"{short} {found['thresholds'][name]:g}" for name, short in _SHORT.items())
    other = f" Above it, but by no more than chance: {style.count(chance)}." if chance else ""
    return (
        f"A column drifts where a measure of some {found['period']} is above its threshold ({limits}) and further than "
        f"chance brings it: {style.count(drifting)} of {style.count(len(found['columns']))}.{other} Reference: "
        f"{found['period']} {found['reference']['day']} with {style.count(found['reference']['rows'])} rows."
    )


def _notes(found: Mapping[str, Any], cells: _Cells, shown: Sequence[Mapping[str, Any]]) -> list[str]:
    period = found["period"]
    notes = [
        "PSI: population stability index; KS: Kolmogorov-Smirnov distance; JS: Jensen-Shannon distance; new: share of "
        f"rows with a category unseen in the first {period}."
    ]
    spans = cells.days[:, 0] != cells.days[:, 1]
    if spans.any():
        notes.append(f"A cell stands for several {period}s: the greatest index and the worst verdict of them.")
    if found["days_without_rows"]:
        notes.append(f"Left out: {style.count(found['days_without_rows'])} {period}s without rows.")
    if np.isnan(cells.psi).any():
        notes.append(f"Grey: no index, for want of values in that {period} or the first.")
    if omitted := len(found["columns"]) - len(shown):
        notes.append(f"Not shown: {style.count(omitted)} columns that drift less.")
    return notes


def _draw_cells(axes: Axes, cells: _Cells, *, threshold: float) -> QuadMesh:
    from matplotlib.colors import LogNorm

    rows, columns = cells.psi.shape
    low, high = threshold / 100, threshold * 10
    axes.set_facecolor(style.LIGHT_GREY)
    mesh = axes.pcolormesh(
        np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5,
        np.ma.masked_invalid(np.clip(cells.psi, low, None)),
        cmap=_COLOURS, norm=LogNorm(low, high), edgecolors="white", linewidth=0.6,
    )  # fmt: skip
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    axes.grid(visible=False)
    if columns <= _MOST_WRITTEN:
        for (row, column), value in np.ndenumerate(cells.psi):
            if not np.isnan(value):
                colour = "white" if value > 1.5 * threshold else "black"
                axes.text(column, row, f"{value:.2f}", ha="center", va="center_baseline", size=7.5, color=colour)
    return mesh


def _mark(axes: Axes, cells: _Cells) -> None:
    """Mark the cells that drift, and those that chance would bring as far."""
    columns = cells.psi.shape[1]
    left = 0.0 if columns > _MOST_WRITTEN else -0.5 + 0.06 * max(1.0, columns / 6)
    for verdict, face, label in (
        ("drift", "black", "drifts"),
        ("chance", "white", "above a threshold, but as by chance"),
    ):
        row, column = np.nonzero(cells.verdict == VERDICTS.index(verdict))
        axes.plot(
            column + left, row, "o", markersize=4.5, markerfacecolor=face, markeredgecolor="black", markeredgewidth=0.7,
            linestyle="none", label=label,
        )  # fmt: skip
    axes.figure.legend(handles=axes.get_lines(), loc="outside upper left", ncols=2)


def _label(axes: Axes, columns: Sequence[Mapping[str, Any]], cells: _Cells, *, period: str) -> None:
    axes.set_yticks(range(len(columns)), [shown_name(each["name"], size=8.5) for each in columns], size=8.5)
    spans = [str(first) if first == last else f"{first} to {last}" for first, last in cells.days.tolist()]
    every = -(-len(spans) // (12 if np.array_equal(*cells.days.T) else 6))
    axes.set_xticks(range(0, len(spans), every), spans[::every])
    axes.set_xlabel(period.capitalize())
    axes.tick_params(length=0)
    beside = axes.get_yaxis_transform()
    for row, column in enumerate(columns):
        above = {name for each in column["days"] for name in each["above"]}
        told = ", ".join(short for name, short in _SHORT.items() if name in above)
        axes.text(1.012, row, told, transform=beside, ha="left", va="center", size=8, color=style.TEXT_GREY)
    if any(each["verdict"] == "drift" for each in columns):
        axes.annotate(
            "drifts by", (1.012, 1), xycoords="axes fraction", xytext=(0, 3), textcoords="offset points", size=8,
            color=style.TEXT_GREY,
        )  # fmt: skip


def _draw_scale(axes: Axes, mesh: QuadMesh, *, threshold: float) -> None:
    scale = axes.figure.colorbar(mesh, cax=axes, orientation="horizontal", extend="both", extendfrac=0.03)
    ticks = [threshold / 100, threshold / 10, threshold, threshold * 10]
    names = [f"{tick:.3g}" for tick in ticks]
    names[2] = f"threshold: {names[2]}"
    scale.set_ticks(ticks, labels=names)
    scale.ax.minorticks_off()
    scale.ax.axvline(threshold, color="black", linewidth=1.5)
    scale.set_label("Population stability index")
