"""Rates of operations against the limits of the machine.

Source: S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model for multicore
architectures", Communications of the ACM 52, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import standing
from benchmarks.limits import Limits
from benchmarks.published.amounts import amount
from benchmarks.published.figures.looks import in_amounts, machine, spoken
from benchmarks.results_file import CaseResult, Results
from benchmarks.standing import AS_PUBLISHED
from whitewater.figures import style
from whitewater.figures.style import fit_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "How near the limits of the machine"
_LETTERS = 8.5
# Height of a label as a share of the axes'.
_LABEL_HEIGHT = 0.045
_LABEL_POINTS = 150.0
# Of a limit, as a factor on the axis.
_NAMES_WIDTH = 30.0
_LEADER = {"arrowstyle": "-", "color": style.LIGHT_GRAY, "linewidth": 0.8, "shrinkB": 4, "relpos": (0, 0.5)}


@dataclass(frozen=True)
class _Point:
    """A case: operations to a byte of its input, and operations a second of ours and of the published code."""

    name: str
    intensity: float
    ours: float
    published: float | None


@style.with_style
def roofline(results: Results) -> Figure:
    """Draw operations a second over operations a byte, for the cases whose operations are counted."""
    points = [point for case in results.cases if (point := _point(case))]
    if not points:
        return style.text_figure(_TITLE, "No case of which operations are counted has figures.")
    subtitle = (
        f"Operations a second over operations for each byte of the input; {machine(results)}. Dashed: the measured "
        "limits."
    )
    notes = [
        "The limit of memory is that of copying, of which bytes read and bytes written count. Operations are those of "
        "the definition: a method that needs fewer of them may be above the limit of products of matrices."
    ]
    figure, body = style.new_figure(10, max(5.2, 0.27 * len(points)), title=_TITLE, subtitle=subtitle, notes=notes)
    # The right part is for the names.
    axes, names = body.subplots(1, 2, width_ratios=(4, 0.95))
    names.set_axis_off()
    axes.set_xscale("log")
    axes.set_yscale("log")
    _set_range(axes, points, results.limits)
    _draw_limits(axes, results.limits)
    _draw_points(axes, points)
    _write_names(axes, points)
    axes.set(xlabel="Operations for each byte of the input", ylabel="Operations a second")
    in_amounts(axes.yaxis, "op/s")
    body.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=3)
    return figure


def _point(case: CaseResult) -> _Point | None:
    report, ours = case.report, standing.figure(case.report, standing.own(case.report))
    if not report.operations or not report.size.bytes or ours is None:
        return None
    published = standing.figure(report, AS_PUBLISHED)
    name = " ".join(part for part in (case.id, spoken(case.row), case.case) if part)
    return _Point(
        name=name,
        intensity=report.operations / report.size.bytes,
        ours=report.operations / ours.median,
        published=report.operations / published.median if published else None,
    )


def _set_range(axes: Axes, points: Sequence[_Point], limits: Limits) -> None:
    x = [point.intensity for point in points]
    rates = [each for point in points for each in (point.ours, point.published) if each]
    ceilings = [rate for name in ("gemm_float64", "gemm_float32") if (rate := limits.rate(name))]
    copy = limits.rate("memory_copy")
    # Room for the names of the products' limits behind the place where memory ceases to be one.
    ridge = max(ceilings) / copy if copy and ceilings else 0.0
    axes.set_xlim(min(x) / 4, max(max(x) * 4, ridge * _NAMES_WIDTH))
    axes.set_ylim(min(rates) / 3, max(*rates, *ceilings) * 3)


def _draw_limits(axes: Axes, limits: Limits) -> None:
    """Draw the limit of memory up to the highest one of products, and those from where it crosses them on."""
    left, right = axes.get_xlim()
    copy = limits.rate("memory_copy")
    products = {"float64": limits.rate("gemm_float64"), "float32": limits.rate("gemm_float32")}
    known = {kind: rate for kind, rate in products.items() if rate}
    highest = max(known.values(), default=axes.get_ylim()[1])
    look: dict[str, Any] = {"linestyle": "--", "linewidth": 1.1, "color": style.TEXT_GRAY, "zorder": 1}
    if copy:
        ends = (left, highest / copy)
        axes.plot(ends, [copy * end for end in ends], label=f"copying of memory, {amount(copy, 'B/s')}", **look)
    for kind, rate in known.items():
        axes.plot((rate / copy if copy else left, right), (rate, rate), **look)
        place, offset = ("bottom", 3) if rate == highest else ("top", -3)
        axes.annotate(
            f"{kind} products, {amount(rate, 'op/s')}", (right, rate), xytext=(-4, offset),
            textcoords="offset points", ha="right", va=place, size=_LETTERS, color=style.TEXT_GRAY,
        )  # fmt: skip


def _draw_points(axes: Axes, points: Sequence[_Point]) -> None:
    for point in points:
        if point.published:
            axes.plot([point.intensity] * 2, [point.published, point.ours], color=style.GRAY, linewidth=1, zorder=2)
    published = [(point.intensity, point.published) for point in points if point.published]
    ours = [(point.intensity, point.ours) for point in points]
    axes.plot(*zip(*ours, strict=True), "o", color=style.BLUE, markersize=7, label="Whitewater, or tuned", zorder=4)
    if published:
        axes.plot(
            *zip(*published, strict=True), "D", color=style.ORANGE, markersize=5.5, label="the published code", zorder=3
        )


def _write_names(axes: Axes, points: Sequence[_Point]) -> None:
    """Write the names beside the axes, each on a line of its own that leads to its point."""
    ordered = sorted(points, key=lambda point: point.ours)
    bottom, top = np.log10(axes.get_ylim())
    wanted = [(np.log10(point.ours) - bottom) / (top - bottom) for point in ordered]
    for point, place in zip(ordered, _apart(wanted, _LABEL_HEIGHT), strict=True):
        axes.annotate(
            fit_text(point.name, points=_LABEL_POINTS, size=_LETTERS), (point.intensity, point.ours),
            xytext=(1.03, place), textcoords="axes fraction", va="center", size=_LETTERS, annotation_clip=False,
            arrowprops=_LEADER, zorder=1,
        )  # fmt: skip


def _apart(wanted: Sequence[float], height: float) -> list[float]:
    """Return ascending places at least a height apart and within 0 to 1, near the ascending wanted ones."""
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + height if places else 0.0))
    for number, place in reversed(list(enumerate(places))):
        places[number] = min(place, places[number + 1] - height if number + 1 < len(places) else 1.0)
    return places
