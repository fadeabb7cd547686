"""Step `standardize`: convert raw files of every era and format to Parquet parts of one schema."""

import logging
from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path

from whitewater.io.store import read_json, remove_unfinished, write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.raw_files import MALFORMED, Counts, RawFile, read_files
from whitewater_apps.taxi.config import Standardize
from whitewater_apps.taxi.data_sets import month_name
from whitewater_apps.taxi.schema import SERVICES, SOURCE

logger = logging.getLogger(__name__)


def standardize(run: Run[Standardize], *, inputs: Path, standardized: Output) -> None:
    """Write each raw file as Parquet parts of one schema, and a catalog of the files; raises as `read_files`."""
    if run.engine == "local":
        from whitewater_apps.taxi.with_polars import standardize_unit
    else:
        from whitewater_apps.taxi.with_dask import standardize_unit
    source = replace(SOURCE, clock=replace(SOURCE.clock, form=run.settings.datetime_format))
    standardized.mkdir()
    files = read_files(run, inputs, source, partial(standardize_unit, folder=standardized, run=run))
    remove_unfinished(standardized)
    origins = {entry["path"]: entry["origin"] for entry in read_json(inputs)["files"]}
    catalog = []
    for number, (file, counts) in enumerate(files):
        entry = _describe(number, file, counts, origins[str(file.path)])
        logger.info("%s: %s, %d columns, %d rows", file.name, entry["service"], len(file.era.columns), counts.total())
        catalog.append(entry)
    write_json(standardized / "files.json", catalog)
    run.note(rows=sum(counts.total() for _, counts in files), files=len(files))


def _describe(number: int, file: RawFile, counts: Counts, origin: str) -> dict[str, object]:
    months: dict[str, Counter[str]] = defaultdict(Counter)
    other_dates, constants = 0, file.era.constants
    for (service, month), rows in ((key, rows) for key, rows in counts.items() if key != MALFORMED):
        if name := month_name(month):
            # An unreadable service counts as the first; its rows will be rejected.
            months[SERVICES[service or 0]][name] += rows
        else:
            other_dates += rows
    return {
        "file": number,
        "path": file.name,
        "origin": f"{origin}/{file.member}" if file.member else origin,
        "form": file.form,
        "service": SERVICES[constants["service"]] if "service" in constants else "by row",
        "columns": {name: column.raw_name for name, column in file.era.columns.items()},
        "columns_not_carried": list(file.era.ignored_columns),
        "rows": counts.total(),
        "malformed": counts[MALFORMED],
        "months": months,
        "other_dates": other_dates,
    }


if __name__ == "__main__":
    main(standardize)
