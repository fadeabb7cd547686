"""One file of everything that a run of the published tables measured, and a flat one of every sample.

``python -m benchmarks.results_file --limits limits.json --rows ROW.json... --json results.json --parquet
results.parquet``; see benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import ValidationError

from benchmarks.limits import Limits
from benchmarks.process_tree import MeasurementError
from benchmarks.published import row as rows
from benchmarks.report import Record, Report, Reports, Sample, Stored
from whitewater.log import log_output

if TYPE_CHECKING:
    import pyarrow as pa

Kind = TypeVar("Kind", bound=Stored)
logger = logging.getLogger("whitewater.benchmarks")


class Figure(Record):
    """A published figure: on what, and how many seconds."""

    on: str
    seconds: float


class CaseResult(Record):
    """One case of a row: its number and definition, what was published, and what was measured."""

    id: str
    title: str
    published: tuple[Figure, ...]
    report: Report

    @property
    def row(self) -> str:
        """The name of the row."""
        return str(self.report.parameters["row"])

    @property
    def case(self) -> str:
        """The name of the case, empty for the only one of a row."""
        return str(self.report.parameters["case"])


class Results(Stored):
    """All that was measured on one device; the rows in the order of their numbers."""

    format: Literal[1] = 1
    device: Literal["cpu", "gpu"]
    limits: Limits
    cases: tuple[CaseResult, ...]


def collect(reports: Iterable[Report], *, limits: Limits) -> Results:
    """Return results, with the definitions that the rows' modules hold.

    Raises
    ------
    MeasurementError
        If a report is of no row, or of another device than the limits.
    """
    cases = sorted((_case(report) for report in reports), key=lambda case: rows.NAMES.index(case.row))
    others = [case.report.name for case in cases if case.report.parameters.get("device") != limits.device]
    if others:
        raise MeasurementError(f"Not measured on {limits.device}: {', '.join(others)}. Collect each device's alone.")
    return Results(device=limits.device, limits=limits, cases=tuple(cases))


def _case(report: Report) -> CaseResult:
    name, case_name = report.parameters.get("row"), report.parameters.get("case")
    if name not in rows.NAMES:
        raise MeasurementError(f"{report.name!r} is a report of no row of the published table. Rows are {rows.NAMES}.")
    row = rows.load(str(name))
    case = next((each for each in row.cases if each.name == case_name), None)
    if case is None:
        raise MeasurementError(f"{row.name} has no case {case_name!r} any more. Measure the row again.")
    published = tuple(Figure(on=each.on, seconds=each.seconds) for each in case.published)
    return CaseResult(id=row.id, title=row.title, published=published, report=report)


def read_reports(path: Path) -> dict[str, Report]:
    """Return the reports of a file of results, of a row or of one measurement, by name.

    Raises
    ------
    MeasurementError
        If it is none of these.
    """
    try:
        text = path.read_text()
        value = json.loads(text)
        keys = value if isinstance(value, dict) else {}
        if "cases" in keys:
            return {case.report.name: case.report for case in Results.model_validate_json(text).cases}
        if "reports" in keys:
            return {report.name: report for report in Reports.model_validate_json(text).reports}
        report = Report.model_validate_json(text)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    return {report.name: report}


def read(path: Path, kind: type[Kind]) -> Kind:
    """Read a file of one kind.

    Raises
    ------
    MeasurementError
        If the file is missing or holds something else.
    """
    try:
        return kind.read(path)
    except (OSError, ValidationError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> MeasurementError:
    return MeasurementError(f"{path} cannot be read as a file of measurements: {_said(error)}. Make it again.")


def _said(error: Exception) -> str:
    """Return what is wrong with a file; of several faults the first."""
    if isinstance(error, ValidationError):
        fault = error.errors(include_url=False)[0]
        return ": ".join([".".join(map(str, fault["loc"])), fault["msg"]]).removeprefix(": ")
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def samples_table(results: Results) -> pa.Table:
    """Return one line a sample, warm-ups included; a variant without samples has one line that says why.

    ``rows``, ``bytes``, ``basis``, ``operations`` and ``scale`` are the size of the work; times are in seconds, and
    memory in bytes.
    """
    import pyarrow as pa

    lines = [{"id": case.id, **line} for case in results.cases for line in _sample_lines(case.report)]
    return pa.Table.from_pylist(lines, schema=_schema())


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write a table: the whole of it or nothing."""
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    pq.write_table(table, staging)
    with staging.open("rb") as file:
        os.fsync(file.fileno())
    staging.replace(path)


