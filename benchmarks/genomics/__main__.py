"""Measure the genomics benchmark: `python -m benchmarks.genomics --variants 200000`; see benchmarks/README.md."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from typing import Any

from pydantic import JsonValue

from benchmarks.arguments import parser_of, plan_of
from benchmarks.genomics.accuracy import reference
from benchmarks.genomics.commands import variant
from benchmarks.genomics.simulated_store import Stored, prepare
from benchmarks.measure import measure, this_python
from benchmarks.process_tree import MeasurementError, run
from benchmarks.report import Report, Size, table

TOOLS = ("whitewater", "scikit_learn", "scikit_allel", "svd_compressed", "plink2")
ORACLE = "scikit_learn"
PACKAGES = ("scikit-allel", "zarr", "numcodecs")
# Of the floor: what the block Krylov route of Whitewater multiplies with, and its passes over this data.
COLUMNS, PASSES = 16, 6
FLOOR_SAMPLES = 5


def run_benchmark(arguments: Any) -> Report:
    """Prepare the stores, measure, and return the report."""
    stored = prepare(
        arguments.data,
        samples=arguments.samples,
        variants=arguments.variants,
        seed=arguments.seed,
        with_plink="plink2" in arguments.tools,
        threads=arguments.threads,
    )
    exact = reference(stored.store, file=stored.store.with_name("reference.npz"), threads=arguments.threads)
    floor = _floor(stored, kept=exact.variants, threads=arguments.threads)
    written = arguments.data / "written"
    try:
        return measure(
            f"genomics: ten principal components of {stored.samples:,} samples x {stored.variants:,} variants",
            [variant(name, stored, exact, written / name, threads=arguments.threads) for name in arguments.tools],
            oracle=arguments.oracle,
            plan=plan_of(arguments),
            size=Size(rows=stored.samples * stored.variants, bytes=stored.file_bytes, basis="file"),
            parameters={"samples": stored.samples, "variants": stored.variants, "seed": arguments.seed, "floor": floor},
            packages=PACKAGES,
        )
    finally:
        shutil.rmtree(written, ignore_errors=True)


def _floor(stored: Stored, *, kept: int, threads: int) -> JsonValue:
    """Measure the floor in processes of its own, and return the median seconds of its parts."""
    options = {"samples": stored.samples, "variants": kept, "columns": COLUMNS, "passes": PASSES, "threads": threads}
    command = [this_python(), "-m", "benchmarks.genomics.floor", "--store", str(stored.store)]
    command += [text for name, value in options.items() for text in (f"--{name}", str(value))]
    samples = []
    for _ in range(FLOOR_SAMPLES):
        cost = run(tuple(command), environment={"OPENBLAS_NUM_THREADS": "1"}, timeout=600)
        if cost.exit_status:
            raise MeasurementError(f"the floor was not measured: {cost.errors}")
        samples.append(json.loads(cost.output))
    medians: dict[str, JsonValue] = {name: statistics.median(each[name] for each in samples) for name in samples[0]}
    return {**options, **medians}


def _arguments() -> Any:
    parser = parser_of("genomics", rounds=6)
    parser.add_argument("--samples", type=int, default=2_504, help="samples")
    parser.add_argument("--variants", type=int, default=200_000, help="variants")
    parser.add_argument("--seed", type=int, default=1, help="seed of the simulated genotypes")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS), help="must hold the oracle")
    parser.add_argument("--oracle", choices=TOOLS, default=ORACLE, help="tool whose count of variants is right")
    return parser.parse_args()


def main() -> int:
    """Measure, write a report, and return 1 if any answer was wrong."""
    arguments = _arguments()
    try:
        report = run_benchmark(arguments)
    except MeasurementError as error:
        sys.exit(f"genomics: {error}")
    report.write(arguments.results / f"genomics-{arguments.samples}x{arguments.variants}.json")
    print(table(report), flush=True)
    print(f"Floor: {report.parameters['floor']}")
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main())
