"""Measure the taxi benchmark: `python -m benchmarks.taxi --case A --months 12`; see benchmarks/README.md."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import measure
from benchmarks.process_tree import MeasurementError
from benchmarks.report import Plan, Report, Size, table
from benchmarks.taxi.commands import variant
from benchmarks.taxi.simulated_months import prepare

CASES = {"A": "aggregate Parquet", "B": "aggregate Parquet and write the cleaned trips", "C": "aggregate CSV"}
VARIANTS = ("whitewater", "polars", "duckdb", "pandas", "dask_dataframe")
ORACLE = "duckdb"
PACKAGES = ("duckdb", "polars")


def run_case(case: str, arguments: Any) -> Report:
    """Prepare the files of a case, measure it, and return the report."""
    months = prepare(
        arguments.data,
        months=arguments.months,
        rows=arguments.rows,
        seed=arguments.seed,
        with_csv=case == "C",
        processes=arguments.threads,
    )
    files = months.csv if case == "C" else months.parquet
    written = arguments.data / "written"
    plan = Plan(rounds=arguments.rounds, seconds=arguments.seconds, threads=arguments.threads)
    written.mkdir(exist_ok=True)
    try:
        return measure(
            f"taxi {case}: {CASES[case]}",
            [
                variant(name, files, months, threads=arguments.threads, output=written / name if case == "B" else None)
                for name in arguments.variants
            ],
            oracle=ORACLE,
            plan=plan,
            size=Size(rows=months.rows, bytes=sum(file.stat().st_size for file in files), basis="file"),
            parameters={"case": case, "months": arguments.months, "seed": arguments.seed, "sha256": months.sha256},
            packages=PACKAGES,
        )
    finally:
        shutil.rmtree(written, ignore_errors=True)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.taxi", description="Run in the root of the repository.")
    parser.add_argument(
        "--case", nargs="+", choices=CASES, default=list(CASES), help="A, B, C: see benchmarks/README.md"
    )
    parser.add_argument("--months", type=int, default=12, help="months of trips (12)")
    parser.add_argument("--rows", type=int, default=3_000_000, help="trips in a month (3000000)")
    parser.add_argument("--seed", type=int, default=2019, help="seed of the simulated trips (2019)")
    parser.add_argument("--rounds", type=int, default=10, help="rounds at most (10)")
    parser.add_argument("--seconds", type=float, help="begin no round that would end later; at least 3 rounds are made")
    parser.add_argument("--threads", type=int, default=2, help="threads of each variant (2)")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS[:3]), help="must hold duckdb")
    parser.add_argument("--data", type=Path, default=Path("data/benchmarks/taxi"), help="directory of the files")
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results"), help="directory of the reports")
    return parser.parse_args()


def main() -> int:
    """Measure the cases asked for, write a report of each, and return 1 if any answer was wrong."""
    arguments = _arguments()
    status = 0
    for case in arguments.case:
        try:
            report = run_case(case, arguments)
        except MeasurementError as error:
            sys.exit(f"taxi {case}: {error}")
        report.write(arguments.results / f"taxi-{case}-{arguments.months}.json")
        print(table(report), end="\n\n", flush=True)
        status = max(status, report.exit_status)
    return status


if __name__ == "__main__":
    sys.exit(main())
