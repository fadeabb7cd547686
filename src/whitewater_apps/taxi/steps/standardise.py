"""Step `standardise`: raw files of every era and form become Parquet parts of one schema."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from whitewater.engines import Array, Device
from whitewater.io.local_files import as_fetched
from whitewater.io.store import read_json, write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.blocks import BAD_INTEGER, NULL_INTEGER, Block, Encoded, Kind, RawBlock
from whitewater.tables.calendar import MONTHS, month_index, month_name
from whitewater.tables.parquet.blocks import write_parquet
from whitewater_apps.taxi.config import Standardise
from whitewater_apps.taxi.raw import RawFile, Unit, blocks, fault_of, open_all, refuse, units
from whitewater_apps.taxi.schema import ISSUES, KINDS, NULL_RATE_CODE, SERVICES, Era, code_of, largest_code

ISSUES_KIND: Kind = "int32"
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Counts:
    """Rows of a unit: read, malformed, and by service and month of pickup; the last column counts other dates.

    ``example`` is the first line that is malformed.
    """

    file: int
    rows: int
    malformed: int
    months: Array
    example: str | None


def standardise(run: Run[Standardise], *, inputs: Path, standardised: Output) -> None:
    """Write each raw file as Parquet parts of one schema, with a catalogue that says where every row came from.

    Raises InputError if a file is not understood, or has too many malformed lines, and IntegrityError if a file is not
    the one that `fetch` wrote down.
    """
    named = read_json(inputs)["files"]
    with as_fetched(named, rule="taxi_fetch", threads=run.threads):
        files = open_all([Path(each["path"]) for each in named])
        for file in files:
            logger.info("%s: %s, %d columns", file.path, file.era.service or "service by row", len(file.era.columns))
        standardised.mkdir()
        tasks = [
            (index, number, unit)
            for index, file in enumerate(files)
            for number, unit in enumerate(units(file, block_rows=run.settings.block_rows))
        ]
        work = partial(write_unit, directory=standardised, device=run.device, block_rows=run.settings.block_rows)
        with run.workers() as workers:
            counts = list(workers.map(work, tasks, label="standardise", ordered=True))
        by_file = [[count for count in counts if count.file == index] for index in range(len(files))]
        _refuse_malformed(files, by_file, limit=run.settings.max_malformed_fraction)
        catalogue = [
            _describe(index, file, origin=each["origin"], counts=by_file[index])
            for index, (file, each) in enumerate(zip(files, named, strict=True))
        ]
        write_json(standardised / "files.json", catalogue)
        run.note(rows=sum(count.rows for count in counts), files=len(files))


def write_unit(task: tuple[int, int, Unit], *, directory: Path, device: Device, block_rows: int) -> Counts:
    """Standardise one unit of a file into parts; run twice, it leaves the same parts."""
    index, number, unit = task
    total, malformed, example = 0, 0, None
    months = np.zeros((len(SERVICES), MONTHS + 1), np.int64)
    for part, parsed in enumerate(blocks(unit, device, block_rows=block_rows)):
        stem = f"{index:04d}-{number:04d}-{part:04d}"
        total += parsed.rows + len(parsed.malformed)
        malformed += len(parsed.malformed)
        if parsed.malformed:
            example = example or parsed.malformed[0]
            _write_lines(list(parsed.malformed), directory / f"malformed-{stem}.parquet")
        block = standardise_block(parsed.block, unit.file.era, device)
        if len(block["service"]):
            kinds = {name: kind for name, kind in {**KINDS, "issues": ISSUES_KIND}.items() if name in block}
            write_parquet(device, block, directory / f"part-{stem}.parquet", kinds)
            months += count_months(block, device)
    return Counts(index, total, malformed, months, example)


def standardise_block(raw: RawBlock, era: Era, device: Device) -> Block:
    """Translate a block of raw columns into the schema.

    Returns the columns that the era has, ``service``, and ``issues`` (int32): bit *i* is set where the raw value of
    column ``ISSUES[i]`` could not be understood; the value itself is null then.
    """
    xp = device.xp
    block = {name: _decode(name, raw[column.raw_name], device) for name, column in era.columns.items()}
    rows = len(next(iter(block.values())))
    if era.service is not None:
        block["service"] = xp.full(rows, SERVICES.index(era.service), xp.int8)
    issues = xp.zeros(rows, xp.int32)
    for bit, name in enumerate(ISSUES):
        if name in era.columns:
            block[name], bad = _checked(name, block[name], device)
            if bad is not None:
                issues |= bad.astype(xp.int32) << bit
    return {**block, "issues": issues}


def count_months(block: Block, device: Device) -> Array:
    """Count rows by service and month of pickup; int64 (services, MONTHS + 1), the last column for other dates."""
    xp = device.xp
    month = month_index(block["pickup_datetime"], device).astype(xp.int64)
    month = xp.where(month == NULL_INTEGER, MONTHS, month)
    # A service that could not be read is counted as the first; its rows are rejected as unreadable.
    service = xp.maximum(block["service"].astype(xp.int64), 0)
    counts = xp.bincount(service * (MONTHS + 1) + month, minlength=len(SERVICES) * (MONTHS + 1))
    return device.to_host(counts).reshape(len(SERVICES), MONTHS + 1)


def _decode(name: str, column: Array | Encoded, device: Device) -> Array:
    if not isinstance(column, Encoded):
        return column
    codes = np.array([*(code_of(name, text) for text in column.vocabulary), NULL_INTEGER], np.dtype(KINDS[name]))
    # Code -1, null, takes the last entry.
    decoded: Array = device.to_device(codes)[column.codes]
    return decoded


def _checked(name: str, values: Array, device: Device) -> tuple[Array, Array | None]:
    """Return the values with those that cannot be right as null, and where they are; None where all are right."""
    xp = device.xp
    null = values.dtype.type(NULL_INTEGER)
    if name == "rate_code":
        values = xp.where(values == NULL_RATE_CODE, null, values)
    bad = values == BAD_INTEGER
    largest = largest_code(name)
    if largest is not None:
        bad |= values > largest
    if name in {"pickup_location_id", "dropoff_location_id"}:
        bad |= values == 0
    if name == "service":
        # Nothing else tells it.
        bad |= values == null
    return (xp.where(bad, null, values), bad) if bool(bad.any()) else (values, None)


def _describe(index: int, file: RawFile, *, origin: str, counts: list[Counts]) -> dict[str, object]:
    months = sum((count.months for count in counts), np.zeros((len(SERVICES), MONTHS + 1), np.int64))
    return {
        "file": index,
        "path": str(file.path),
        "origin": origin,
        "form": file.form,
        "service": file.era.service or "by row",
        "columns": {name: column.raw_name for name, column in file.era.columns.items()},
        "columns_not_carried": list(file.era.not_carried),
        "rows": sum(count.rows for count in counts),
        "malformed": sum(count.malformed for count in counts),
        "months": {
            service: {month_name(int(month)): int(months[code, month]) for month in np.flatnonzero(months[code, :-1])}
            for code, service in enumerate(SERVICES)
            if months[code].any()
        },
        "other_dates": int(months[:, -1].sum()),
    }


def _refuse_malformed(files: Sequence[RawFile], by_file: Sequence[Sequence[Counts]], *, limit: float) -> None:
    faults = []
    for file, counts in zip(files, by_file, strict=True):
        rows, malformed = sum(count.rows for count in counts), sum(count.malformed for count in counts)
        if malformed > limit * rows:
            example = next(count.example for count in counts if count.example is not None)
            faults.append(
                f"{file.path}: {malformed} of {rows} lines cannot be parsed, more than "
                f"taxi.standardise.max_malformed_fraction ({limit:g}) allows. The first: {fault_of(example, file)}. "
                "Correct the file, or raise the limit to send such lines to quarantine."
            )
    refuse(faults)


def _write_lines(lines: list[str], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"raw_line": pa.array(lines, pa.string())}), path)


if __name__ == "__main__":
    main(standardise)
