"""What became of the rows that were read: rejected rows by month and reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater import style
from whitewater.devices import Array
from whitewater.taxi.figures.services import LOOKS
from whitewater.taxi.rules import STRAY_MONTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Month = Mapping[str, Any]
OTHER = "other reasons"
_TITLE = "Rejected rows by month of pickup and reason"
_COLOURS = (
    style.ORANGE, style.SKY_BLUE, style.GREEN, style.BLUE, style.VERMILION, style.PURPLE, style.YELLOW,
)  # fmt: skip
_COMPARISONS = {"not_above": "≤", "not_at_least": "<", "not_below": "≥", "not_at_most": ">"}
_UNITS = {
    "duration": " s",
    "trip_distance": " miles",
    "speed": " mph",
    "fare_amount": " $",
    "tip_amount": " $",
    "tolls_amount": " $",
    "total_amount": " $",
}
# Bars that leave room for the name of the month and the number of rows at each.
_FEW_BARS = 18


@style.styled
def data_quality(quality: Mapping[str, Any]) -> Figure:
    """Draw the share of rows rejected in each month for each reason, a panel a service, and the totals of the reasons.

    Months that hold rows with a wrong clock only, and rows without a month, are in the totals but have no bar.

    Parameters
    ----------
    quality
        The content of `quality.json`.
    """
    totals, entries = quality["totals"], quality["by_month"]
    if not totals["rows_in"]:
        return style.explained(_TITLE, "No row was read.")
    reasons = _reasons(entries)
    regular = [entry for entry in entries if entry["month"] and entry["by_reason"].get(STRAY_MONTH) != entry["rows_in"]]
    services = [service for service in LOOKS if any(entry["service"] == service for entry in regular)]
    months = sorted({entry["month"] for entry in regular})
    subtitle = (
        f"{style.count(totals['rows_in'])} rows read = {style.count(totals['rows_out'])} kept + "
        f"{style.count(totals['quarantined'])} rejected ({style.percent(totals['quarantined'] / totals['rows_in'])}). "
        "A row with several reasons is in the bar of each; the black lines count it once."
    )
    figure, body = style.titled(
        12, 1.0 + 1.75 * max(len(services), 2), title=_TITLE, subtitle=subtitle, notes=_notes(entries, regular)
    )
    grid = body.add_gridspec(max(len(services), 1), 2, width_ratios=(1.7, 1))
    for row, service in enumerate(services):
        axes = body.add_subplot(grid[row, 0])
        of_service = {entry["month"]: entry for entry in regular if entry["service"] == service}
        _draw_months(axes, of_service, months, reasons)
        axes.set_title(
            f"{LOOKS[service].name}, {style.count(sum(each['rows_in'] for each in of_service.values()))} rows"
        )
        axes.tick_params(labelbottom=row == len(services) - 1)
    if not services:
        style.explain(body.add_subplot(grid[0, 0]), "No row has a month of its file.")
    _draw_reasons(body.add_subplot(grid[:, 1]), reasons, rows_in=totals["rows_in"])
    return figure


def readable(reason: str) -> str:
    """Return a reason of `quality.json` as people say it: ``trip distance > 200 miles``."""
    bound = re.fullmatch(rf"(.+)_({'|'.join(_COMPARISONS)})_(.+)", reason)
    if bound:
        quantity, comparison, limit = bound.groups()
        return f"{_spaced(quantity)} {_COMPARISONS[comparison]} {float(limit):,g}{_UNITS.get(quantity, '')}"
    for verb in ("missing", "unreadable"):
        if reason.startswith(f"{verb}_"):
            return f"{_spaced(reason.removeprefix(f'{verb}_'))} {verb}"
    if reason == STRAY_MONTH:
        return "month not of this file"
    return _spaced(reason)


def _spaced(name: str) -> str:
    return name.replace("_", " ").replace("dropoff", "drop-off")


def _reasons(entries: Iterable[Month]) -> dict[str, int]:
    """Return the rows of each reason, the most frequent first, the rarest under `OTHER` where colours run out."""
    counts: Counter[str] = Counter()
    for entry in entries:
        counts.update(entry["by_reason"])
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) <= len(_COLOURS):
        return dict(ordered)
    return {**dict(ordered[: len(_COLOURS)]), OTHER: sum(rows for _, rows in ordered[len(_COLOURS) :])}


def _draw_months(axes: Axes, entries: Mapping[str, Month], months: Sequence[str], reasons: Mapping[str, int]) -> None:
    """Stack the shares of the reasons in each month, and mark the share of rows that were rejected."""
    rows_in = _of_months(months, {month: entry["rows_in"] for month, entry in entries.items()})
    rows_out = _of_months(months, {month: entry["rows_out"] for month, entry in entries.items()})
    few = len(months) <= _FEW_BARS
    top = np.zeros(len(months))
    for reason, colour in zip(reasons, (*_COLOURS, style.GREY), strict=False):
        rows = _of_months(months, {month: _rows_of(entry, reason, reasons) for month, entry in entries.items()})
        bottom, top = top, top + rows / rows_in
        axes.stairs(*_bars(top, few=few), baseline=_bars(bottom, few=few)[0], fill=True, color=colour, linewidth=0)
    rejected = 1 - rows_out / rows_in
    axes.stairs(*_bars(rejected, few=few), baseline=None, color=style.BLACK, linewidth=1.5 if few else 1)
    if few:
        _write_counts(axes, np.maximum(top, rejected), rows_in)
    middle, half = (len(months) - 1) / 2, max(len(months), 6) / 2 + 0.1
    axes.set(
        xlim=(middle - half, middle + half), ylim=(0, 1.2 * np.nanmax([top, rejected]) or 1), ylabel="Share of rows"
    )
    axes.grid(visible=False, axis="x")
    axes.set_xticks(*_month_ticks(months), rotation=45 if _FEW_BARS / 2 < len(months) <= _FEW_BARS else 0)
    style.in_percent(axes.yaxis)


def _of_months(months: Sequence[str], values: Mapping[str, int]) -> Array:
    """Return the value of each month, float64 (months,), NaN where there is none."""
    return np.array([values.get(month, np.nan) for month in months])


def _bars(heights: Array, *, few: bool) -> tuple[Array, Array]:
    """Return heights and edges of bars around 0, 1, 2, ... as one shape, with gaps between them where they are few."""
    places = np.arange(len(heights))
    if not few:
        return heights, np.append(places - 0.5, len(heights) - 0.5)
    gapped = np.full(2 * len(heights) - 1, np.nan)
    gapped[::2] = heights
    return gapped, np.stack([places - 0.4, places + 0.4], axis=1).ravel()


def _write_counts(axes: Axes, heights: Array, rows: Array) -> None:
    for place in np.flatnonzero(rows > 0):
        axes.annotate(
            style.short_count(int(rows[place])), (place, heights[place]), xytext=(0, 2), textcoords="offset points",
            ha="center", size=8, color=style.TEXT_GREY,
        )  # fmt: skip


def _rows_of(entry: Month, reason: str, reasons: Mapping[str, int]) -> int:
    if reason == OTHER:
        return sum(rows for name, rows in entry["by_reason"].items() if name not in reasons)
    rows: int = entry["by_reason"].get(reason, 0)
    return rows


def _month_ticks(months: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return places and labels: every month where they are few, else the first of each year."""
    if len(months) <= _FEW_BARS:
        return list(range(len(months))), list(months)
    years = [month[:4] for month in months]
    firsts = [place for place, year in enumerate(years) if year not in years[:place]]
    return firsts, [years[place] for place in firsts]


