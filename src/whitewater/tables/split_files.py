"""The raw files of an application, split by either engine into rows that are kept and rows that are quarantined."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from whitewater.step import Run
from whitewater.tables.config import RawFiles
from whitewater.tables.quarantine import Split, add_up, finish_data_sets
from whitewater.tables.raw_files import Source, read_files


def split_files(run: Run[RawFiles], inputs: Path, source: Source, into: Split) -> dict[str, Any]:
    """Split the rows of an application's raw files; return what became of the rows of each file, and of all.

    Raises as `whitewater.tables.raw_files.read_files` and `whitewater.tables.quarantine.finish_data_sets`.
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
    totals = add_up(described)
    finish_data_sets(into.kept, into.quarantine, into.schema, totals)
    return {"totals": totals, "files": described}
