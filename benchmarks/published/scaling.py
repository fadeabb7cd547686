"""How rows scale with Dask's workers: `python -m benchmarks.published.scaling`; see benchmarks/README.md.

Each row's code as published runs on threads of one process, on processes, and on a cluster that is attached to; with
1, 2, 4, ... workers. On GPUs a worker is a GPU.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.config import Benchmarks, Scaling
from benchmarks.measure import this_python
from benchmarks.published import row as rows
from benchmarks.published.measuring import PACKAGES
from benchmarks.published.row import ONE_BLAS_THREAD, CallCase, Row, Work
from benchmarks.published.work import as_argument
from benchmarks.report import Plan, Report, Reports, in_short, table
from whitewater import engines
from whitewater.engines.config import Cluster
from whitewater.log import log_output

logger = logging.getLogger("whitewater.benchmarks")
VARIANT = "as_published"


def measure_scaling(row: Row, work: Work, *, settings: Scaling) -> Report:
    """Measure the first case of a row that was published on Dask, on each kind and number of workers."""
    case = next(
        case for case in row.cases if isinstance(case, CallCase) and VARIANT in [each.name for each in case.variants]
    )
    work.folder.mkdir(parents=True, exist_ok=True)
    case.prepare(work)
    counts = settings.workers or tuple(doubling(work.threads))
    variants = [
        variant
        for workers in counts
        for variant in (on_gpus if work.device.name == "gpu" else on_cores)(row, case, work, workers=workers)
    ]
    plan = Plan(
        rounds=settings.rounds,
        seconds=settings.seconds,
        threads=1,
        timeout=settings.timeout,
        tolerance=case.tolerance,
    )
    return measure.measure(
        f"{row.id} {row.name}: scaling",
        variants,
        oracle=variants[0].name,
        plan=plan,
        size=case.size(work),
        parameters={"row": row.name, "case": case.name, "device": work.device.name, "scale": work.scale},
        packages=PACKAGES,
        sampling="call",
        operations=case.operations(work) if case.operations else None,
    )


def doubling(most: int) -> Iterator[int]:
    """Yield 1, 2, 4, ... and ``most``."""
    workers = 1
    while workers < most:
        yield workers
        workers *= 2
    yield most


def on_cores(row: Row, case: CallCase, work: Work, *, workers: int) -> Iterator[measure.Variant]:
    """Yield the variants of so many workers: threads, processes, and processes that are attached to."""
    for kind in ("threads", "processes"):
        yield _variant(
            f"{kind}-{workers}", serve(row, case, replace(work, threads=workers, cluster=Cluster(kind=kind)))
        )
    yield _variant(f"attached-{workers}", attached(row, case, work, workers=workers))


def on_gpus(row: Row, case: CallCase, work: Work, *, workers: int) -> Iterator[measure.Variant]:
    """Yield the variants of so many GPUs: a cluster of the process's own, and one that is attached to."""
    visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(workers)))}
    yield _variant(f"processes-{workers}", serve(row, case, replace(work, threads=workers)), visible)
    yield _variant(f"attached-{workers}", attached(row, case, work, workers=workers), visible)


def serve(row: Row, case: CallCase, work: Work) -> tuple[str, ...]:
    """Return the command of a process that answers calls."""
    start = (this_python(), "-m", "benchmarks.published.serve")
    return (*start, row.name, case.name, VARIANT, "--work", as_argument(work))


def attached(row: Row, case: CallCase, work: Work, *, workers: int) -> tuple[str, ...]:
    """Return the command of such a process beside a cluster of worker processes."""
    file = work.folder / f"scheduler-{workers}.json"
    beside = replace(work, threads=workers, cluster=Cluster(kind="attach", scheduler_file=str(file)))
    start = (this_python(), "-m", "benchmarks.published.attached", "--workers", str(workers))
    options = ("--device", work.device.name, "--scheduler-file", str(file))
    # What is started by another process is a descendant of it, whose CPU time is measured with that of the workers.
    return (*start, *options, "--", *serve(row, case, beside), "--counted")


def _variant(name: str, command: tuple[str, ...], environment: dict[str, str] | None = None) -> measure.Variant:
    return measure.Variant(name, command, environment={**ONE_BLAS_THREAD, **(environment or {})})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the rows that the settings name, print a table of each, and write the reports."""
    given = _arguments(arguments)
    with log_output(given.log, name="benchmarks scaling"):
        _measure(given)
    return 0


def _measure(given: Any) -> None:
    settings = Benchmarks.from_option(given.settings, option="--settings")
    # A place that cannot be written is told before minutes of measurements are lost.
    given.report.parent.mkdir(parents=True, exist_ok=True)
    reports = []
    for name in settings.scaling.rows:
        scale = getattr(settings, name).scale
        work = Work(engines.resolve(given.device), given.threads, scale, rows.folder(name, scale))
        reports.append(measure_scaling(rows.load(name), work, settings=settings.scaling))
        print(table(reports[-1]), end="\n\n", flush=True)
        logger.info("%s", in_short(reports[-1]))
    Reports(reports=tuple(reports)).write(given.report)


def _arguments(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published.scaling", description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"), help="where it computes (cpu)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="workers at most (all cores)")
    parser.add_argument("--settings", default="{}", help="JSON: of the section `benchmarks`, scaling and its rows")
    parser.add_argument("--log", type=Path, help="file for everything printed")
    parser.add_argument("--report", type=Path, required=True, help="file for the reports, JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
