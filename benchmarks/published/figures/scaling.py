"""How rows scale with Dask's workers: threads, processes, and processes that are attached to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import standing
from benchmarks.published.figures.looks import COLORS, MARKS, around, in_seconds
from benchmarks.report import Report
from benchmarks.spread import Spread
from whitewater.figures import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "The published code on more workers"
# Kinds are drawn this far apart, as a factor, so that intervals do not hide each other.
_APART = 1.04


@style.with_style
def scaling(reports: Sequence[Report]) -> Figure:
    """Draw the time of each row over the number of workers, a line for each kind of workers.

    Parameters
    ----------
    reports
        One for each row; its variants are named by kind and number of workers, such as ``threads-2``.
    """
    known = [report for report in reports if _lines(report)]
    if not known:
        return style.text_figure(_TITLE, "No figures of scaling were measured.")
    machine = known[0].machine
    subtitle = (
        f"Median time of a call with its interval; {machine.processor}, {machine.cores} cores. Dotted: half the time "
        "on twice the workers."
    )
    across = min(2, len(known))
    down = -(-len(known) // across)
    figure, body = style.new_figure(
        4.9 * across + (0 if across > 1 else 2.5), 3.9 * down, title=_TITLE, subtitle=subtitle
    )
    all_axes = list(body.subplots(down, across, squeeze=False).flat)
    for axes, report in zip(all_axes, known, strict=False):
        _draw_row(axes, report)
    for axes in all_axes[len(known) :]:
        axes.set_axis_off()
    kinds = {kind: line for axes in body.axes for line, kind in zip(*axes.get_legend_handles_labels(), strict=True)}
    body.legend(list(kinds.values()), list(kinds), loc="outside upper left", ncols=len(kinds))
    return figure


def _lines(report: Report) -> dict[str, list[tuple[int, Spread]]]:
    """Return, for each kind of workers, the figures by their number, ascending."""
    lines: dict[str, list[tuple[int, Spread]]] = {}
    for variant in report.outcomes:
        kind, _, workers = variant.rpartition("-")
        figure = standing.figure(report, variant)
        if figure and kind and workers.isdigit():
            lines.setdefault(kind, []).append((int(workers), figure))
    return {kind: sorted(line, key=lambda pair: pair[0]) for kind, line in lines.items()}


def _draw_row(axes: Axes, report: Report) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    lines = _lines(report)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for number, (kind, line) in enumerate(lines.items()):
        shift = _APART ** (number - (len(lines) - 1) / 2)
        reach = [around(figure) for _, figure in line]
        axes.errorbar(
            [workers * shift for workers, _ in line], [figure.median for _, figure in line],
            yerr=list(zip(*reach, strict=True)), marker=MARKS[number], color=COLORS[number], capsize=2.5, label=kind,
        )  # fmt: skip
    counts = sorted({workers for line in lines.values() for workers, _ in line})
    _draw_ideal(axes, lines, counts)
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
    in_seconds(axes.yaxis, fine=True)
    axes.set_xlim(counts[0] / 1.25, counts[-1] * 1.25)
    axes.set(title=report.name.removesuffix(": scaling").replace("_", " "), xlabel="Workers", ylabel="Time")


def _draw_ideal(axes: Axes, lines: dict[str, list[tuple[int, Spread]]], counts: Sequence[int]) -> None:
    """Draw how the best kind on the fewest workers would go on at best."""
    start = min(line[0][0] * line[0][1].median for line in lines.values())
    axes.plot(counts, [start / count for count in counts], ":", color=style.TEXT_GRAY, linewidth=1.2, zorder=1)
