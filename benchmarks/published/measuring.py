"""Measure the cases of a row: all variants beside each other, and what the record says of them."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import measure
from benchmarks.measure import this_python
from benchmarks.published.row import CallCase, Case, ProcessCase, Row, Variant, Work, missing_packages
from benchmarks.published.work import as_argument
from benchmarks.report import Plan, Report
from whitewater import devices

PACKAGES = (
    "polars", "duckdb", "umap-learn", "networkx", "numcodecs", "zarr", "scikit-allel", "joblib", "threadpoolctl",
    "cudf-cu13", "cupy-cuda13x", "cuml-cu13", "cugraph-cu13", "dask-cuda", "rmm-cu13",
)  # fmt: skip


def measure_case(row: Row, case: Case, work: Work, *, plan: Plan) -> Report:
    """Prepare a case's files, measure its variants that the device has, and return the report.

    On a GPU the oracle runs beside them on the CPU, so that the answers of both devices are compared.

    Raises
    ------
    MeasurementError
        If the oracle gives no answer.
    """
    work.folder.mkdir(parents=True, exist_ok=True)
    case.prepare(work)
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
    device = work.device.name
    return [
        _command(row, case, variant, work if device in variant.devices else _on_cpu(work))
        for variant in case.variants
        if device in variant.devices or variant.name == case.oracle
    ]


def _on_cpu(work: Work) -> Work:
    return replace(work, device=devices.resolve("cpu"))


def _command(row: Row, case: CallCase, variant: Variant, work: Work) -> measure.Variant:
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
        missing=missing_packages(variant.packages),
    )
