"""Measure the cases of a row: all variants beside each other, and what the record says of them."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import measure
from benchmarks.measure import this_python
from benchmarks.published import room
from benchmarks.published.row import CallCase, Case, ProcessCase, Row, Variant, Work, missing_packages
from benchmarks.published.work import as_argument
from benchmarks.report import Plan, Report
from whitewater import engines

PACKAGES = (
    "polars", "duckdb", "umap-learn", "networkx", "numcodecs", "zarr", "scikit-allel", "joblib", "threadpoolctl",
    "cudf-cu13", "cupy-cuda13x", "cuml-cu13", "cugraph-cu13", "dask-cuda", "rmm-cu13",
)  # fmt: skip


def work_of(case: Case, work: Work) -> Work:
    """Return the work of a case, given that of its row."""
    return replace(work, scale=work.scale * case.share) if isinstance(case, CallCase) else work


def prepare_case(row: Row, case: Case, work: Work) -> None:
    """Make a case's files, and make sure that its variants have room.

    Raises
    ------
    ResourceError
        If the variants need more memory or disk than there is.
    """
    work = work_of(case, work)
    work.folder.mkdir(parents=True, exist_ok=True)
    case.prepare(work)
    if isinstance(case, CallCase):
        installed = [each for each in on_device(case, work) if missing_packages(each.packages) is None]
        room.require(row, case, installed, work)


def measure_case(row: Row, case: Case, work: Work, *, plan: Plan) -> Report:
    """Measure the variants that the device has of a case that is prepared, and return the report.

    On a GPU the oracle runs beside them on the CPU, so that the answers of both devices are compared.

    Raises
    ------
    MeasurementError
        If the oracle gives no answer.
    """
    work = work_of(case, work)
    plan = plan.model_copy(update={"tolerance": case.tolerance})
    return measure.measure(
        f"{row.id} {row.name}{f': {case.name}' if case.name else ''}",
        commands(row, case, work),
        oracle=case.oracle,
        plan=plan,
        size=case.size(work),
        parameters={
            "row": row.name,
            "case": case.name,
            "device": work.device.name,
            "scale": work.scale,
            "cluster": work.cluster.kind,
            **work.options,
        },
        packages=PACKAGES,
        sampling="call" if isinstance(case, CallCase) else "process",
        operations=case.operations(work) if isinstance(case, CallCase) and case.operations else None,
    )


def commands(row: Row, case: Case, work: Work) -> list[measure.Variant]:
    """Return the commands of the variants that the device has, and of the oracle."""
    if isinstance(case, ProcessCase):
        return list(case.variants(work))
    return [_command(row, case, variant, work) for variant in on_device(case, work)]


def on_device(case: CallCase, work: Work) -> list[Variant]:
    """Return the variants that the device has, and the oracle."""
    return [each for each in case.variants if work.device.name in each.devices or each.name == case.oracle]


def _missing(case: CallCase, variant: Variant, work: Work) -> str | None:
    """Say why a variant cannot be tried here, if so; the oracle cannot be done without."""
    too_large = None if variant.name == case.oracle else room.too_large(case, variant, work)
    return missing_packages(variant.packages) or too_large


def _command(row: Row, case: CallCase, variant: Variant, of: Work) -> measure.Variant:
    work = of if of.device.name in variant.devices else replace(of, device=engines.resolve("cpu"))
    return measure.Variant(
        variant.name,
        (
            this_python(),
            "-m",
            "benchmarks.published.serve",
            row.name,
            case.name,
            variant.name,
            "--work",
            as_argument(work),
        ),
        environment=variant.environment,
        missing=_missing(case, variant, of),
    )
