"""The steps of the minimal application in one process, on a device and simulated readings."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.gpu_proof.same import Rule
from tests.contract.executed import APPLICATIONS, ROOT
from tests.contract.site import Site
from tests.guarantees.running import listed
from whitewater.io.store import write_json
from whitewater.step import Output
from whitewater_apps.minimal.config import Fetch, Minimal
from whitewater_apps.minimal.steps.aggregate import aggregate
from whitewater_apps.minimal.steps.read import read
from whitewater_apps.minimal.synthetic import write_generated

RULES: tuple[Rule, ...] = ()
CALLS = {"cudf.DataFrame.groupby", "cudf.Series.__lt__", "cudf.Series.astype", "cudf.Series.fillna", "cudf.concat"}
# cuDF reads the files. The host writes them, by columns and masks of Arrow.
CROSSINGS = {"read": (0, 0), "aggregate": (0, 0)}
CODE: tuple[Path, ...] = ()
FRAMES = (APPLICATIONS / "minimal" / "with_dask.py", ROOT / "tables" / "with_dask.py")
# What only the steps of taxi run, and, in its first branch, what only frames of cuDF do.
OF_CPU = {"_is_code", "_recode", "count_rows", "to_arrays", "_as_float", "in_schema", "write_frame"}
BESIDE: set[str] = set()
spread_out = nullcontext


def write_inputs(directory: Path) -> Path:
    """Write raw files, and the list of them."""
    write_json(directory / "inputs.json", listed(*write_generated(directory, Fetch())))
    return directory


def run_steps(site: Site, *, inputs: Path, results: Path) -> None:
    """Keep the valid readings, and summarize them."""
    results.mkdir()
    settings, readings = Minimal(), results / "readings"
    kept = {"readings": readings, "quarantine": results / "quarantine", "quality": results / "quality.json"}
    made: dict[str, Any] = {name: Output(path) for name, path in kept.items()}
    site.run("minimal", read, settings=settings.read, inputs=inputs / "inputs.json", **made)
    tables: dict[str, Any] = {kind: Output(results / f"wind_by_hour.{kind}") for kind in ("parquet", "csv")}
    tables["table"] = tables.pop("parquet")
    site.run("minimal", aggregate, settings=settings.aggregate, readings=readings, **tables)


def check_data(folder: Path) -> None:
    """Check that some readings are kept, and some are not."""
    assert len(pd.read_parquet(folder / "readings")) > 1000
    assert len(pd.read_parquet(folder / "quarantine")) > 2
