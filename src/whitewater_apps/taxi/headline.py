"""The results of a run of the taxi application in sentences."""

from collections.abc import Mapping
from math import hypot
from pathlib import Path
from statistics import NormalDist
from typing import Any

from whitewater import lazy_pandas as pd
from whitewater.figures.words import interval
from whitewater.io.store import read_json
from whitewater_apps.taxi.config import Plot
from whitewater_apps.taxi.schema import MODELS, PLACES, SERVICES


def headline(results: Path) -> list[str]:
    """Return a sentence for each result in the folder of a device; missing files are skipped."""
    summaries = {
        "tips_by_hour.parquet": _summarize_hours,
        "quality.json": _summarize_quality,
        "model/metrics.json": _summarize_models,
        "predictions/_summary.json": _summarize_predictions,
    }
    present = {results / name: summarize for name, summarize in summaries.items() if (results / name).exists()}
    return [sentence for path, summarize in present.items() for sentence in summarize(path)]


def _summarize_hours(path: Path) -> list[str]:
    table, minimum_trips = pd.read_parquet(path), Plot().minimum_trips
    z = NormalDist().inv_cdf(0.5 + table.attrs.get("confidence", 0.95) / 2)
    table = table[table["hour"].notna() & (table["trips"] >= minimum_trips)]
    by_place = {PLACES[service]: table[table["service"] == service] for service in SERVICES}
    sentences = [_compare_hours(hours, place, minimum_trips, z) for place, hours in by_place.items() if len(hours)]
    return sentences or [f"No hour of the day has {minimum_trips} trips with a recorded tip."]


def _compare_hours(hours: "pd.DataFrame", place: str, minimum_trips: int, z: float) -> str:
    """Say when people tip most and least, if the difference is significant.

    The two hours are chosen from all pairs, so their difference must be significant at 5 % divided by the number of
    pairs (Bonferroni). ``z`` is half the interval of a mean in standard errors.
    """
    most, least = (hours.iloc[row] for row in (hours["mean"].argmax(), hours["mean"].argmin()))
    if len(hours) == 1:
        return f"Tips {place} at {_format_hour(most)}. No other hour has {minimum_trips} trips with a recorded tip."
    if most["mean"] == least["mean"]:
        return f"Tips {place} are the same in all {len(hours)} hours: {_percent(most['mean'])} of the fare."
    error = hypot(*(row["mean_high"] - row["mean"] for row in (most, least))) / z
    limit = NormalDist().inv_cdf(1 - 0.05 / (len(hours) * (len(hours) - 1)))
    if most["mean"] - least["mean"] <= limit * error:
        return (
            f"Tips {place} do not clearly differ by hour: from the highest mean, at {_format_hour(most)}, to the "
            f"lowest, at {_format_hour(least)}, the difference is within noise, given the choice among {len(hours)} "
            "hours."
        )
    return f"New Yorkers tip most {place} at {_format_hour(most)}, and least at {_format_hour(least)}."


def _summarize_quality(path: Path) -> list[str]:
    totals = read_json(path)["totals"]
    rows, kept, quarantined = totals["rows_in"], totals["rows_out"], totals["quarantined"]
    share = f" ({_percent(quarantined / rows)})" if rows else ""
    rejected = f"{quarantined:,}{share} {_are(quarantined)} in quarantine"
    return [f"Of {_count(rows, 'row')} read, {kept:,} {_are(kept)} kept and {rejected}."]


def _summarize_models(path: Path) -> list[str]:
    sentences, services = [], read_json(path)["services"]
    for service in SERVICES:
        if services.get(service, {}).get("status") != "fitted":
            continue
        held_out: Mapping[str, Mapping[str, Any]] = services[service]["held_out"]
        best = min(MODELS, key=lambda name: held_out[name]["mae"]["value"])
        model, hour = (interval(held_out[name]["mae"], 100, 1) for name in (best, "hour_mean"))
        is_better = held_out[best]["mae_gain"]["low"] > 0
        sentences.append(
            f"The {MODELS[best].lower()} predicts tips {PLACES[service]} to within {model} points on average, the mean "
            f"of the hour to within {hour} (held-out trips){'.' if is_better else ': the model is not clearly better.'}"
        )
    return sentences


def _summarize_predictions(path: Path) -> list[str]:
    services = read_json(path)
    trips, predicted = (sum(counts[key] for counts in services.values()) for key in ("trips", "predicted"))
    missing = [f"{counts['not_predicted']:,} of {name}" for name, counts in services.items() if counts["not_predicted"]]
    rest = f" No model predicts {' and '.join(missing)}." if missing else ""
    return [f"{predicted:,} of {_count(trips, 'trip')} {_are(predicted)} predicted.{rest}"]


def _format_hour(row: "pd.Series") -> str:
    bounds = f"{100 * row['mean_low']:.1f}, {100 * row['mean_high']:.1f}"
    return f"{row['hour']}:00: {_percent(row['mean'])} [{bounds}] of the fare (n = {row['trips']:,})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"
