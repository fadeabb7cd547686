"""Rows that were rejected: their share in each month by reason, and their number by reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater.figures import shapes, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REASON_COLORS = (
    style.ORANGE, style.SKY_BLUE, style.GREEN, style.BLUE, style.VERMILION, style.PURPLE, style.YELLOW, style.GRAY,
)  # fmt: skip
# Bars that leave room for the name of the month and the number of rows at each.
_FEW_BARS = 18

Month = Mapping[str, Any]


def draw_months(axes: Axes, entries: Mapping[str, Month], months: Sequence[str], reasons: Mapping[str, int]) -> None:
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


def draw_reasons(axes: Axes, reasons: Mapping[str, int], *, rows_in: int) -> None:
    """Draw the rows of each reason in all months; its bars are the legend of the others."""
    axes.set_title("All rows by reason")
    if not reasons:
        style.explain(axes, "No row was rejected.")
        return
    colors = REASON_COLORS[: len(reasons)]
    shapes.draw_bars(axes, reasons, total=rows_in, colors=colors, xlabel="Share of all rows read", rows=5, room=1.5)
