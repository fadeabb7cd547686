"""R14 and R15: how the time of a search grows with its data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import standing
from benchmarks.published.figures.looks import COLORS, MARKS, around, in_amounts, in_seconds, machine, spoken
from benchmarks.results_file import CaseResult, Results
from whitewater.figures import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS = ("grid_search", "forest_search")
_TITLE = "Searches over data of growing size"
_UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9}


@style.with_style
def search(results: Results) -> Figure:
    """Draw the time of each variant of each search over the bytes of its data, and what was published."""
    searches = [cases for row in ROWS if (cases := _measured(results, row))]
    if not searches:
        return style.text_figure(_TITLE, f"No figures of {' or '.join(ROWS)} were measured.")
    subtitle = f"Median time of a search with its interval, over the bytes of the features; {machine(results)}."
    published = any(_published(cases) for cases in searches)
    notes = ["Hollow marks: published times of other machines, at the published sizes."] if published else []
    figure, body = style.new_figure(9, 4.4 * len(searches), title=_TITLE, subtitle=subtitle, notes=notes)
    for axes, cases in zip(body.subplots(len(searches), 1, squeeze=False).flat, searches, strict=True):
        _draw_row(axes, cases)
    return figure


def _measured(results: Results, row: str) -> list[CaseResult]:
    """Return the cases of a row of which there are figures."""
    cases = [case for case in results.cases if case.row == row]
    return [case for case in cases if any(standing.figure(case.report, name) for name in case.report.outcomes)]


def _draw_row(axes: Axes, cases: Sequence[CaseResult]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(f"{cases[0].id} {spoken(cases[0].row)}", loc="left")
    for number, variant in enumerate(_variants(cases)):
        _draw_variant(axes, cases, variant, number)
    for number, (on, times) in enumerate(_published(cases).items()):
        axes.plot(
            *zip(*times, strict=True), linestyle="none", marker=MARKS[number % len(MARKS)], markerfacecolor="none",
            color=style.TEXT_GRAY, markersize=7, label=f"published: {on}",
        )  # fmt: skip
    in_seconds(axes.yaxis)
    in_amounts(axes.xaxis, "B")
    axes.margins(0.08)
    axes.set(xlabel="Data", ylabel="Time of a search")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _variants(cases: Sequence[CaseResult]) -> list[str]:
    return list(dict.fromkeys(name for case in cases for name in case.report.outcomes))


def _draw_variant(axes: Axes, cases: Sequence[CaseResult], variant: str, number: int) -> None:
    known = [(case.report.size.bytes, figure) for case in cases if (figure := standing.figure(case.report, variant))]
    if not known:
        return
    known.sort(key=lambda pair: pair[0])
    reach = [around(figure) for _, figure in known]
    axes.errorbar(
        [size for size, _ in known], [figure.median for _, figure in known], yerr=list(zip(*reach, strict=True)),
        marker=MARKS[number % len(MARKS)], color=COLORS[number % len(COLORS)], capsize=2.5, label=spoken(variant),
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
