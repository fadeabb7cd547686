"""The input: a simulated click log in Parquet, made once."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from whitewater.engines import resolve
from whitewater.features.log_folder import open_log
from whitewater.step import Inputs, Output, Run
from whitewater_apps.recsys.config import Fetch, Simulate
from whitewater_apps.recsys.steps.fetch import fetch
from whitewater_apps.recsys.steps.simulate import simulate

CPU = resolve("cpu")
DAYS = 7


@dataclass(frozen=True)
class ClickLog:
    """A folder of events as Whitewater's step `fetch` leaves it; the peers read its Parquet files."""

    folder: Path
    rows: int

    @property
    def file_bytes(self) -> int:
        """Bytes of the files."""
        return sum(path.stat().st_size for path in self.folder.glob("*.parquet"))


def prepare(directory: Path, *, rows: int, largest_cardinality: int, seed: int, threads: int) -> ClickLog:
    """Simulate a log of 13 columns of numbers and 26 of categories, unless it is there."""
    folder = directory / f"events-{rows}-{largest_cardinality}-{seed}"
    if not folder.exists():
        scratch = directory / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        settings = Simulate(rows=rows, days=DAYS, largest_cardinality=largest_cardinality, seed=seed)
        simulated = scratch / "simulated"
        simulate(Run("recsys", "simulate", CPU, settings, threads), simulated=Output(simulated))
        fetch(
            Run("recsys", "fetch", CPU, Fetch(), threads),
            simulated=Inputs({"simulated": simulated}),
            events=Output(scratch / "events"),
            inputs=Output(scratch / "inputs.json"),
        )
        (scratch / "events").rename(folder)
        shutil.rmtree(scratch)
    return ClickLog(folder, open_log(folder).rows)
