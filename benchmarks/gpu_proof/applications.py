"""Applications and steps on a device and on the CPU of the same machine: what both left is compared."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from benchmarks.gpu_proof.proof import ROOT, Found, NotHereError, Work
from benchmarks.gpu_proof.same import Rule, compare
from benchmarks.machine import describe_machine
from benchmarks.process_tree import MeasurementError
from whitewater.io.store import read_json

# Sums of 64-bit floats in another order, products of 32-bit floats, and features written as 32-bit floats.
SUMS, PRODUCTS, FEATURES = 1e-9, 1e-5, 1e-6
# Scores of models that are fitted by libraries with random numbers of their own.
AS_GOOD = 0.05
# Twice `pagerank.rank.tolerance`, within which both are of the exact ranks, and rounding.
RANKS = 2e-10 + 1e-14
RULES: dict[str, tuple[Rule, ...]] = {
    "taxi": (
        Rule("standardized", whole="table"),
        Rule("standardized/*", compared=False),
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
        Rule("ranks.parquet", RANKS, summed=True),
        Rule("vertices.parquet", RANKS, summed=True, left_out=("community",)),
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
# Of a cluster that is started for a piece; it has a session of its own, so `stop_cluster` ends it.
CLUSTER = Path("cluster.json")


def end_to_end(application: str, work: Work, *, workers: int = 0) -> Found:
    """Run an application on both devices, where ``workers`` are asked for on a cluster of them, and compare all files.

    The seconds of each step are among the figures.

    Raises NotHereError if there are fewer GPUs than workers.
    """
    there = len(describe_machine().gpus)
    if work.device == "gpu" and there < workers:
        raise NotHereError(f"It needs {workers} GPUs; this machine has {there}.")
    settings = {application: SMALL[application]} if work.scale < 1 else {}
    Path("settings.json").write_text(json.dumps(settings))
    figures = {"cpu: all": _run(application, work, "device=cpu")}
    # Tried out on the CPU it needs another name, so that it runs again.
    name = "tried" if work.device == "cpu" else ""
    with _cluster(work, workers) as cluster:
        run = (f"device={work.device}", f"run={{name: '{name}'}}", *cluster)
        figures["device: all"] = _run(application, work, *run)
    found, expected = Path("results", name, application, work.device), Path("results", application, "cpu")
    for place, folder in {"cpu": expected, "device": found}.items():
        for step, record in read_json(folder / "manifest.json")["steps"].items():
            figures[f"{place}: {step}"] = record["seconds"]
    return Found(checks=compare(found, expected, RULES[application]), figures=figures)


def _run(application: str, work: Work, *configuration: str) -> float:
    start = time.perf_counter()
    call("snakemake", "--snakefile", ROOT / "Snakefile", "--directory", ".", "--cores", work.threads,
         "--configfile", "settings.json", "--config", *configuration, "--", application)  # fmt: skip
    return time.perf_counter() - start


@contextmanager
def _cluster(work: Work, workers: int) -> Iterator[list[str]]:
    """Start a cluster of so many workers, in the folder of the run, and yield how steps find it; nothing for none."""
    if not workers:
        yield []
        return
    call("whitewater", "cluster", "start", "--device", work.device, "--workers", workers, "--file", CLUSTER.absolute())
    yield [f"cluster={{scheduler_file: {CLUSTER.absolute()}}}"]
    stop_cluster(Path())


def stop_cluster(folder: Path) -> None:
    """End the cluster that a piece started in a folder, if it still runs."""
    if (folder / CLUSTER).exists():
        call("whitewater", "cluster", "stop", "--file", (folder / CLUSTER).absolute())


def step_on_both(
    application: str,
    name: str,
    work: Work,
    *,
    inputs: Mapping[str, Path],
    outputs: Mapping[str, str],
    settings: Mapping[str, JsonValue],
) -> Found:
    """Run a step by hand on both devices and compare what it wrote; among the figures is what it recorded."""
    figures: dict[str, JsonValue] = {}
    for place, device in {"cpu": "cpu", "device": work.device}.items():
        paths = {**inputs, **{output: Path(place, file) for output, file in outputs.items()}}
        record = Path(f"{place}.json").absolute()
        given = [f"--{flag}={path.absolute()}" for flag, path in {**paths, "record": record}.items()]
        # Where it is called it finds the applications.
        command = ("whitewater", application, name, f"--device={device}", f"--threads={work.threads}", *given)
        call(*command, f"--settings={json.dumps(settings)}", folder=ROOT)
        made = read_json(record)
        facts = {key: value for key, value in made["facts"].items() if isinstance(value, int | float)}
        peak = made["facts"].get("workers", {}).get("peak_device_memory_bytes")
        recorded = {"seconds": made["seconds"], **facts, **({"peak_device_memory_bytes": peak} if peak else {})}
        figures |= {f"{place}: {key}": value for key, value in recorded.items()}
    return Found(checks=compare(Path("device"), Path("cpu"), RULES[application]), figures=figures)


def call(module: str, *arguments: object, folder: Path | None = None) -> None:
    """Run a module's command; what it prints goes where this process prints. Raises MeasurementError if it fails."""
    ended = subprocess.run([sys.executable, "-m", module, *map(str, arguments)], cwd=folder, check=False)
    if ended.returncode:
        raise MeasurementError(f"`python -m {module} {arguments[0]} ...` ended with status {ended.returncode}.")
