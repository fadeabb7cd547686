"""Measure the taxi benchmark: `python -m benchmarks.taxi --case A --months 12`; see benchmarks/README.md."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from benchmarks.arguments import parser_of, plan_of
from benchmarks.measure import measure
from benchmarks.process_tree import MeasurementError
from benchmarks.report import Report, Size, table
from benchmarks.taxi.commands import variant
from benchmarks.taxi.simulated_months import prepare

CASES = {"A": "aggregate Parquet", "B": "aggregate Parquet and write the cleaned trips", "C": "aggregate CSV"}
VARIANTS = (
    "whitewater",
    "whitewater_dask",
    "polars",
    "duckdb",
    "polars_exact",
    "polars_libraries",
    "pandas",
    "dask_dataframe",
)
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
    written.mkdir(exist_ok=True)
    try:
        return measure(
            f"taxi {case}: {CASES[case]}",
            [
                variant(name, files, months, threads=arguments.threads, output=written / name if case == "B" else None)
                for name in arguments.variants
            ],
            oracle=ORACLE,
            plan=plan_of(arguments),
            size=Size(rows=months.rows, bytes=sum(file.stat().st_size for file in files), basis="file"),
            parameters={"case": case, "months": arguments.months, "seed": arguments.seed, "sha256": months.sha256},
            packages=PACKAGES,
        )
    finally:
        shutil.rmtree(written, ignore_errors=True)


def _arguments() -> Any:
    parser = parser_of("taxi", rounds=10)
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES), help="see benchmarks/README.md")
    parser.add_argument("--months", type=int, default=12, help="months of trips")
    parser.add_argument("--rows", type=int, default=3_000_000, help="trips in a month")
    parser.add_argument("--seed", type=int, default=2019, help="seed of the simulated trips")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS[:4]), help="must hold duckdb")
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
