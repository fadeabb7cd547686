"""Measure the recsys benchmarks: `python -m benchmarks.recsys --case features`; see benchmarks/README.md."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from benchmarks.arguments import add_tools, parser_of, plan_of, with_tools
from benchmarks.measure import measure
from benchmarks.process_tree import MeasurementError
from benchmarks.recsys import click_log, feature_rows, load_variant
from benchmarks.recsys.commands import features_variant_of, load_variant_of
from benchmarks.report import Report, Size, table

TOOLS = {
    "features": ("whitewater", "whitewater_dask", "polars", "duckdb", "sklearn"),
    "load": ("whitewater", "pyarrow", "rows"),
}
ORACLES = {"features": "duckdb", "load": "pyarrow"}
PACKAGES = ("polars", "duckdb", "scikit-learn", "pandas", "pyarrow")
SEED = 1
# Statistics in float64, written as float32.
TOLERANCE = 1e-5


def features(arguments: Any, log: click_log.ClickLog) -> Report:
    """Measure the making of features, and return the report."""
    limit = f", {arguments.memory_limit / 1e9:g} GB of data at most" if arguments.memory_limit else ""
    return measure(
        f"recsys: features of {log.rows:,} rows x 39 columns{limit}",
        [
            features_variant_of(
                name,
                log,
                arguments.data / "written" / name,
                threads=arguments.threads,
                memory_limit=arguments.memory_limit,
            )
            for name in arguments.tools
        ],
        oracle=arguments.oracle,
        plan=plan_of(arguments, tolerance=TOLERANCE),
        size=Size(rows=log.rows, bytes=log.file_bytes, basis="file"),
        parameters={
            "rows": log.rows,
            "largest_cardinality": arguments.cardinality,
            "memory_limit": arguments.memory_limit,
            "seed": SEED,
        },
        packages=PACKAGES,
    )


def load(arguments: Any, log: click_log.ClickLog) -> Report:
    """Measure the loading of batches, and return the report; an epoch is what is computed."""
    rows = feature_rows.prepare(arguments.data, log, threads=arguments.threads)
    return measure(
        f"recsys: batches of {rows.rows:,} rows x 39 columns, an epoch",
        [load_variant_of(name, rows, threads=arguments.threads) for name in arguments.tools],
        oracle=arguments.oracle,
        plan=plan_of(arguments, tolerance=TOLERANCE),
        size=Size(rows=rows.rows, bytes=rows.file_bytes, basis="file"),
        parameters={"rows": rows.rows, "batch_rows": load_variant.BATCH_ROWS, "window_rows": load_variant.WINDOW_ROWS},
        packages=PACKAGES,
    )


def _arguments() -> Any:
    parser = parser_of("recsys", rounds=6)
    parser.add_argument("--case", choices=tuple(TOOLS), default="features", help="make features, or load them")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the log")
    parser.add_argument("--cardinality", type=int, default=1_000_000, help="values of the largest column")
    parser.add_argument("--memory-limit", type=int, help="features: bytes of data that each process may have")
    add_tools(parser)
    return with_tools(parser, TOOLS, ORACLES)


def main() -> int:
    """Measure, write a report, and return 1 if any answer was wrong."""
    arguments = _arguments()
    log = click_log.prepare(
        arguments.data,
        rows=arguments.rows,
        largest_cardinality=arguments.cardinality,
        seed=SEED,
        threads=arguments.threads,
    )
    try:
        report = {"features": features, "load": load}[arguments.case](arguments, log)
    except MeasurementError as error:
        sys.exit(f"recsys: {error}")
    finally:
        shutil.rmtree(arguments.data / "written", ignore_errors=True)
    limit = f"-limit-{arguments.memory_limit}" if arguments.memory_limit else ""
    report.write(arguments.results / f"recsys-{arguments.case}-{log.rows}{limit}.json")
    print(table(report), flush=True)
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main())
