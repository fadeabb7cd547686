"""Tips by place: rankings of boroughs and of zones of pickup, a panel a service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from whitewater import style
from whitewater.lettering import drawable
from whitewater.taxi.figures.services import (
    LOOKS,
    MEASURE,
    NOTHING,
    RECORDED,
    interval_name,
    overall_mean,
    sample_size,
    single_services,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

NO_ZONE = "no zone known"
_BOROUGHS = {
    "Manhattan": (style.BLUE, "o"),
    "Brooklyn": (style.VERMILION, "s"),
    "Queens": (style.GREEN, "^"),
    "Bronx": (style.PURPLE, "D"),
    "Staten Island": (style.SKY_BLUE, "v"),
    "EWR": (style.ORANGE, "P"),
}
_OTHER = (style.GREY, "X")
_LONGEST_NAME = 30
_ROW = 0.235
_BY_BOROUGH = "Tips by borough of pickup"
_BY_ZONE = "Tips by taxi zone of pickup"


@style.styled
def tip_fraction_by_borough(table: pd.DataFrame, *, minimum_trips: int) -> Figure:
    """Rank the boroughs of pickup by mean tip fraction, with intervals and numbers of trips.

    Parameters
    ----------
    table
        `tips_by_borough`: a row for each service and borough; a null borough is that of trips without a zone.
    minimum_trips
        Boroughs with fewer trips with a recorded tip are left out.
    """
    named = table.assign(borough=table["borough"].fillna(NO_ZONE))
    services = single_services(named)
    every = {service: _ranked(rows, minimum_trips) for service, rows in services.items()}
    ranked = {service: rows for service, rows in every.items() if len(rows)}
    if not ranked:
        return style.explained(_BY_BOROUGH, _nothing(table, minimum_trips))
    notes = [note for service, rows in services.items() for note in _left_out(service, rows, minimum_trips)]
    labels = {service: rows["borough"].tolist() for service, rows in ranked.items()}
    return _rankings(ranked, labels, services, title=_BY_BOROUGH, notes=notes, interval=interval_name(table))


@style.styled
def tip_fraction_by_zone(table: pd.DataFrame, *, zones: int, minimum_trips: int) -> Figure:
    """Rank the taxi zones of pickup with the largest mean tip fraction, coloured by borough.

    Parameters
    ----------
    table
        `tips_by_zone`: a row for each service and zone; a null ``location_id`` is that of trips without a zone.
    zones
        Zones shown for each service.
    minimum_trips
        Zones with fewer trips with a recorded tip are left out.
    """
    known = single_services(table[table["location_id"].notna()])
    ranked = {service: _ranked(rows, minimum_trips) for service, rows in known.items()}
    if not any(map(len, ranked.values())):
        return style.explained(_BY_ZONE, _nothing(table, minimum_trips))
    shown = {service: rows.head(zones) for service, rows in ranked.items() if len(rows)}
    labels = {service: _zone_names(rows) for service, rows in shown.items()}
    notes = [_of_how_many(service, rows, zones, minimum_trips) for service, rows in ranked.items()]
    notes += _without_zone(table)
    return _rankings(shown, labels, known, title=_BY_ZONE, notes=notes, interval=interval_name(table), legend=True)


def _ranked(rows: pd.DataFrame, minimum_trips: int) -> pd.DataFrame:
    """Return the rows with enough trips, the largest mean first; ties keep the order of the table."""
    return rows[rows["trips"] >= minimum_trips].sort_values("mean", ascending=False, kind="stable")


def _rankings(
    ranked: Mapping[str, pd.DataFrame],
    labels: Mapping[str, Sequence[str]],
    everything: Mapping[str, pd.DataFrame],
    *,
    title: str,
    notes: Sequence[str],
    interval: str,
    legend: bool = False,
) -> Figure:
    """Draw a ranking for each service, side by side."""
    rows = max(map(len, ranked.values()))
    width = 9.0 if len(ranked) == 1 else 5.2 * len(ranked)
    subtitle = f"{RECORDED} Bars: {interval}. Dashed: the service's mean."
    height = 1.2 + _ROW * max(rows, 4) + 0.35 * legend
    figure, body = style.titled(width, height, title=title, subtitle=subtitle, notes=notes)
    panels = body.subplots(1, len(ranked), squeeze=False)[0]
    for axes, (service, places) in zip(panels, ranked.items(), strict=True):
        mean = overall_mean(everything[service])
        axes.axvline(mean, color=style.GREY, linestyle="--", linewidth=1)
        axes.set_title(f"{LOOKS[service].name}\nmean {style.percent(mean)}, {sample_size(everything[service])}", pad=16)
        _draw_ranking(axes, places, labels[service], rows=rows)
    if legend:
        body.legend(handles=_borough_marks(ranked.values()), loc="outside lower left", ncols=8)
    return figure


def _draw_ranking(axes: Axes, places: pd.DataFrame, labels: Sequence[str], *, rows: int) -> None:
    position = np.arange(len(places))
    for borough in places["borough"].fillna(NO_ZONE).unique():
        colour, mark = _BOROUGHS.get(borough, _OTHER)
        here = (places["borough"].fillna(NO_ZONE) == borough).to_numpy()
        mean, low, high = (places.loc[here, name].to_numpy(float) for name in ("mean", "mean_low", "mean_high"))
        error = np.nan_to_num(np.stack([mean - low, high - mean]))
        axes.errorbar(mean, position[here], xerr=error, color=colour, marker=mark, linestyle="none", elinewidth=1.5)
    for where, trips in zip(position, places["trips"].tolist(), strict=True):
        axes.annotate(
            style.count(int(trips)), (1, where), xycoords=("axes fraction", "data"), xytext=(4, 0),
            textcoords="offset points", va="center", size=8, color=style.TEXT_GREY,
        )  # fmt: skip
    axes.annotate(
        "trips",
        (1, 1),
        xycoords="axes fraction",
        xytext=(4, 2),
        textcoords="offset points",
        size=8,
        color=style.TEXT_GREY,
    )
    axes.set_yticks(position, list(map(drawable, labels)))
    axes.set(ylim=(rows - 0.4, -0.6), xlabel=MEASURE)
    axes.grid(visible=False, axis="y")
    style.in_percent(axes.xaxis)


def _borough_marks(ranked: Iterable[pd.DataFrame]) -> list[Line2D]:
    """Return the entries of the legend: the boroughs that are shown, in their usual order."""
    from matplotlib.lines import Line2D

    shown = {borough for places in ranked for borough in places["borough"].fillna(NO_ZONE)}
    usual = [borough for borough in _BOROUGHS if borough in shown]
    entries = [(borough, *_BOROUGHS[borough]) for borough in usual]
    if shown - set(usual):
        entries.append((", ".join(sorted(shown - set(usual))), *_OTHER))
    return [Line2D([], [], color=colour, marker=mark, linestyle="none", label=name) for name, colour, mark in entries]


def _zone_names(rows: pd.DataFrame) -> list[str]:
    """Return the name of each zone, cut where it is long; its number where it has none."""
    numbers = "zone " + rows["location_id"].astype(int).astype(str)
    names = rows["zone"].fillna(numbers)
    return [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in names.tolist()]


def _nothing(table: pd.DataFrame, minimum_trips: int) -> str:
    if not single_services(table):
        return NOTHING
    return f"No place of pickup is known of {minimum_trips} or more trips with a recorded tip."


def _of_how_many(service: str, ranked: pd.DataFrame, zones: int, minimum_trips: int) -> str:
    name, shown = LOOKS[service].name, min(zones, len(ranked))
    if not shown:
        return f"{name}: no zone has {minimum_trips} such trips."
    return f"{name}: the largest {shown} means among {len(ranked)} zones with at least {minimum_trips} such trips."


def _left_out(service: str, boroughs: pd.DataFrame, minimum_trips: int) -> list[str]:
    few = boroughs.loc[boroughs["trips"] < minimum_trips, "borough"]
    names = ", ".join(sorted(few))
    return (
        [f"{LOOKS[service].name}: left out, with fewer than {minimum_trips} such trips: {names}."] if len(few) else []
    )


def _without_zone(table: pd.DataFrame) -> list[str]:
    lost = int(table.loc[table["location_id"].isna() & (table["service"] != "all"), "trips"].sum())
    return [f"Not shown: {style.count(lost)} trips without a zone of pickup."] if lost else []