def _schema() -> pa.Schema:
    import pyarrow as pa

    text, whole, real, truth = pa.string(), pa.int64(), pa.float64(), pa.bool_()
    types = {
        "id": text, "row": text, "case": text, "name": text, "device": text, "variant": text,
        "void": text, "missing": text, "warm_up": truth, "round": whole, "place": whole, "wall_seconds": real,
        "compute_seconds": real, "cpu_seconds": real, "other_cpu_seconds": real, "peak_memory_bytes": whole,
        "peak_anonymous_bytes": whole, "peak_device_bytes": whole, "phases": text, "sampling": text, "rows": whole,
        "bytes": whole, "basis": text, "operations": real, "scale": real, "threads": whole, "cluster": text,
        "processor": text, "cores": whole, "memory_bytes": whole, "gpus": text, "kernel": text, "python": text,
        "commit": text, "changed": truth, "versions": text, "started": text,
    }  # fmt: skip
    return pa.schema(list(types.items()))


def _sample_lines(report: Report) -> Iterator[dict[str, Any]]:
    same = _same_for_all(report)
    for variant, outcome in report.outcomes.items():
        taken = [*([(True, outcome.warm_up)] if outcome.warm_up else []), *((False, each) for each in outcome.samples)]
        own = {"variant": variant, "void": outcome.void, "missing": outcome.missing}
        for warm_up, sample in taken:
            yield {**same, **own, "warm_up": warm_up, **_fields(sample)}
        if not taken:
            yield {**same, **own}


def _fields(sample: Sample) -> dict[str, Any]:
    return {**sample.model_dump(exclude={"phases"}), "phases": json.dumps(sample.phases)}


def _same_for_all(report: Report) -> dict[str, Any]:
    """Return what all lines of a report share."""
    parameters = report.parameters
    return {
        **{key: parameters.get(key) for key in ("row", "case", "device", "scale", "cluster")},
        **{"name": report.name, "sampling": report.sampling, "operations": report.operations},
        **report.size.model_dump(),
        **report.machine.model_dump(exclude={"gpus", "load_average_before"}),
        **report.revision.model_dump(),
        "threads": report.plan.threads,
        "gpus": "; ".join(report.machine.gpus),
        "versions": json.dumps(report.versions, sort_keys=True),
        "started": report.started,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Collect the reports of the rows, and their samples."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.results_file", description=__doc__, allow_abbrev=False)
    parser.add_argument("--limits", type=Path, required=True, help="limits of the machine, JSON")
    parser.add_argument("--rows", type=Path, nargs="+", required=True, help="reports of the rows, JSON")
    parser.add_argument("--json", type=Path, required=True, help="file for everything")
    parser.add_argument("--parquet", type=Path, required=True, help="file for one line a sample")
    parser.add_argument("--log", type=Path, help="file for everything printed")
    given: Any = parser.parse_args(arguments)
    with log_output(given.log, name="benchmarks results"):
        reports = [report for path in given.rows for report in read(path, Reports).reports]
        results = collect(reports, limits=read(given.limits, Limits))
        results.write(given.json)
        write_parquet(samples_table(results), given.parquet)
        logger.info("%d cases of %d rows", len(results.cases), len({case.row for case in results.cases}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
