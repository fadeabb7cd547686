"""Refuse results of which some do not count: ``python -m benchmarks.check --results F --scaling F --checked F``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from benchmarks.process_tree import MeasurementError
from benchmarks.report import Report, Reports
from benchmarks.results_file import Results, read
from whitewater.io.store import write_bytes
from whitewater.log import log_output


def check(reports: Sequence[Report]) -> str:
    """Return what was compared, and what could not be tried, as text.

    Raises
    ------
    MeasurementError
        If a variant is void; the message names each, with the reason.
    """
    void, missing = _named(reports, "void"), _named(reports, "missing")
    if void:
        raise MeasurementError("\n".join(["Variants whose figures do not count:", *void]))
    tried = sum(outcome.missing is None for report in reports for outcome in report.outcomes.values())
    lines = [f"{tried} variants of {len(reports)} cases gave the right answers."]
    return "\n".join([*lines, *(["Not tried here:", *missing] if missing else [])]) + "\n"


def _named(reports: Iterable[Report], field: Literal["void", "missing"]) -> list[str]:
    return [
        f"{report.name}: {variant}: {reason}"
        for report in reports
        for variant, outcome in report.outcomes.items()
        if (reason := getattr(outcome, field)) is not None
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the reports of rows and of scaling, and write what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__, allow_abbrev=False)
    parser.add_argument("--results", type=Path, required=True, help="results of all rows, JSON")
    parser.add_argument("--scaling", type=Path, help="reports of the scaling, JSON")
    parser.add_argument("--checked", type=Path, required=True, help="file for what was found, text")
    parser.add_argument("--log", type=Path, help="file for everything printed")
    given: Any = parser.parse_args(arguments)
    with log_output(given.log, name="benchmarks check"):
        reports = [case.report for case in read(given.results, Results).cases]
        reports += read(given.scaling, Reports).reports if given.scaling else ()
        found = check(reports)
        print(found, end="")
        write_bytes(given.checked, found.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
