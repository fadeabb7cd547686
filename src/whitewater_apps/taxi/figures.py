"""The figures of the taxi application, from tables."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from whitewater.engines import Array
from whitewater.figures import shapes, style, words
from whitewater.figures.shapes import Look, draw_predictions
from whitewater.figures.words import interval
from whitewater_apps.taxi.schema import MODELS, SERVICES, STRAY_MONTH

MEASURE = "Tip, % of the fare"
RECORDED = "Mean tip / fare of the trips whose tip was recorded: paid by card, or in an app."
NOTHING = "No trip has a recorded tip. Cash tips are not recorded, so only trips paid by card or in an app count."
LOOKS = {
    "yellow": Look("Yellow taxis", style.ORANGE, "o"),
    "green": Look("Green taxis", style.GREEN, "s"),
    "fhvhv": Look("App rides (fhvhv)", style.BLUE, "^"),
    "all": Look("All together", style.BLACK, "D"),
}
HOURS = np.arange(24)
NO_ZONE = "no zone known"
_BOROUGHS = {
    look.name: look
    for look in (
        Look("Manhattan", style.BLUE, "o"), Look("Brooklyn", style.VERMILION, "s"), Look("Queens", style.GREEN, "^"),
        Look("Bronx", style.PURPLE, "D"), Look("Staten Island", style.SKY_BLUE, "v"), Look("EWR", style.ORANGE, "P"),
    )
}  # fmt: skip
_OTHER_BOROUGH = Look("other", style.GRAY, "X")
_LONGEST_NAME = 30
_REASON_COLORS = (
    style.ORANGE, style.SKY_BLUE, style.GREEN, style.BLUE, style.VERMILION, style.PURPLE, style.YELLOW, style.GRAY,
)  # fmt: skip
_COMPARISONS = {"not_above": "≤", "not_at_least": "<", "not_below": "≥", "not_at_most": ">"}
# Most bars that leave room for the month and the number of rows at each.
_FEW_BARS = 18
_UNITS = {"duration": " s", "trip_distance": " miles", "speed": " mph"} | dict.fromkeys(
    ("fare_amount", "tip_amount", "tolls_amount", "total_amount"), " $"
)


def _split_by_service(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each service that has trips with a recorded tip, without ``all``."""
    present = set(table.loc[table["trips"] > 0, "service"]) - {"all"}
    return {service: table[table["service"] == service] for service in SERVICES if service in present}


def _sample_size(rows: pd.DataFrame) -> str:
    return f"n = {words.count(int(rows['trips'].sum()))}"


def _overall_mean(rows: pd.DataFrame) -> float:
    """Return the mean over all trips; rows without trips have a mean of NaN."""
    return float((rows["mean"] * rows["trips"]).sum() / rows["trips"].sum())


def _interval_name(table: pd.DataFrame) -> str:
    return f"{100 * table.attrs['confidence']:g} % interval"


def _note_missing(table: pd.DataFrame, column: str, what: str) -> list[str]:
    """Say how many trips are not shown because the column is null."""
    missing = int(table.loc[table[column].isna() & (table["service"] != "all"), "trips"].sum())
    return [f"Not shown: {words.count(missing)} trips without a {what} of pickup."] if missing else []


@style.with_style
def tip_fraction_by_hour(table: pd.DataFrame, *, minimum_trips: int) -> Figure:
    """Draw the mean tip fraction of each service by hour with its interval, and by the plain definition.

    ``table`` is `tips_by_hour`. Hours with fewer than ``minimum_trips`` trips with a recorded tip are left out.
    """
    title, services = "Tips by hour of pickup", _split_by_service(table)
    if not services:
        return style.text_figure(title, NOTHING)
    if len(services) > 1:
        services["all"] = table[table["service"] == "all"]
    by_hour = {
        service: rows.dropna(subset="hour").set_index("hour").reindex(HOURS).fillna({"trips": 0, "plain_trips": 0})
        for service, rows in services.items()
    }
    too_few = np.array([hours["trips"] < minimum_trips for hours in by_hour.values()])
    if too_few.all():
        return style.text_figure(title, f"No hour of the day has {minimum_trips} trips with a recorded tip.")
    notes = [f"Left out: hours with fewer than {minimum_trips} such trips."] if too_few.any() else []
    notes += _note_missing(table, "hour", "time")
    figure, body = style.new_figure(9, 4.6, title=title, subtitle=RECORDED, notes=notes)
    axes = body.subplots()
    for service, hours in by_hour.items():
        _draw_hours(axes, LOOKS[service], hours, minimum_trips=minimum_trips)
    axes.fill_between([], [], color=style.GRAY, alpha=0.3, linewidth=0, label=_interval_name(table))
    axes.plot([], [], "--", color=style.GRAY, linewidth=1, label="plain definition: trips with a tip above 0 only")
    axes.set(xlabel="Hour of pickup", ylabel=MEASURE, xlim=(-0.5, 23.5))
    axes.set_ylim(bottom=0)
    axes.set_xticks(HOURS[::3], shapes.CLOCK[::3])
    shapes.in_percent(axes.yaxis)
    body.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    return figure


