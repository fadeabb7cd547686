"""Tips by time: the hour of pickup, and the hour of the week."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from whitewater import style
from whitewater.devices import Array
from whitewater.taxi.figures.services import (
    LOOKS,
    MEASURE,
    NOTHING,
    RECORDED,
    interval_name,
    overall_mean,
    sample_size,
    single_services,
    with_total,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HOURS = np.arange(24)
_BY_HOUR = "Tips by hour of pickup"
_BY_WEEKDAY = "Tips by weekday and hour of pickup"
# Of all cells, the share whose colour tells their value; the few beyond are drawn as the ends of the scale.
_WITHIN_SCALE = 0.98


@style.styled
def tip_fraction_by_hour(table: pd.DataFrame, *, minimum_trips: int) -> Figure:
    """Draw the mean tip fraction of each service by hour, its interval, and the plain definition beside it.

    Parameters
    ----------
    table
        `tips_by_hour`: a row for each service and hour.
    minimum_trips
        Hours with fewer trips with a recorded tip are left out.
    """
    services = with_total(table)
    if not services:
        return style.explained(_BY_HOUR, NOTHING)
    few = {service: _few(_hours(rows), minimum_trips) for service, rows in services.items()}
    if all(len(hours) == len(HOURS) for hours in few.values()):
        return style.explained(_BY_HOUR, f"No hour of the day has {minimum_trips} trips with a recorded tip.")
    notes = [*_left_out(few, minimum_trips), *_without_time(table)]
    figure, body = style.titled(9, 4.6, title=_BY_HOUR, subtitle=RECORDED, notes=notes)
    axes = body.subplots()
    for service, rows in services.items():
        _draw_hours(axes, service, _hours(rows), minimum_trips=minimum_trips)
    axes.fill_between([], [], color=style.GREY, alpha=0.3, linewidth=0, label=interval_name(table))
    axes.plot([], [], "--", color=style.GREY, linewidth=1, label="plain definition: trips with a tip above 0 only")
    axes.set(xlabel="Hour of pickup", ylabel=MEASURE, xlim=(-0.5, 23.5), xticks=HOURS[::2])
    axes.set_xticklabels([f"{hour} h" for hour in HOURS[::2]])
    style.in_percent(axes.yaxis)
    body.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    return figure


@style.styled
def tip_fraction_by_weekday_hour(table: pd.DataFrame, *, minimum_trips: int) -> Figure:
    """Draw how the mean tip fraction of each hour of the week differs from the service's own mean, a panel a service.

    The services' means are far apart, the hours of one service close together: a scale of the fractions themselves, the
    same for all services, would show the services and hide the hours.

    Parameters
    ----------
    table
        `tips_by_weekday_hour`: a row for each service, weekday (0 is Monday) and hour.
    minimum_trips
        Cells with fewer trips with a recorded tip are hatched.
    """
    services = single_services(table)
    if not services:
        return style.explained(_BY_WEEKDAY, NOTHING)
    weeks = {service: _week(rows, minimum_trips) for service, rows in services.items()}
    gains = {service: weeks[service] - overall_mean(rows) for service, rows in services.items()}
    limit = _scale(gains.values())
    subtitle = f"{RECORDED} Colours compare each hour with the mean of its own service, in percentage points."
    hatched = any(np.isnan(week).any() for week in weeks.values())
    notes = [f"Hatched: fewer than {minimum_trips} such trips."] if hatched else []
    figure, body = style.titled(9, 0.5 + 1.95 * len(services), title=_BY_WEEKDAY, subtitle=subtitle, notes=notes)
    panels = body.subplots(len(services), sharex=True, squeeze=False)[:, 0]
    for axes, (service, rows) in zip(panels, services.items(), strict=True):
        title = f"{LOOKS[service].name}: mean {style.percent(overall_mean(rows))}, {sample_size(rows)}"
        mesh = _draw_week(axes, gains[service], limit=limit, title=title)
    panels[-1].set_xlabel("Hour of pickup")
    bar = body.colorbar(mesh, ax=panels, extend="both", aspect=12 * len(services), shrink=0.9)
    bar.set_label("Points from the mean")
    return figure


def _hours(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by hour, all 24 of them."""
    known = rows[rows["hour"].notna()]
    by_hour = known.set_index(known["hour"].astype(int)).reindex(HOURS)
    return by_hour.assign(trips=by_hour["trips"].fillna(0), plain_trips=by_hour["plain_trips"].fillna(0))


