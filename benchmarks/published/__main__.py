"""Measure one row of the published table: `python -m benchmarks.published frame`; see benchmarks/README.md."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.config import Benchmarks
from benchmarks.config import Row as Settings
from benchmarks.published import row as rows
from benchmarks.published.measuring import measure_case, prepare_case
from benchmarks.report import Plan, Reports, in_short, table
from whitewater import engines
from whitewater.engines.config import Cluster
from whitewater.log import log_output

logger = logging.getLogger("whitewater.benchmarks")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a row, print its table, and write its reports."""
    given = _arguments(arguments)
    with log_output(given.log, name=f"benchmarks {given.row}"):
        _measure(given)
    return 0


def _measure(given: Any) -> None:
    settings = type(getattr(Benchmarks(), given.row)).from_option(given.settings, option="--settings")
    row = rows.load(given.row)
    work = rows.Work(
        device=engines.resolve(given.device),
        threads=given.threads,
        scale=settings.scale,
        folder=rows.folder(row.name, settings.scale),
        cluster=Cluster.from_option(given.cluster, option="--cluster"),
        options=settings.model_dump(mode="json", exclude=set(Settings.model_fields)),
    )
    plan = Plan(rounds=settings.rounds, seconds=settings.seconds, threads=given.threads, timeout=settings.timeout)
    # A place that cannot be written is told before minutes of measurements are lost.
    given.report.parent.mkdir(parents=True, exist_ok=True)
    # All cases first: that the last one has no room is told before the others have been measured.
    for case in row.cases:
        prepare_case(row, case, work)
    reports = []
    for case in row.cases:
        reports.append(measure_case(row, case, work, plan=plan))
        print(table(reports[-1]), end="\n\n", flush=True)
        logger.info("%s", in_short(reports[-1]))
    Reports(reports=tuple(reports)).write(given.report)


def _arguments(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=__doc__, allow_abbrev=False)
    parser.add_argument("row", choices=rows.NAMES)
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"), help="where it computes (cpu)")
    parser.add_argument(
        "--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads of each variant (all)"
    )
    parser.add_argument("--settings", default="{}", help="JSON: the section of the configuration `benchmarks.<row>`")
    parser.add_argument(
        "--cluster", default=os.environ.get("WHITEWATER_CLUSTER", "{}"), help="JSON: the section `cluster`"
    )
    parser.add_argument("--log", type=Path, help="file for everything printed")
    parser.add_argument("--report", type=Path, required=True, help="file for the reports, JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
