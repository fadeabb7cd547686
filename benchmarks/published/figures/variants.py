"""The times of all variants of all cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import standing
from benchmarks.published.amounts import seconds
from benchmarks.published.figures.looks import PEER, around, color, in_seconds, machine, spoken
from benchmarks.results_file import CaseResult, Results
from whitewater.figures import style, words
from whitewater.figures.style import fit_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_TITLE = "The published tables, run again"
_LINE, _LETTERS = 0.2, 8.5
_WIDTH = 6.6
_NAME_POINTS = 130.0
# Lines from which on two columns are easier to look over.
_ONE_COLUMN = 60


@style.with_style
def variants(results: Results) -> Figure:
    """Draw the median time of each variant with its interval, one group of bars a case, on a logarithmic axis."""
    if not results.cases:
        return style.text_figure(_TITLE, "No case was measured.")
    columns = _columns(results.cases)
    height = 0.7 + _LINE * max(map(_lines, columns))
    subtitle = f"Median time of a call, or of a process where it says so, with its interval; {machine(results)}."
    notes = ["Bars begin at the left edge of a logarithmic axis: compare where they end. Each case has its own size."]
    figure, body = style.new_figure(_WIDTH * len(columns), height, title=_TITLE, subtitle=subtitle, notes=notes)
    shortest, longest = _range(results.cases)
    for axes, cases in zip(body.subplots(1, len(columns), squeeze=False)[0], columns, strict=True):
        axes.set_xscale("log")
        # Room for the figures behind the longest bar.
        axes.set_xlim(shortest / 3, longest * (longest / shortest * 3) ** 0.22)
        axes.set_ylim(max(map(_lines, columns)) - 0.4, -0.6)
        _draw_column(axes, cases)
        in_seconds(axes.xaxis)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
    _explain_colors(body)
    return figure


def _explain_colors(body: SubFigure) -> None:
    from matplotlib.patches import Patch

    looks = {
        "Whitewater": style.BLUE,
        "tuned for this table": style.SKY_BLUE,
        "the published code": style.ORANGE,
        "another library": PEER,
    }
    patches = [Patch(color=look, label=name) for name, look in looks.items()]
    body.legend(handles=patches, loc="outside upper left", ncols=4)


def _columns(cases: Sequence[CaseResult]) -> list[list[CaseResult]]:
    """Return the cases in one or two columns of about the same height."""
    if _lines(cases) <= _ONE_COLUMN:
        return [list(cases)]
    split = min(range(len(cases) + 1), key=lambda at: max(_lines(cases[:at]), _lines(cases[at:])))
    return [list(cases[:split]), list(cases[split:])]


def _lines(cases: Sequence[CaseResult]) -> int:
    """Return the lines of cases: a heading, a line for each variant, and a space."""
    return sum(len(case.report.outcomes) + 2 for case in cases)


def _range(cases: Sequence[CaseResult]) -> tuple[float, float]:
    figures = [standing.figure(case.report, variant) for case in cases for variant in case.report.outcomes]
    known = [figure for figure in figures if figure]
    return min((each.low for each in known), default=0.1), max((each.high for each in known), default=1.0)


def _draw_column(axes: Axes, cases: Sequence[CaseResult]) -> None:
    ticks, line = {}, 0
    for case in cases:
        _write_heading(axes, case, line)
        for number, variant in enumerate(case.report.outcomes, start=line + 1):
            ticks[number] = fit_text(spoken(variant), points=_NAME_POINTS, size=_LETTERS)
            _draw_bar(axes, case, variant, number)
        line += len(case.report.outcomes) + 2
    axes.set_yticks(list(ticks), list(ticks.values()), size=_LETTERS)


def _write_heading(axes: Axes, case: CaseResult, line: int) -> None:
    report = case.report
    processes = ", processes" if report.sampling == "process" else ""
    name = " ".join(part for part in (case.id, spoken(case.row), case.case) if part)
    text = f"{name}: {words.count(report.size.rows)} rows{processes}"
    axes.annotate(
        fit_text(text, points=330, size=_LETTERS + 0.5), (0, line), xycoords=("axes fraction", "data"), xytext=(4, 0),
        textcoords="offset points", va="center", size=_LETTERS + 0.5, weight="bold", annotation_clip=False,
    )  # fmt: skip


def _draw_bar(axes: Axes, case: CaseResult, variant: str, line: int) -> None:
    figure = standing.figure(case.report, variant)
    if figure is None:
        why = "void" if case.report.outcomes[variant].void else "not tried"
        _write(axes, axes.get_xlim()[0], line, why, look=style.VERMILION if why == "void" else style.TEXT_GRAY)
        return
    below, above = around(figure)
    axes.barh(
        line, figure.median, height=0.72, color=color(variant), xerr=[[below], [above]],
        error_kw={"elinewidth": 1.1, "capsize": 2, "ecolor": style.BLACK},
    )  # fmt: skip
    _write(axes, figure.high, line, seconds(figure.median), look=style.TEXT_GRAY)


def _write(axes: Axes, x: float, line: int, text: str, *, look: str) -> None:
    axes.annotate(
        text, (x, line), xytext=(5, 0), textcoords="offset points", va="center", size=_LETTERS, color=look
    )  # fmt: skip
