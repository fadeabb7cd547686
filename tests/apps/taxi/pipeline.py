"""The taxi steps called as a notebook or a test calls them: in this process, without Snakemake."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tests.guarantees.running import listed
from whitewater.engines import Device
from whitewater.io.store import read_json, write_json
from whitewater.step import Output, Outputs, Run
from whitewater_apps.taxi.config import Taxi
from whitewater_apps.taxi.steps.clean import clean
from whitewater_apps.taxi.steps.standardise import standardise
from whitewater_apps.taxi.steps.tips import tips

TABLES = ("hour", "weekday_hour", "month", "payment_type", "passenger_count", "borough", "zone")


@dataclass(frozen=True)
class Results:
    """Where the outputs of the steps are."""

    folder: Path

    @property
    def quality(self) -> dict[str, Any]:
        found: dict[str, Any] = read_json(self.folder / "quality.json")
        return found

    @property
    def catalogue(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = read_json(self.folder / "standardised" / "files.json")
        return found

    def trips(self) -> pd.DataFrame:
        return pd.read_parquet(self.folder / "trips")

    def quarantine(self) -> pd.DataFrame:
        return pd.read_parquet(self.folder / "quarantine")

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_parquet(self.folder / f"tips_by_{name}.parquet")


def run_taxi(
    files: Sequence[Path],
    *,
    zones: Path,
    folder: Path,
    device: Device,
    settings: Mapping[str, Any] | None = None,
    threads: int = 2,
    upto: str = "tips",
) -> Results:
    """Standardise, clean and summarise files; return where the results are."""
    config = Taxi.model_validate(dict(settings or {}))
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "inputs.json", listed(*files))
    standardise(
        Run("taxi", "standardise", device, config.standardise, threads),
        inputs=folder / "inputs.json",
        standardised=Output(folder / "standardised"),
    )
    if upto == "standardise":
        return Results(folder)
    clean(
        Run("taxi", "clean", device, config.clean, threads),
        standardised=folder / "standardised",
        zones=zones,
        trips=Output(folder / "trips"),
        quarantine=Output(folder / "quarantine"),
        quality=Output(folder / "quality.json"),
    )
    if upto == "tips":
        tips(
            Run("taxi", "tips", device, config.tips, threads),
            trips=folder / "trips",
            zones=zones,
            tables=Outputs({f"tips_by_{name}.parquet": folder / f"tips_by_{name}.parquet" for name in TABLES}),
        )
    return Results(folder)
