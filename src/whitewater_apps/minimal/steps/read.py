"""Step `read`: every reading is kept, or goes to quarantine with all its reasons; none is lost."""

from pathlib import Path

from whitewater.io.local_files import check_fetched
from whitewater.io.store import read_json, write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.quarantine import Split
from whitewater.tables.raw_files import UnitCounts, open_all, refuse_malformed, units
from whitewater_apps.minimal.config import Read
from whitewater_apps.minimal.operations import operations
from whitewater_apps.minimal.readings import READINGS, SOURCE, rules


def read(run: Run[Read], *, inputs: Path, readings: Output, quarantine: Output, quality: Output) -> None:
    """Bring raw files of any form to one table, and split its rows by the rules of section ``minimal.read``."""
    named, rows = read_json(inputs)["files"], run.settings.block_rows
    with check_fetched(named, rule="minimal_fetch", threads=run.threads):
        files = open_all([Path(each["path"]) for each in named], SOURCE)
        origins = {number: file.name for number, file in enumerate(files)}
        into = Split(readings, quarantine, READINGS, rules(run.settings), origins)
        readings.mkdir()
        quarantine.mkdir()
        every = [unit for number, file in enumerate(files) for unit in units(file, rows=rows, number=number)]
        by_file = [UnitCounts() for _ in files]
        with run.workers() as workers:
            found = operations(run.engine).read(every, into, rows=rows, workers=workers)
            for unit, counts in zip(every, found, strict=True):
                by_file[unit.place[0]] += counts
    refuse_malformed(files, by_file, limit=run.settings.max_malformed_fraction, setting="minimal.read")
    summary = into.finish(files, by_file)
    write_json(quality, summary)
    run.note(**summary["totals"])


if __name__ == "__main__":
    main(read)