def _draw_reasons(axes: Axes, reasons: Mapping[str, int], *, rows_in: int) -> None:
    """Draw the rows of each reason in all months; its bars are the legend of the others."""
    axes.set_title("All rows by reason")
    if not reasons:
        style.explain(axes, "No row was rejected.")
        return
    places, rows = np.arange(len(reasons)), np.array(list(reasons.values()))
    axes.barh(places, rows / rows_in, 0.7, color=(*_COLOURS, style.GREY)[: len(reasons)])
    for place, number in zip(places, rows, strict=True):
        text = f"{style.count(int(number))} ({style.percent(number / rows_in)})"
        axes.annotate(text, (number / rows_in, place), xytext=(4, 0), textcoords="offset points", va="center", size=8.5)
    axes.set_yticks(places, [readable(reason) for reason in reasons])
    axes.set(
        ylim=(max(len(reasons), 5) - 0.4, -0.6), xlim=(0, 1.5 * rows.max() / rows_in), xlabel="Share of all rows read"
    )
    axes.grid(visible=False, axis="y")
    style.in_percent(axes.xaxis)


def _notes(entries: Sequence[Month], regular: Sequence[Month]) -> list[str]:
    rows = sum(entry["rows_in"] for entry in entries) - sum(entry["rows_in"] for entry in regular)
    if not rows:
        return []
    return [
        f"Without a bar: {style.count(rows)} rows whose month is unknown or not of their file; the totals have them."
    ]