def _draw_hours(axes: Axes, look: Look, hours: pd.DataFrame, *, minimum_trips: int) -> None:
    has_trips = hours["trips"] >= minimum_trips
    mean, low, high = (hours[name].where(has_trips).to_numpy(float) for name in ("mean", "mean_low", "mean_high"))
    axes.fill_between(HOURS, low, high, color=look.color, alpha=0.25, linewidth=0)
    # The band needs two adjacent hours; a lone hour has its interval, too.
    axes.vlines(HOURS, low, high, color=look.color, alpha=0.4, linewidth=1)
    axes.plot(HOURS, mean, marker=look.mark, color=look.color, label=f"{look.name}, {_sample_size(hours)}")
    plain = hours["plain_mean"].where(hours["plain_trips"] >= minimum_trips).to_numpy(float)
    axes.plot(HOURS, plain, "--", color=look.color, linewidth=1)


@style.with_style
def tip_fraction_by_weekday_hour(table: pd.DataFrame, *, minimum_trips: int) -> Figure:
    """Draw how the mean tip fraction of each hour of the week, in `tips_by_weekday_hour`, differs from its service's.

    The services differ more than the hours of one service, so a color scale of the fractions would hide the hours.
    Cells with fewer than ``minimum_trips`` trips with a recorded tip are hatched. A dot is noise: the interval contains
    the mean of the service.
    """
    title, services = "Tips by weekday and hour of pickup", _split_by_service(table)
    if not services:
        return style.text_figure(title, NOTHING)
    means = {service: _overall_mean(rows) for service, rows in services.items()}
    low, difference, high = (
        np.stack([_by_weekday_hour(rows, bound, minimum_trips) - means[service] for service, rows in services.items()])
        for bound in ("mean_low", "mean", "mean_high")
    )
    is_noise = (low <= 0) & (high >= 0)
    significant = np.abs(difference[np.isfinite(difference) & ~is_noise])
    # The color scale covers 98 % of the cells; the others get the color of its ends.
    limit = (float(np.quantile(significant, 0.98)) if len(significant) else 0) or 0.01
    subtitle = f"{RECORDED} Colors compare each hour with the mean of its own service, in percentage points."
    dot = f"Dot: within noise, as the {_interval_name(table)} holds the mean of the service."
    notes = [dot] if is_noise.any() else []
    notes += [f"Hatched: fewer than {minimum_trips} such trips."] if np.isnan(difference).any() else []
    figure, body = style.new_figure(9, 0.5 + 1.95 * len(services), title=title, subtitle=subtitle, notes=notes)
    panels = body.subplots(len(services), sharex=True, squeeze=False)[:, 0]
    for axes, (service, rows), values, has_dot in zip(panels, services.items(), difference, is_noise, strict=True):
        mesh = shapes.draw_week(axes, 100 * values, limit=100 * limit)
        weekday, hour = np.nonzero(has_dot)
        axes.plot(hour + 0.5, weekday + 0.5, "o", color=style.BLACK, markeredgecolor="white", markersize=3.5)
        axes.set_title(f"{LOOKS[service].name}: mean {words.percent(means[service])}, {_sample_size(rows)}")
    panels[-1].set_xlabel("Hour of pickup")
    bar = body.colorbar(mesh, ax=panels, extend="both", aspect=12 * len(services), shrink=0.9)
    bar.set_label("Points from the mean")
    return figure


def _by_weekday_hour(rows: pd.DataFrame, column: str, minimum_trips: int) -> Array:
    """Return a column as float64 (7, 24), NaN for too few trips."""
    week = rows[rows["trips"] >= minimum_trips].pivot_table(index="weekday", columns="hour", values=column)
    return week.reindex(index=range(7), columns=HOURS).to_numpy(float)


