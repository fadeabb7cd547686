"""Step `standardize`: raw files of every era and form become Parquet parts of one schema."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path

from whitewater.io.local_files import check_fetched
from whitewater.io.store import read_json, remove_unfinished, write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.raw_files import RawFile, UnitCounts, open_all, refuse_malformed, units
from whitewater_apps.taxi.config import Standardize
from whitewater_apps.taxi.operations import operations
from whitewater_apps.taxi.partitions import UNKNOWN_MONTH, month_name
from whitewater_apps.taxi.schema import SERVICES, SOURCE

logger = logging.getLogger(__name__)


def standardize(run: Run[Standardize], *, inputs: Path, standardized: Output) -> None:
    """Write each raw file as Parquet parts of one schema, with a catalog that says where every row came from.

    Raises InputError if a file is not understood, or has too many malformed lines, and IntegrityError if a file is not
    the one that `fetch` wrote down.
    """
    named, rows = read_json(inputs)["files"], run.settings.block_rows
    source = replace(SOURCE, clock=replace(SOURCE.clock, form=run.settings.datetime_format))
    with check_fetched(named, rule="taxi_fetch", threads=run.threads):
        files = open_all([Path(each["path"]) for each in named], source)
        for file in files:
            logger.info("%s: %s, %d columns", file.name, _service(file), len(file.era.columns))
        standardized.mkdir()
        every = [unit for number, file in enumerate(files) for unit in units(file, rows=rows, number=number)]
        with run.workers() as workers:
            by_file = [UnitCounts() for _ in files]
            written = operations(run.engine).standardize(every, standardized, rows=rows, workers=workers)
            for unit, counts in zip(every, written, strict=True):
                by_file[unit.place[0]] += counts
        remove_unfinished(standardized)
        refuse_malformed(files, by_file, limit=run.settings.max_malformed_fraction, setting="taxi.standardize")
        origins = {each["path"]: each["origin"] for each in named}
        catalog = [
            _describe(number, file, counted, origins)
            for number, (file, counted) in enumerate(zip(files, by_file, strict=True))
        ]
        write_json(standardized / "files.json", catalog)
        run.note(rows=reduce(add, by_file).rows, files=len(files))


def _service(file: RawFile) -> str:
    service = file.era.constants.get("service")
    return "by row" if service is None else SERVICES[service]


def _describe(number: int, file: RawFile, counts: UnitCounts, origins: Mapping[str, str]) -> dict[str, object]:
    origin = origins[str(file.path)]
    months: dict[str, Counter[str]] = {}
    other_dates = 0
    for (service, month), rows in counts.groups.items():
        if name := month_name(month or UNKNOWN_MONTH):
            # A service that could not be read is counted as the first; its rows are rejected as unreadable.
            months.setdefault(SERVICES[service or 0], Counter())[name] += rows
        else:
            other_dates += rows
    return {
        "file": number,
        "path": file.name,
        "origin": f"{origin}/{file.member}" if file.member else origin,
        "form": file.form,
        "service": _service(file),
        "columns": {name: column.raw_name for name, column in file.era.columns.items()},
        "columns_not_carried": list(file.era.not_carried),
        "rows": counts.rows,
        "malformed": counts.malformed,
        "months": months,
        "other_dates": other_dates,
    }


if __name__ == "__main__":
    main(standardize)
