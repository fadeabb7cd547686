"""Step `read`: every reading is kept, or goes to quarantine with all its reasons; none is lost."""

from collections import Counter
from pathlib import Path
from typing import Any

from whitewater.io.local_files import as_fetched
from whitewater.io.store import read_json, remove_unfinished, write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.conservation import check_written, count_reasons
from whitewater.tables.raw_files import UnitCounts, open_all, refuse_malformed, units
from whitewater_apps.minimal.config import Read
from whitewater_apps.minimal.operations import operations
from whitewater_apps.minimal.readings import SOURCE, Destination, rules


def read(run: Run[Read], *, inputs: Path, readings: Output, quarantine: Output, quality: Output) -> None:
    """Bring raw files of any form to one table, and split its rows by the rules of section ``minimal.read``."""
    named, rows = read_json(inputs)["files"], run.settings.block_rows
    with as_fetched(named, rule="minimal_fetch", threads=run.threads):
        files = open_all([Path(each["path"]) for each in named], SOURCE)
        into = Destination(readings, quarantine, rules(run.settings), {n: file.name for n, file in enumerate(files)})
        readings.mkdir()
        quarantine.mkdir()
        every = [unit for number, file in enumerate(files) for unit in units(file, rows=rows, number=number)]
        by_file = [UnitCounts() for _ in files]
        with run.workers() as workers:
            found = operations(run.engine).read(every, into, rows=rows, workers=workers)
            for unit, counts in zip(every, found, strict=True):
                by_file[unit.place[0]] += counts
    for data_set in (readings, quarantine):
        remove_unfinished(data_set)
    refuse_malformed(files, by_file, limit=run.settings.max_malformed_fraction, setting="minimal.read")
    into.write_nothing()
    told = [_describe(counts, into) for counts in by_file]
    totals = {key: sum(each[key] for each in told) for key in ("rows_in", "rows_out", "quarantined")}
    check_written(readings, totals["rows_out"])
    check_written(quarantine, totals["quarantined"])
    write_json(quality, {"totals": totals, "files": [
        {"path": file.name, **each} for file, each in zip(files, told, strict=True)
    ]})  # fmt: skip
    run.note(**totals)


def _describe(counts: UnitCounts, into: Destination) -> dict[str, Any]:
    masks = Counter({mask or 0: rows for (mask,), rows in counts.groups.items()}) + Counter({1: counts.malformed})
    found = count_reasons(masks, into.reasons)
    return {**found, "quarantined": found["rows_in"] - found["rows_out"]}


if __name__ == "__main__":
    main(read)