def _few(hours: pd.DataFrame, minimum_trips: int) -> list[int]:
    return [int(hour) for hour in HOURS[hours["trips"].to_numpy() < minimum_trips]]


def _draw_hours(axes: Axes, service: str, hours: pd.DataFrame, *, minimum_trips: int) -> None:
    look = LOOKS[service]
    enough = hours["trips"] >= minimum_trips
    low, high = (hours[name].where(enough).to_numpy(float) for name in ("mean_low", "mean_high"))
    axes.fill_between(HOURS, low, high, color=look.colour, alpha=0.25, linewidth=0)
    # A band needs two hours side by side; an hour that stands alone has its interval, too.
    axes.vlines(HOURS, low, high, color=look.colour, alpha=0.4, linewidth=1)
    mean = hours["mean"].where(enough).to_numpy(float)
    axes.plot(HOURS, mean, marker=look.mark, color=look.colour, label=f"{look.name}, {sample_size(hours)}")
    plain = hours["plain_mean"].where(hours["plain_trips"] >= minimum_trips).to_numpy(float)
    axes.plot(HOURS, plain, "--", color=look.colour, linewidth=1)


def _left_out(few: dict[str, list[int]], minimum_trips: int) -> list[str]:
    named = [f"{LOOKS[service].name} {_spans(hours)} h" for service, hours in few.items() if hours]
    return [f"Left out, because they have fewer than {minimum_trips} such trips: {'; '.join(named)}."] if named else []


def _spans(numbers: Sequence[int]) -> str:
    """Return whole numbers in order as ``2-5, 7``."""
    edges = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    return ", ".join(f"{first}-{last}" if first < last else f"{first}" for first, last in zip(edges, ends, strict=True))


def _without_time(table: pd.DataFrame) -> list[str]:
    """Say how many trips the picture lacks because their time of pickup is not known."""
    lost = int(table.loc[table["hour"].isna() & (table["service"] != "all"), "trips"].sum())
    return [f"Not shown: {style.count(lost)} trips without a time of pickup."] if lost else []


def _week(rows: pd.DataFrame, minimum_trips: int) -> Array:
    """Return the mean of each weekday and hour, float64 (7, 24), NaN where there are too few trips."""
    week = np.full((7, 24), np.nan)
    enough = rows[(rows["trips"] >= minimum_trips) & rows["hour"].notna() & rows["weekday"].notna()]
    week[enough["weekday"].astype(int), enough["hour"].astype(int)] = enough["mean"]
    return week


def _scale(gains: Iterable[Array]) -> float:
    """Return the largest difference that has a colour of its own."""
    known = np.abs(np.concatenate([each[np.isfinite(each)] for each in gains]))
    return float(np.quantile(known, _WITHIN_SCALE)) or 0.01 if len(known) else 0.01


def _draw_week(axes: Axes, gains: Array, *, limit: float, title: str) -> QuadMesh:
    axes.set_facecolor("white")
    axes.patch.set(hatch="////", edgecolor=style.GREY)
    mesh = axes.pcolormesh(
        np.arange(25), np.arange(8), 100 * gains, cmap=style.DIVERGING, vmin=-100 * limit, vmax=100 * limit,
        edgecolor="white", linewidth=0.4,
    )  # fmt: skip
    axes.invert_yaxis()
    axes.grid(False)
    axes.set_yticks(np.arange(7) + 0.5, WEEKDAYS)
    axes.set_xticks(HOURS[::2] + 0.5, [f"{hour} h" for hour in HOURS[::2]])
    axes.set_title(title)
    return mesh
