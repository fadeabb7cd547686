"""An application end to end on a device, and on the CPU of the same machine: what both left is compared."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.gpu_proof.proof import ROOT, Found, Work
from benchmarks.gpu_proof.same import Rule, compare
from benchmarks.process_tree import MeasurementError
from whitewater.io.store import read_json

# Sums of 64-bit floats in another order, products of 32-bit floats, and features written as 32-bit floats.
SUMS, PRODUCTS, FEATURES = 1e-9, 1e-5, 1e-6
# Scores of models that are fitted by libraries with random numbers of their own.
AS_GOOD = 0.05
RULES: dict[str, tuple[Rule, ...]] = {
    "taxi": (
        Rule("standardised", whole="table"),
        Rule("standardised/*", compared=False),
        Rule("trips", whole="table"),
        Rule("quarantine", whole="table"),
        Rule("tips_by_*", SUMS),
        Rule("model/metrics.json", AS_GOOD, left_out=("importances", "search")),
        Rule("model/model.json", left_out=("files", "sha256")),
        Rule("model/predictions.parquet", FEATURES, left_out=("forest",)),
        Rule("model/*/ridge.json", FEATURES),
        Rule("model/*/forest.treelite", compared=False),
    ),
    "genomics": (
        Rule("loadings.zarr", PRODUCTS, whole="group"),
        Rule("pcs.parquet", PRODUCTS),
        Rule("projected.parquet", PRODUCTS),
        Rule("eigenvalues.json", 1e-2, left_out=("residuals", "p_value")),
        Rule("umap.parquet", left_out=("UMAP1", "UMAP2")),
        Rule("umap.json", 0.1),
    ),
    "pagerank": (
        Rule("ranks.parquet", SUMS),
        Rule("vertices.parquet", SUMS, left_out=("community",)),
        Rule("convergence.json", FEATURES, left_out=("iterations", "log", "error_bound", "start")),
        # Components are compared vertex by vertex.
        Rule("communities.json", 0.02, left_out=("count", "largest", "size_counts", "sizes")),
        Rule("queries.json", FEATURES),
    ),
    "recsys": (
        Rule("metrics.json", AS_GOOD, left_out=("calibration", "calibration_error", "trees")),
        Rule("drift.json", 2e-6),
        Rule("*", FEATURES),
    ),
}
# What a run below the full scale is made with, in place of the defaults.
SMALL: dict[str, dict[str, Any]] = {
    "taxi": {
        "fetch": {"generated": {"scale": 0.001, "months": ["2019-03"]}},
        "model": {"folds": 2, "bootstrap": 20, "forest": {"trees": [5], "depths": [4]}},
    },
    "genomics": {"simulate": {"chromosome_length": 1e6}},
    "pagerank": {"simulate": {"pages": 60, "words": 40, "topics": 3}},
    "recsys": {"simulate": {"rows": 2000, "continuous": 3, "categorical": 4, "largest_cardinality": 50}},
}


def show(application: str, work: Work) -> Found:
    """Run an application on both devices and compare what they left; the seconds of each step are among the figures."""
    settings = {application: SMALL[application]} if work.scale < 1 else {}
    Path("settings.json").write_text(json.dumps(settings))
    seconds = {f"{device}: all": _run(application, device, work) for device in ("cpu", work.device)}
    of_device, of_cpu = (Path("results", application, device) for device in (work.device, "cpu"))
    steps = {
        f"{device}: {name}": step["seconds"]
        for device, folder in {"cpu": of_cpu, work.device: of_device}.items()
        for name, step in read_json(folder / "manifest.json")["steps"].items()
    }
    return Found(checks=compare(of_device, of_cpu, RULES[application]), figures={**seconds, **steps})


def _run(application: str, device: str, work: Work) -> float:
    start = time.perf_counter()
    call("snakemake", "--snakefile", ROOT / "Snakefile", "--directory", work.folder, "--cores", work.threads,
         "--configfile", "settings.json", "--config", f"device={device}", "--", application)  # fmt: skip
    return time.perf_counter() - start


def step(application: str, name: str, work: Work, *, device: str, settings: Mapping[str, Any], **paths: Path) -> Any:
    """Run a step as a user does by hand, and return its record."""
    record = work.folder / f"{device}-{name}.json"
    given = [f"--{flag.replace('_', '-')}={path.absolute()}" for flag, path in paths.items()]
    call("whitewater", application, name, "--device", device, "--threads", work.threads, "--record", record,
         "--settings", json.dumps(settings), *given)  # fmt: skip
    return read_json(record)


def call(module: str, *arguments: object) -> None:
    """Run a module's command; what it prints goes where this process prints.

    Raises MeasurementError if it fails.
    """
    # A command of whitewater knows the applications of its working directory.
    folder = ROOT if module == "whitewater" else None
    ended = subprocess.run([sys.executable, "-m", module, *map(str, arguments)], cwd=folder, check=False)
    if ended.returncode:
        raise MeasurementError(f"`python -m {module} {arguments[0]} ...` ended with status {ended.returncode}.")
