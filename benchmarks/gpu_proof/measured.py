"""Pieces that are measured as all benchmarks are: ours on the device beside ours on the CPU, whose answer is right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.config import Benchmarks
from benchmarks.gpu_proof.applications import call
from benchmarks.gpu_proof.proof import ROOT, Found, NotHereError, Work
from benchmarks.machine import describe_machine
from benchmarks.measure import Variant, measure, this_python
from benchmarks.placement import Placement
from benchmarks.published.measuring import PACKAGES
from benchmarks.recsys import click_log
from benchmarks.recsys.commands import features_variant_of
from benchmarks.report import Plan, Report, Reports, Size
from benchmarks.taxi import simulated_months
from benchmarks.taxi.commands import variant as tips_variant

SEED = 2019
MONTH_TRIPS, TRIPS = 3_000_000, 100_000_000
ROWS, LARGEST_CARDINALITY = 10_000_000, 1_000_000
# Of rounds, begun while they are expected to end within these seconds.
SECONDS = 120.0


def empty_step(work: Work) -> Found:
    """Measure a step without work."""
    command = (this_python(), "-m", "benchmarks.gpu_proof.empty_step", "--threads", str(work.threads))
    size = Size(rows=3, bytes=24, basis="memory")
    return _beside_cpu("empty step", lambda placement: Variant("", (*command, *placement.options)), work, size=size)


def taxi_tips(work: Work) -> Found:
    """Measure when 100 million trips were tipped."""
    trips = work.sized(TRIPS, least=3000)
    months = max(1, min(60, round(trips / MONTH_TRIPS)))
    made = simulated_months.prepare(
        Path("trips"), months=months, rows=trips // months, seed=SEED, with_csv=False, processes=work.threads
    )
    size = Size(rows=made.rows, bytes=sum(path.stat().st_size for path in made.parquet), basis="file")
    return _beside_cpu(
        "taxi tips",
        lambda placement: tips_variant("whitewater", made.parquet, made, threads=work.threads, placement=placement),
        work,
        size=size,
    )


def recsys_features(work: Work) -> Found:
    """Measure the fitting and making of features of 10 million rows, and compare all that is written."""
    log = click_log.prepare(
        Path("clicks"), rows=work.sized(ROWS, least=1000), seed=SEED, threads=work.threads,
        largest_cardinality=work.sized(LARGEST_CARDINALITY, least=1000),
    )  # fmt: skip
    return _beside_cpu(
        "recsys features",
        lambda placement: features_variant_of(
            "whitewater", log, Path("written", placement.device), threads=work.threads, placement=placement
        ),
        work,
        size=Size(rows=log.rows, bytes=log.file_bytes, basis="file"),
        tolerance=1e-5,
    )


def _beside_cpu(name: str, variant_on: Any, work: Work, *, size: Size, tolerance: float = 1e-9) -> Found:
    variants = [
        replace(variant_on(Placement(device)), name=place)
        for place, device in (("device", work.device), ("cpu", "cpu"))
    ]
    plan = Plan(rounds=5, at_least=1, seconds=SECONDS * min(1, work.scale), threads=work.threads, tolerance=tolerance)
    report = measure(name, variants, oracle="cpu", plan=plan, size=size, parameters={"device": work.device},
                     packages=PACKAGES)  # fmt: skip
    return _found([report])


def _found(reports: list[Report]) -> Found:
    """Return what reports come to: medians by name, and which answers were wrong."""
    checks, figures = {}, {}
    for report in reports:
        for name, outcome in report.outcomes.items():
            label = f"{report.name}: {name}"
            if outcome.missing is None:
                checks[label] = outcome.void or ""
            if outcome.summary and not outcome.void:
                figures[label] = outcome.summary[report.headline].median
                figures |= {f"{label}: {phase}": median(sample.phases[phase] for sample in outcome.samples)
                            for phase in outcome.samples[0].phases}  # fmt: skip
    return Found(checks=checks, figures=figures, reports=tuple(reports))


def published(row: str, work: Work) -> Found:
    """Measure a row of the published table at the scale that `make bench` has, or, R7, at the published one."""
    default = getattr(Benchmarks(), row)
    settings = {"scale": 1.0, "rounds": 1} if row == "array_random" else default.model_dump(include={"scale", "rounds"})
    settings["scale"] *= work.scale if row == "array_random" else 1
    call("benchmarks.published", row, "--device", work.device, "--threads", work.threads, "--settings",
         json.dumps(settings), "--report", "reports.json")  # fmt: skip
    return _found(list(Reports.read(Path("reports.json")).reports))


def suite(work: Work, *, gpus: int = 0) -> Found:
    """Run tests/gpu over the path that users get, and count what passed, failed and was skipped."""
    there = len(describe_machine().gpus)
    if there < gpus:
        raise NotHereError(f"It needs {gpus} GPUs; this machine has {there}.")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", work.folder / "pytest",
               "tests/gpu"]  # fmt: skip
    ended = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False)
    lines = ended.stdout.strip().splitlines() or [ended.stderr.strip()]
    counts = {what: int(number) for number, what in re.findall(r"(\d+) (passed|failed|skipped|error)", lines[-1])}
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    checks = {line.split()[1]: line for line in failed} | {
        "all tests that ran passed": "" if ended.returncode == 0 else lines[-1],
        "tests ran": "" if work.device == "cpu" or counts.get("passed") else lines[-1],
    }
    return Found(checks=checks, figures=counts)