@style.with_style
def tip_fraction_by_borough(table: pd.DataFrame, *, minimum_trips: int) -> Figure:
    """Rank the boroughs of pickup by mean tip fraction, with intervals and numbers of trips.

    ``table`` is `tips_by_borough`, with a null borough for trips without a zone. Boroughs with fewer than
    ``minimum_trips`` trips with a recorded tip are left out.
    """
    borough = table["borough"].fillna(NO_ZONE)
    places = table.assign(borough=borough, label=borough)
    too_few = any((rows["trips"] < minimum_trips).any() for rows in _split_by_service(places).values())
    notes = [f"Left out: boroughs with fewer than {minimum_trips} such trips."] if too_few else []
    return _draw_rankings(table, places, what="borough", notes=notes, minimum_trips=minimum_trips)


@style.with_style
def tip_fraction_by_zone(table: pd.DataFrame, *, zones: int, minimum_trips: int) -> Figure:
    """Rank the taxi zones of pickup by the lower end of the interval of the mean tip fraction, colored by borough.

    ``table`` is `tips_by_zone`, with a null ``location_id`` for trips without a zone. The first ``zones`` of each
    service are shown; those with fewer than ``minimum_trips`` trips with a recorded tip are left out.
    """
    places = table[table["location_id"].notna()]
    names = places["zone"].fillna("zone " + places["location_id"].astype(int).astype(str))
    label = names.where(names.str.len() <= _LONGEST_NAME, names.str[: _LONGEST_NAME - 1] + "…")
    places = places.assign(borough=places["borough"].fillna(NO_ZONE), label=label)
    notes = [
        f"Of the zones with at least {minimum_trips} such trips the {zones} whose interval begins highest: few trips, "
        "whose mean may be high by chance, put no zone on top."
    ]
    notes += _note_missing(table, "location_id", "zone")
    return _draw_rankings(table, places, what="taxi zone", notes=notes, minimum_trips=minimum_trips, most=zones)


def _draw_rankings(
    table: pd.DataFrame, places: pd.DataFrame, *, what: str, notes: Sequence[str], minimum_trips: int,
    most: int | None = None,
) -> Figure:  # fmt: skip
    """Draw the ``most`` places with the largest means of each service, side by side; zones with a legend of boroughs.

    ``places`` are the rows of ``table`` with a place, and its ``label``. Places outside the boroughs come last.
    """
    title, services = f"Tips by {what} of pickup", _split_by_service(places)
    places = places[places["trips"] >= minimum_trips].assign(has_borough=places["borough"].isin(_BOROUGHS))
    order = ["has_borough", "mean_low" if most else "mean"]
    places = places.sort_values(order, ascending=False, kind="stable")
    rankings = {service: rows.iloc[:most] for service, rows in _split_by_service(places).items()}
    if not rankings:
        reason = f"No place of pickup is known of {minimum_trips} or more trips with a recorded tip."
        return style.text_figure(title, reason if _split_by_service(table) else NOTHING)
    rows, legend = max(map(len, rankings.values())), what != "borough"
    subtitle = f"{RECORDED} Bars: {_interval_name(table)}. Dashed: the service's mean."
    width, height = max(9.0, 3.7 * len(rankings)), 1.2 + 0.235 * max(rows, 4) + 0.35 * legend
    figure, body = style.new_figure(width, height, title=title, subtitle=subtitle, notes=notes)
    panels = body.subplots(1, len(rankings), squeeze=False)[0]
    for axes, (service, ranking) in zip(panels, rankings.items(), strict=True):
        mean = _overall_mean(services[service])
        axes.axvline(mean, color=style.GRAY, linestyle="--", linewidth=1)
        sample = f"mean {words.percent(mean)}, {_sample_size(services[service])}"
        axes.set_title(f"{LOOKS[service].name}\n{sample}", pad=16)
        _draw_ranking(axes, ranking, rows=rows)
    if legend:
        boroughs = {borough for ranking in rankings.values() for borough in ranking["borough"]}
        entries = [look.entry() for borough, look in _BOROUGHS.items() if borough in boroughs]
        if others := sorted(boroughs - set(_BOROUGHS)):
            entries.append(_OTHER_BOROUGH.entry(label=", ".join(others)))
        body.legend(handles=entries, loc="outside lower left", ncols=8)
    return figure


