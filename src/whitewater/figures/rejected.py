"""Rows that were rejected: their share in each month by reason, and their number by reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater.figures import shapes, style
from whitewater.figures.shapes import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REASON_COLORS = (
    style.ORANGE, style.SKY_BLUE, style.GREEN, style.BLUE, style.VERMILION, style.PURPLE, style.YELLOW, style.GRAY,
)  # fmt: skip
_COMPARISONS = {"not_above": "≤", "not_at_least": "<", "not_below": "≥", "not_at_most": ">"}
# Bars that leave room for the name of the month and the number of rows at each.
_FEW_BARS = 18

Month = Mapping[str, Any]


@style.styled
def data_quality(
    quality: Mapping[str, Any], *, looks: Mapping[str, Look], stray: str, units: Mapping[str, str]
) -> Figure:
    """Draw the share of rows rejected in each month for each reason, a panel a service, and the totals of the reasons.

    Months that hold rows with a wrong clock only, and rows without a month, are in the totals but have no bar.

    Parameters
    ----------
    quality
        ``totals``, and ``by_month`` with the ``service`` and ``month`` of each entry, ``rows_in``, ``rows_out`` and
        ``by_reason``; see `whitewater.tables.quarantine.count_reasons`.
    looks
        The services in the order of their panels.
    stray
        The reason of rows whose clock was wrong.
    units
        What follows a bound of a quantity, such as " miles".
    """
    title, totals, entries = "Rejected rows by month of pickup and reason", quality["totals"], quality["by_month"]
    if not totals["rows_in"]:
        return style.explained(title, "No row was read.")
    counts: Counter[str] = Counter()
    for entry in entries:
        counts.update(entry["by_reason"])
    reasons = shapes.most_frequent(counts, len(REASON_COLORS))
    regular = [entry for entry in entries if entry["month"] and entry["by_reason"].get(stray) != entry["rows_in"]]
    services = [service for service in looks if any(entry["service"] == service for entry in regular)]
    months = sorted({entry["month"] for entry in regular})
    subtitle = (
        f"{style.count(totals['rows_in'])} rows read = {style.count(totals['rows_out'])} kept + "
        f"{style.count(totals['quarantined'])} rejected ({style.percent(totals['quarantined'] / totals['rows_in'])}). "
        "A row with several reasons is in the bar of each; the black lines count it once."
    )
    lost = sum(entry["rows_in"] for entry in entries) - sum(entry["rows_in"] for entry in regular)
    why = "rows whose month is unknown or not of their file; the totals have them"
    notes = [f"Without a bar: {style.count(lost)} {why}."] if lost else []
    figure, body = style.titled(12, 1.0 + 1.75 * max(len(services), 2), title=title, subtitle=subtitle, notes=notes)
    grid = body.add_gridspec(max(len(services), 1), 2, width_ratios=(1.7, 1))
    for row, service in enumerate(services):
        axes = body.add_subplot(grid[row, 0], sharey=body.axes[0] if row else None)
        of_service = {entry["month"]: entry for entry in regular if entry["service"] == service}
        _draw_months(axes, of_service, months, reasons)
        rows = sum(entry["rows_in"] for entry in of_service.values())
        axes.set_title(f"{looks[service].name}, {style.count(rows)} rows")
        axes.tick_params(labelbottom=row == len(services) - 1)
    if services:
        body.axes[0].set_ylim(0, 1.2 * max(axes.dataLim.y1 for axes in body.axes) or 1)
    else:
        style.explain(body.add_subplot(grid[0, 0]), "No row has a month of its file.")
    bars = {readable(reason, stray, units): rows for reason, rows in reasons.items()}
    _draw_reasons(body.add_subplot(grid[:, 1]), bars, rows_in=totals["rows_in"])
    return figure


def readable(reason: str, stray: str, units: Mapping[str, str]) -> str:
    """Return a reason of `quality.json` as people say it: ``trip distance > 200 miles``."""
    if reason == stray:
        return "month not of this file"
    bound = re.fullmatch(rf"(.+)_({'|'.join(_COMPARISONS)})_(.+)", reason)
    text, after = reason, ""
    if bound:
        text, comparison, limit = bound.groups()
        after = f" {_COMPARISONS[comparison]} {float(limit):,g}{units.get(text, '')}"
    for verb in ("missing", "unreadable"):
        if reason.startswith(f"{verb}_"):
            text, after = reason.removeprefix(f"{verb}_"), f" {verb}"
    return text.replace("_", " ").replace("dropoff", "drop-off") + after


def _draw_months(axes: Axes, entries: Mapping[str, Month], months: Sequence[str], reasons: Mapping[str, int]) -> None:
    """Stack the shares of the reasons in each month, and mark the share of rows that were rejected.

    ``entries`` are ``rows_in``, ``rows_out`` and ``by_reason`` of each month that has rows.
    """
    rows_in, rows_out = (
        np.array([entries[month][key] if month in entries else np.nan for month in months])
        for key in ("rows_in", "rows_out")
    )
    few, places, top = len(months) <= _FEW_BARS, np.arange(len(months)), np.zeros(len(months))
    width = 0.8 if few else 1.0
    for reason, color in zip(reasons, REASON_COLORS, strict=False):
        rows = [_rows_of(entries[month], reason, reasons) if month in entries else 0 for month in months]
        axes.bar(places, rows / rows_in, width, bottom=top, color=color)
        top += rows / rows_in
    rejected = 1 - rows_out / rows_in
    axes.hlines(rejected, places - width / 2, places + width / 2, color=style.BLACK, linewidth=1.5 if few else 1)
    if few:
        for place in places[rows_in > 0].tolist():
            text, height = f"{style.short_count(int(rows_in[place]))} rows", max(top[place], rejected[place])
            shapes.write_beside(axes, text, (place, height), (0, 2), ha="center")
    axes.set(xlim=(-0.6, max(len(months), 3) - 0.4), ylim=(0, 1.2 * np.nanmax([top, rejected]) or 1))
    axes.set_ylabel("Share of rows")
    axes.grid(visible=False, axis="x")
    # Every month where they are few, else the first of each year.
    years = [month[:4] for month in months]
    ticks = {place: month for place, month in enumerate(months if few else years) if few or month not in years[:place]}
    axes.set_xticks(list(ticks), list(ticks.values()), rotation=45 if _FEW_BARS / 2 < len(months) <= _FEW_BARS else 0)
    shapes.in_percent(axes.yaxis)


def _rows_of(entry: Month, reason: str, reasons: Mapping[str, int]) -> int:
    rows: Mapping[str, int] = entry["by_reason"]
    if reason == shapes.OTHER_REASONS:
        return sum(number for name, number in rows.items() if name not in reasons)
    return rows.get(reason, 0)


def _draw_reasons(axes: Axes, reasons: Mapping[str, int], *, rows_in: int) -> None:
    """Draw the rows of each reason in all months; its bars are the legend of the others."""
    axes.set_title("All rows by reason")
    if not reasons:
        style.explain(axes, "No row was rejected.")
        return
    colors = REASON_COLORS[: len(reasons)]
    shapes.draw_bars(axes, reasons, total=rows_in, colors=colors, xlabel="Share of all rows read", rows=5, room=1.5)
