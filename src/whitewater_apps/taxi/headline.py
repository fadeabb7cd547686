"""What a run of the taxi application found, in sentences."""

from collections.abc import Mapping
from math import hypot
from pathlib import Path
from statistics import NormalDist
from typing import Any

from whitewater import lazy_pandas as pd
from whitewater.figures.words import interval
from whitewater.io.store import read_json
from whitewater_apps.taxi.config import Plot
from whitewater_apps.taxi.schema import MODELS, PLACES


def headline(results: Path) -> list[str]:
    """Return what the results of one device say, one sentence a line; nothing of files that are not there."""
    files = {
        "tips_by_hour.parquet": _hours,
        "quality.json": _quality,
        "model/metrics.json": _model,
        "predictions/_summary.json": _predictions,
    }
    return [sentence for name, tell in files.items() if (results / name).exists() for sentence in tell(results / name)]


def _hours(path: Path) -> list[str]:
    table, least = pd.read_parquet(path), Plot().minimum_trips
    deviations = NormalDist().inv_cdf(0.5 + table.attrs.get("confidence", 0.95) / 2)
    known = table[table["hour"].notna() & (table["trips"] >= least)]
    by_place = {place: known[known["service"] == service] for service, place in PLACES.items()}
    sentences = [_extremes(hours, place, least, deviations) for place, hours in by_place.items() if len(hours)]
    return sentences or [f"No hour of the day has {least} trips with a recorded tip."]


def _extremes(hours: "pd.DataFrame", place: str, least: int, deviations: float) -> str:
    """Say when people tip most and least, where there is more than one hour and the difference is not noise.

    The two are chosen from all pairs of hours, so that their difference must be significant at 5 % divided by the
    number of pairs (Bonferroni). ``deviations`` are the standard errors that half an interval of the mean has.
    """
    most, lowest = (hours.iloc[each] for each in (hours["mean"].argmax(), hours["mean"].argmin()))
    if len(hours) == 1:
        return f"Tips {place} at {_hour(most)}. No other hour has {least} trips with a recorded tip."
    if most["mean"] == lowest["mean"]:
        return f"Tips {place} are the same in all {len(hours)} hours: {_percent(most['mean'])} of the fare."
    error = hypot(*(row["mean_high"] - row["mean"] for row in (most, lowest))) / deviations
    limit = NormalDist().inv_cdf(1 - 0.05 / (len(hours) * (len(hours) - 1)))
    if most["mean"] - lowest["mean"] <= limit * error:
        return (
            f"Tips {place} do not clearly differ by hour: from the highest mean, at {_hour(most)}, to the lowest, at "
            f"{_hour(lowest)}, the difference is within noise, given the choice among {len(hours)} hours."
        )
    return f"New Yorkers tip most {place} at {_hour(most)}, and least at {_hour(lowest)}."


def _quality(path: Path) -> list[str]:
    totals = read_json(path)["totals"]
    rows, kept, quarantined = totals["rows_in"], totals["rows_out"], totals["quarantined"]
    share = f" ({_percent(quarantined / rows)})" if rows else ""
    return [
        f"Of {_count(rows, 'row')} read, {kept:,} {_are(kept)} kept "
        f"and {quarantined:,}{share} {_are(quarantined)} in quarantine."
    ]


def _model(path: Path) -> list[str]:
    sentences, services = [], read_json(path)["services"]
    for service, place in PLACES.items():
        if services.get(service, {}).get("status") != "fitted":
            continue
        held_out: Mapping[str, Mapping[str, Any]] = services[service]["held_out"]
        errors = {name: held_out[name]["mae"]["value"] for name in MODELS}
        best = min(errors, key=errors.__getitem__)
        model, hour = (interval(held_out[name]["mae"], 100, 1) for name in (best, "hour_mean"))
        clear = held_out[best]["mae_gain"]["low"] > 0
        sentences.append(
            f"The {MODELS[best].lower()} predicts tips {place} to within {model} points on average, the mean of the "
            f"hour to within {hour} (held-out trips){'.' if clear else ': the model is not clearly better.'}"
        )
    return sentences


def _predictions(path: Path) -> list[str]:
    services = read_json(path)
    trips, predicted = (sum(each[key] for each in services.values()) for key in ("trips", "predicted"))
    missing = [f"{each['not_predicted']:,} of {name}" for name, each in services.items() if each["not_predicted"]]
    rest = f" No model predicts {' and '.join(missing)}." if missing else ""
    return [f"{predicted:,} of {_count(trips, 'trip')} {_are(predicted)} predicted.{rest}"]


def _hour(row: "pd.Series") -> str:
    bounds = f"{100 * row['mean_low']:.1f}, {100 * row['mean_high']:.1f}"
    return f"{row['hour']}:00: {_percent(row['mean'])} [{bounds}] of the fare (n = {row['trips']:,})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"