def _draw_ranking(axes: Axes, places: pd.DataFrame, *, rows: int) -> None:
    position = np.arange(len(places))
    for borough in places["borough"].unique():
        look, is_there = _BOROUGHS.get(borough, _OTHER_BOROUGH), (places["borough"] == borough).to_numpy()
        mean, low, high = (places.loc[is_there, name].to_numpy(float) for name in ("mean", "mean_low", "mean_high"))
        error = np.nan_to_num(np.stack([mean - low, high - mean]))
        y = position[is_there]
        axes.errorbar(mean, y, xerr=error, color=look.color, marker=look.mark, ls="none", elinewidth=1.5)
    for row, trips in enumerate(places["trips"].tolist()):
        shapes.write_at_right(axes, words.count(int(trips)), row)
    shapes.write_beside(axes, "trips", (1, 1), (4, 2), coords="axes fraction")
    axes.set_yticks(position, list(map(style.replace_missing_letters, places["label"])))
    axes.set(ylim=(rows - 0.4, -0.6), xlabel=MEASURE)
    axes.grid(visible=False, axis="y")
    shapes.in_percent(axes.xaxis)
    shapes.limit_ticks(axes.xaxis, 4, steps=[1, 2, 5, 10])


@style.with_style
def data_quality(quality: Mapping[str, Any]) -> Figure:
    """Draw the share of rejected trips by month and reason, a panel per service, and the totals by reason.

    ``quality`` is the content of `quality.json`. Trips without a month, and months with wrong clocks only, have no bar.
    """
    title, totals = "Rejected rows by month of pickup and reason", quality["totals"]
    if not totals["rows_in"]:
        return style.text_figure(title, "No row was read.")
    entries = [{**entry, **entry["by_reason"]} for entry in quality["by_month"]]
    rows = pd.DataFrame(entries).drop(columns="by_reason").groupby(["service", "month"], dropna=False).sum()
    by_reason = rows.drop(columns=["rows_in", "rows_out"])
    counts = {str(reason): int(number) for reason, number in by_reason.sum().items()}
    reasons = shapes.most_frequent(counts, len(_REASON_COLORS))
    others = by_reason.drop(columns=list(reasons), errors="ignore").sum(axis=1)
    shares = by_reason.assign(**{shapes.OTHER_REASONS: others})[list(reasons)].div(rows["rows_in"], axis=0)
    shares = shares.assign(rejected=1 - rows["rows_out"] / rows["rows_in"], rows=rows["rows_in"])
    stray = rows.get(STRAY_MONTH, pd.Series(0, rows.index))
    has_bar = (stray != rows["rows_in"]) & pd.notna(rows.index.get_level_values("month"))
    services = [service for service in SERVICES if service in rows[has_bar].index.unique("service")]
    months = sorted(rows[has_bar].index.unique("month"))
    subtitle = (
        f"{words.count(totals['rows_in'])} rows read = {words.count(totals['rows_out'])} kept + "
        f"{words.count(totals['quarantined'])} rejected ({words.percent(totals['quarantined'] / totals['rows_in'])}). "
        "A row with several reasons is in the bar of each; the black lines count it once."
    )
    without_bar = int(rows["rows_in"][~has_bar].sum())
    why = "rows whose month is unknown or not of their file; the totals have them"
    notes = [f"Without a bar: {words.count(without_bar)} {why}."] if without_bar else []
    figure, body = style.new_figure(12, 1.0 + 1.75 * max(len(services), 2), title=title, subtitle=subtitle, notes=notes)
    grid = body.add_gridspec(max(len(services), 1), 2, width_ratios=(1.7, 1))
    for row, service in enumerate(services):
        axes = body.add_subplot(grid[row, 0], sharey=body.axes[0] if row else None)
        shares_of_service = pd.DataFrame(shares[has_bar].loc[service]).reindex(months)
        axes.set_title(f"{LOOKS[service].name}, {words.count(int(shares_of_service['rows'].sum()))} rows")
        _draw_months(axes, shares_of_service)
        axes.tick_params(labelbottom=row == len(services) - 1)
    if services:
        body.axes[0].set_ylim(0, 1.2 * max(axes.dataLim.y1 for axes in body.axes) or 1)
    else:
        style.write_text(body.add_subplot(grid[0, 0]), "No row has a month of its file.")
    bars = {_format_reason(reason): number for reason, number in reasons.items()}
    axes = body.add_subplot(grid[:, 1])
    axes.set_title("All rows by reason")
    if bars:
        colors = _REASON_COLORS[: len(bars)]  # these bars are the legend of the other panels
        xlabel, total = "Share of all rows read", totals["rows_in"]
        shapes.draw_bars(axes, bars, total=total, colors=colors, xlabel=xlabel, rows=5, room=1.5)
    else:
        style.write_text(axes, "No row was rejected.")
    return figure


