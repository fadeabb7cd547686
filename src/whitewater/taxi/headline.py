"""What a run of the taxi application found, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whitewater.config.taxi import Plot
from whitewater.store import read_json

_PLACES = {"yellow": "in yellow taxis", "green": "in green taxis", "fhvhv": "on app rides"}
_MODELS = {"ridge": "ridge regression", "forest": "random forest"}


def headline(results: Path) -> list[str]:
    """Return what the results of one device say, one sentence a line; nothing of files that are not there.

    Parameters
    ----------
    results
        Directory of the results, such as ``results/taxi/cpu``.
    """
    sentences = []
    for name, tell in (("tips_by_hour.parquet", _hours), ("quality.json", _quality), ("model/metrics.json", _model)):
        if (results / name).exists():
            sentences += tell(results / name)
    return sentences


def _hours(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    rows = pq.read_table(path, columns=["service", "hour", "trips", "mean"]).to_pylist()
    least = Plot().minimum_trips
    sentences = []
    for service, place in _PLACES.items():
        hours = [row for row in rows if row["service"] == service and row["hour"] is not None and row["trips"] >= least]
        if hours:
            most, lowest = (choose(hours, key=lambda row: row["mean"]) for choose in (max, min))
            sentences.append(f"New Yorkers tip most {place} at {_hour(most)}, and least at {_hour(lowest)}.")
    return sentences or [f"No hour of the day has {least} trips with a recorded tip."]


def _quality(path: Path) -> list[str]:
    totals = read_json(path)["totals"]
    rows, quarantined = totals["rows_in"], totals["quarantined"]
    share = f" ({_percent(quarantined / rows)})" if rows else ""
    return [f"Of {rows:,} rows read, {totals['rows_out']:,} are kept and {quarantined:,}{share} are in quarantine."]


def _model(path: Path) -> list[str]:
    services: dict[str, dict[str, Any]] = read_json(path)["services"]
    sentences = []
    for service, place in _PLACES.items():
        if services.get(service, {}).get("status") == "fitted":
            errors = {name: scores["mae"]["value"] for name, scores in services[service]["held_out"].items()}
            best = min(_MODELS, key=lambda name: errors[name])
            sentences.append(
                f"The {_MODELS[best]} predicts tips {place} to within {100 * errors[best]:.1f} points on average, "
                f"the mean of the hour to within {100 * errors['hour_mean']:.1f} (held-out trips)."
            )
    return sentences


def _hour(row: Mapping[str, Any]) -> str:
    return f"{row['hour']} h: {_percent(row['mean'])} of the fare (n = {row['trips']:,})"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"
