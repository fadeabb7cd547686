"""The raw files of an application: read on its workers, counted, and split into rows kept and rows quarantined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from whitewater.engines.workers import Workers
from whitewater.io.local_files import check_fetched
from whitewater.io.store import read_json
from whitewater.step import Run
from whitewater.tables.config import RawFiles
from whitewater.tables.quarantine import Split, finish_data_sets, total_rows
from whitewater.tables.raw_files import RawFile, Source, Unit, UnitCounts, fault_of, open_all, refuse, units


def read_files(
    run: Run[RawFiles],
    inputs: Path,
    source: Source,
    read: Callable[[Sequence[Unit], Workers], Iterable[UnitCounts]],
) -> tuple[list[RawFile], list[UnitCounts]]:
    """Let ``read`` do what it does with the units of an application's raw files; return the files and their counts.

    ``inputs`` is the list of files that step `fetch` wrote.

    Raises InputError if a file is not understood, or has more lines that cannot be parsed than the settings allow, and
    IntegrityError if one is not what `fetch` wrote down. An error tells of every such file.
    """
    listed, settings = read_json(inputs)["files"], run.settings
    with check_fetched(listed, rule=f"{run.application}_fetch", threads=run.threads):
        files = open_all([Path(each["path"]) for each in listed], source)
        every, by_file = units(files, rows=settings.block_rows), [UnitCounts() for _ in files]
        with run.workers() as workers:
            for unit, counts in zip(every, read(every, workers), strict=True):
                by_file[unit.place[0]] += counts
    limit, key = settings.max_malformed_fraction, f"{run.application}.{run.step}.max_malformed_fraction"
    refuse(
        [
            f"{file.name}: {counts.malformed} of {counts.rows} lines cannot be parsed, more than {key} ({limit:g}) "
            f"allows. The first: {fault_of(counts.example, file)}. Correct the file, or raise the limit to send such "
            "lines to quarantine."
            for file, counts in zip(files, by_file, strict=True)
            if counts.example is not None and counts.malformed > limit * counts.rows
        ]
    )
    return files, by_file


def split_files(run: Run[RawFiles], inputs: Path, source: Source, into: Split) -> dict[str, Any]:
    """Split the rows of an application's raw files; return what became of the rows of each file, and of all.

    Raises as `read_files` and `whitewater.tables.quarantine.finish_data_sets`.
    """
    if run.engine == "local":
        from whitewater.tables.with_polars import split_units
    else:
        from whitewater.tables.with_dask import split_units
    into.kept.mkdir()
    into.quarantine.mkdir()
    split = partial(split_units, into=into, rows=run.settings.block_rows)
    files, by_file = read_files(run, inputs, source, split)
    described = [{"path": file.name, **into.describe(counts)} for file, counts in zip(files, by_file, strict=True)]
    totals = total_rows(described)
    finish_data_sets(into.kept, into.quarantine, into.schema, totals)
    return {"totals": totals, "files": described}