def _format_reason(reason: str) -> str:
    """Return a reason of `quality.json` in words, such as ``trip distance > 200 miles``."""
    if reason == STRAY_MONTH:
        return "month not of this file"
    text, after = reason, ""
    if bound := re.fullmatch(rf"(.+)_({'|'.join(_COMPARISONS)})_(.+)", reason):
        text, comparison, limit = bound.groups()
        after = f" {_COMPARISONS[comparison]} {float(limit):,g}{_UNITS.get(text, '')}"
    for verb in ("missing", "unreadable"):
        if reason.startswith(f"{verb}_"):
            text, after = reason.removeprefix(f"{verb}_"), f" {verb}"
    return text.replace("_", " ").replace("dropoff", "drop-off") + after


def _draw_months(axes: Axes, shares: pd.DataFrame) -> None:
    """Draw the shares of the reasons in each month as stacked bars, and the share of rejected rows as a line."""
    rows, rejected = shares.pop("rows").to_numpy(), shares.pop("rejected").to_numpy()
    few, places, top = len(rows) <= _FEW_BARS, np.arange(len(rows)), np.zeros(len(rows))
    width = 0.8 if few else 1.0
    for reason, color in zip(shares, _REASON_COLORS, strict=False):
        axes.bar(places, shares[reason], width, bottom=top, color=color)
        top += shares[reason].to_numpy()
    axes.hlines(rejected, places - width / 2, places + width / 2, color=style.BLACK, linewidth=1.5 if few else 1)
    for place in np.flatnonzero(rows > 0).tolist() if few else []:
        text, height = f"{words.short_count(int(rows[place]))} rows", max(top[place], rejected[place])
        shapes.write_beside(axes, text, (place, height), (0, 2), ha="center")
    axes.set(xlim=(-0.6, max(len(rows), 3) - 0.4), ylabel="Share of rows")
    axes.grid(visible=False, axis="x")
    # Every month if there are few, else the first of each year.
    months = list(shares.index)
    years = [month[:4] for month in months]
    ticks = {place: month for place, month in enumerate(months if few else years) if few or month not in years[:place]}
    axes.set_xticks(list(ticks), list(ticks.values()), rotation=45 if _FEW_BARS / 2 < len(rows) <= _FEW_BARS else 0)
    shapes.in_percent(axes.yaxis)


@style.with_style
def predicted_against_observed(predictions: pd.DataFrame, *, metrics: Mapping[str, Any]) -> Figure:
    """Draw the held-out trips of each service and model, and the mean observed in each tenth of the predictions.

    ``predictions`` is `predictions.parquet`, and ``metrics`` the content of `metrics.json`.
    """
    title = "Predicted against observed tips of held-out trips"
    services = [service for service in SERVICES if service in set(predictions["service"])]
    notes = [
        f"{LOOKS[service].name}: no model, {result['reason']}."
        for service, result in metrics["services"].items()
        if result["status"] == "skipped"
    ]
    if not services:
        return style.text_figure(title, *(notes or ["No model was fitted."]))
    subtitle = (
        "Points: mean observed in each tenth of the predictions, with 95 % interval; dashed: right on average. "
        "Grey: trips, the darker the more (logarithmic). MAE: mean absolute error."
    )
    rows, columns = (1, len(MODELS)) if len(services) == 1 else (len(MODELS), len(services))
    figure, body = style.new_figure(4.8 * columns, 4.3 * rows, title=title, subtitle=subtitle, notes=notes)
    panels = iter(body.subplots(rows, columns, squeeze=False).flat)
    for model, name in MODELS.items():
        for service in services:
            trips = predictions[predictions["service"] == service]
            axes, look, scores = next(panels), LOOKS[service], metrics["services"][service]["held_out"][model]
            predicted, observed = (trips[column].to_numpy(float) for column in (model, "observed"))
            outside = draw_predictions(axes, predicted, observed, look, measure=MEASURE.lower())
            sample = f"n = {words.count(len(trips))}" + (f", {words.count(outside)} outside" if outside else "")
            score = f"R² {interval(scores['r2'], 1, 2)}, MAE {interval(scores['mae'], 100, 1)} points"
            axes.set_title(f"{look.name}, {name.lower()}\n{score}\n{sample}", size=9.5)
    return figure
