"""A job starts fast: its step's module imports no heavy package that the step does not use."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
STEPS = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in SOURCE.glob("whitewater_apps/*/steps/*.py")
    if path.stem != "__init__"
)
# Steps of loops that Numba compiles; their modules import them, and so Numba. Dask and pandas are imported where used.
WITH_NUMBA = {
    "genomics": {"ld_prune", "outliers", "pca", "project", "relatedness"},
    "pagerank": {"communities", "rank"},
    "recsys": {"features", "fit"},
}
HEAVY = ("cyvcf2", "dask", "distributed", "matplotlib", "msprime", "numba", "pandas", "sklearn", "zarr")
# Each step in a fork of a process that has what all steps import.
IMPORT_EACH = f"""
import importlib, json, os, sys

import pytest

import pyarrow.parquet, whitewater.script
for step in sys.argv[1:]:
    if os.fork() == 0:
        importlib.import_module(step)
        print(json.dumps([step, sorted({{*{HEAVY}}} & set(sys.modules))]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, step
"""


@pytest.mark.slow
def test_a_step_imports_no_heavy_package_that_it_does_not_use() -> None:
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_EACH, *STEPS], cwd=SOURCE, capture_output=True, text=True, check=True
    )
    found = dict(map(json.loads, run.stdout.splitlines()))
    numba = {f"whitewater_apps.{name}.steps.{step}" for name, steps in WITH_NUMBA.items() for step in steps}
    assert found == {step: ["numba"] if step in numba else [] for step in STEPS}
