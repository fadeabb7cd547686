"""The taxi steps called as a notebook or a test calls them: in this process, without Snakemake."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tests.guarantees.running import listed
from whitewater.engines import Device
from whitewater.engines.config import Cluster, Engine
from whitewater.engines.workers import Workers, thread_workers
from whitewater.io.store import read_json, write_json
from whitewater.step import Output, Outputs, Run
from whitewater_apps.taxi.config import Taxi
from whitewater_apps.taxi.steps.clean import clean
from whitewater_apps.taxi.steps.model import model
from whitewater_apps.taxi.steps.predict import predict
from whitewater_apps.taxi.steps.standardize import standardize
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
    def catalog(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = read_json(self.folder / "standardized" / "files.json")
        return found

    def trips(self) -> pd.DataFrame:
        return pd.read_parquet(self.folder / "trips")

    def quarantine(self) -> pd.DataFrame:
        return pd.read_parquet(self.folder / "quarantine")

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_parquet(self.folder / f"tips_by_{name}.parquet")


@dataclass(frozen=True)
class Threaded(Device):
    """The CPU, whose tasks run on threads of this process by either engine."""

    partition_rows: int = 2**20

    @contextmanager
    def workers(
        self, settings: Cluster, *, threads: int, engine: Engine = "local", large: bool = False
    ) -> Iterator[Workers]:
        with thread_workers(threads) as workers:
            yield workers


def run_taxi(
    files: Sequence[Path],
    *,
    zones: Path,
    folder: Path,
    device: Device,
    engine: Engine = "local",
    cluster: Cluster | None = None,
    settings: Mapping[str, Any] | None = None,
    threads: int = 2,
    upto: str = "tips",
) -> Results:
    """Run the steps on files ``upto`` the one of that name; return where the results are."""
    config = Taxi.model_validate(dict(settings or {}))
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "inputs.json", listed(*files))

    for step, paths in steps(folder, zones=zones).items():
        name = step.__name__
        of_step = getattr(config, name)
        step(Run("taxi", name, device, of_step, threads, cluster or Cluster(), engine=engine), **paths)
        if name == upto:
            break
    return Results(folder)


def steps(folder: Path, *, zones: Path) -> dict[Callable[..., None], dict[str, Any]]:
    """Return the steps in their order, with what they read and write in a folder."""
    standardized, trips, fitted = (folder / name for name in ("standardized", "trips", "model"))
    tables = Outputs({f"tips_by_{name}.parquet": folder / f"tips_by_{name}.parquet" for name in TABLES})
    return {
        standardize: {"inputs": folder / "inputs.json", "standardized": Output(standardized)},
        clean: {"standardized": standardized, "zones": zones, "trips": Output(trips),
                "quarantine": Output(folder / "quarantine"), "quality": Output(folder / "quality.json")},
        tips: {"trips": trips, "zones": zones, "tables": tables},
        model: {"trips": trips, "zones": zones, "model": Output(fitted)},
        predict: {"trips": trips, "zones": zones, "model": fitted, "predictions": Output(folder / "predictions")},
    }  # fmt: skip
