"""Step `read`: keep each reading, or put it into quarantine with its reasons."""

from pathlib import Path

from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.quarantine import split_files
from whitewater_apps.minimal.config import Read
from whitewater_apps.minimal.readings import READINGS, SOURCE, rules


def read(run: Run[Read], *, inputs: Path, readings: Output, quarantine: Output, quality: Output) -> None:
    """Convert raw files to one table, and split its rows by the rules of section ``minimal.read``."""
    folders = {"kept": readings, "quarantine": quarantine}
    summary = split_files(run, inputs, SOURCE, **folders, schema=READINGS, rules=rules(run.settings))
    write_json(quality, summary)
    run.note(**summary["totals"])


if __name__ == "__main__":
    main(read)
