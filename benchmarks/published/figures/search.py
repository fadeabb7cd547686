"""R14: how the time of a grid search grows with its data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import standing
from benchmarks.published.figures.looks import COLOURS, MARKS, around, in_amounts, in_seconds, machine, spoken
from benchmarks.results_file import CaseResult, Results
from whitewater import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW = "grid_search"
_TITLE = "A grid search over data of growing size (R14)"
_UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9}


@style.styled
def search(results: Results) -> Figure:
    """Draw the time of each variant over the bytes of its data, and what was published."""
    cases = [case for case in results.cases if case.row == ROW]
    variants = [name for name in _variants(cases) if any(standing.figure(case.report, name) for case in cases)]
    if not variants:
        return style.explained(_TITLE, f"No figures of {ROW} were measured.")
    subtitle = f"Median time of a search with its interval, over the bytes of the features; {machine(results)}."
    notes = ["Hollow marks: published times of other machines, at the published sizes."] if _published(cases) else []
    figure, body = style.titled(9, 4.6, title=_TITLE, subtitle=subtitle, notes=notes)
    axes = body.subplots()
    axes.set_xscale("log")
    axes.set_yscale("log")
    for number, variant in enumerate(variants):
        _draw_variant(axes, cases, variant, number)
    for number, (on, times) in enumerate(_published(cases).items()):
        axes.plot(
            *zip(*times, strict=True), linestyle="none", marker=MARKS[number % len(MARKS)], markerfacecolor="none",
            color=style.TEXT_GREY, markersize=7, label=f"published: {on}",
        )  # fmt: skip
    in_seconds(axes.yaxis)
    in_amounts(axes.xaxis, "B")
    axes.margins(0.08)
    axes.set(xlabel="Data", ylabel="Time of a search")
    body.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure


def _variants(cases: Sequence[CaseResult]) -> list[str]:
    return list(dict.fromkeys(name for case in cases for name in case.report.outcomes))


def _draw_variant(axes: Axes, cases: Sequence[CaseResult], variant: str, number: int) -> None:
    known = [(case.report.size.bytes, figure) for case in cases if (figure := standing.figure(case.report, variant))]
    known.sort(key=lambda pair: pair[0])
    reach = [around(figure) for _, figure in known]
    axes.errorbar(
        [size for size, _ in known], [figure.median for _, figure in known], yerr=list(zip(*reach, strict=True)),
        marker=MARKS[number % len(MARKS)], color=COLOURS[number % len(COLOURS)], capsize=2.5, label=spoken(variant),
    )  # fmt: skip


def _published(cases: Sequence[CaseResult]) -> dict[str, list[tuple[float, float]]]:
    """Return the published times, each with the size that gives its case its name."""
    times: dict[str, list[tuple[float, float]]] = {}
    for case in cases:
        size = _named_size(case.case)
        for figure in case.published if size else ():
            times.setdefault(figure.on, []).append((size, figure.seconds))
    return times


def _named_size(name: str) -> float:
    """Return the bytes of a name such as ``2.8MB``, 0 for another name."""
    number, unit = name[:-2], name[-2:]
    if unit not in _UNITS or not number.replace(".", "", 1).isdigit():
        return 0.0
    return float(number) * _UNITS[unit]
