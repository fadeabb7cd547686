"""Pieces that are measured as all benchmarks are: ours on the device beside ours on the CPU, whose answer is right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.config import Benchmarks
from benchmarks.gpu_proof.applications import call
from benchmarks.gpu_proof.proof import ROOT, Found, Work
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
# Rounds are begun while they are expected to end within these seconds.
SECONDS = 120.0


def empty_step(work: Work) -> Found:
    """Measure a step without work."""
    command = (this_python(), "-m", "benchmarks.gpu_proof.empty_step", "--threads", str(work.threads))
    return _beside_cpu(work, lambda placement: Variant("", (*command, *placement.options)), bytes_=24, rows=3)


def taxi_tips(work: Work) -> Found:
    """Measure when 100 million trips were tipped."""
    trips = work.sized(TRIPS)
    months = max(1, min(60, round(trips / MONTH_TRIPS)))
    made = simulated_months.prepare(
        Path("trips"), months=months, rows=trips // months, seed=SEED, with_csv=False, processes=work.threads
    )

    def tips(placement: Placement) -> Variant:
        return tips_variant("whitewater", made.parquet, made, threads=work.threads, placement=placement)

    return _beside_cpu(work, tips, bytes_=sum(path.stat().st_size for path in made.parquet), rows=made.rows)


def recsys_features(work: Work) -> Found:
    """Measure the fitting and making of features of 10 million rows; sums over all that is written are compared."""
    log = click_log.prepare(Path("clicks"), rows=work.sized(ROWS), seed=SEED, threads=work.threads,
                            largest_cardinality=work.sized(LARGEST_CARDINALITY))  # fmt: skip

    def features(placement: Placement) -> Variant:
        return features_variant_of("whitewater", log, Path("made"), threads=work.threads, placement=placement)

    return _beside_cpu(work, features, bytes_=log.file_bytes, rows=log.rows, tolerance=1e-5)


def _beside_cpu(
    work: Work, on: Callable[[Placement], Variant], *, rows: int, bytes_: int, tolerance: float = 1e-9
) -> Found:
    variants = [replace(on(Placement(device)), name=name) for name, device in (("device", work.device), ("cpu", "cpu"))]
    plan = Plan(rounds=5, at_least=1, seconds=SECONDS * min(1, work.scale), threads=work.threads, tolerance=tolerance)
    size = Size(rows=rows, bytes=bytes_, basis="file")
    return _found([measure("ours", variants, oracle="cpu", plan=plan, size=size, parameters={}, packages=PACKAGES)])


def _found(reports: Sequence[Report]) -> Found:
    """Return what reports come to: medians by name, and which answers were wrong."""
    checks, figures = {}, {}
    for report in reports:
        for name, outcome in report.outcomes.items():
            label = f"{report.name}: {name}"
            if outcome.missing is None:
                checks[label] = outcome.void or ""
            if outcome.summary and not outcome.void:
                figures[label] = outcome.summary[report.headline].median
                for phase in outcome.samples[0].phases:
                    figures[f"{label}: {phase}"] = median(sample.phases[phase] for sample in outcome.samples)
    return Found(checks=checks, figures=figures, reports=tuple(reports))


def published(row: str, work: Work, *, scale: float | None = None) -> Found:
    """Measure a row of the published table, at the scale that `make bench` has unless another is given."""
    settings = getattr(Benchmarks(), row).model_dump(include={"scale", "rounds"})
    if scale is not None:
        settings = {"scale": scale * work.scale, "rounds": 1}
    call("benchmarks.published", row, "--device", work.device, "--threads", work.threads, "--settings",
         json.dumps(settings), "--report", "reports.json")  # fmt: skip
    return _found(Reports.read(Path("reports.json")).reports)


def suite(work: Work) -> Found:
    """Run tests/gpu, which take the path that users get, and count what passed, failed and was skipped."""
    command = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--basetemp",
        str(Path("pytest").absolute()),
        "tests/gpu",
    ]
    ended = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    lines = ended.stdout.strip().splitlines() or ended.stderr.strip().splitlines()[-1:] or [""]
    counts = {what: int(number) for number, what in re.findall(r"(\d+) (passed|failed|skipped|error)", lines[-1])}
    checks = {line.split()[1]: line for line in lines if line.startswith(("FAILED", "ERROR"))}
    if ended.returncode or (work.device == "gpu" and not counts.get("passed")):
        checks["tests/gpu"] = lines[-1]
    return Found(checks=checks, figures=dict(counts))
