"""Write the tables of benchmarks/README.md: ``python -m benchmarks.readme``; ``--check`` only compares.

A table stands between two lines, ``<!-- benchmarks:NAME -->`` and ``<!-- /benchmarks:NAME -->``. Recorded are the files
of `benchmarks/results`: ``published-cpu.json`` and ``published-gpu.json`` are results of the published tables, and the
others reports of the applications' benchmarks.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import standing
from benchmarks.process_tree import MeasurementError
from benchmarks.published.amounts import CERTAIN, amount, ratio, seconds
from benchmarks.published.table import NAMES, commit_of, published
from benchmarks.report import Quantity, Report
from benchmarks.results_file import CaseResult, Results, read
from benchmarks.standing import AS_PUBLISHED, OURS, TUNED
from whitewater.application import in_project
from whitewater.figures import words
from whitewater.io.store import write_bytes
from whitewater.log import log_output

README = Path("benchmarks/README.md")
RECORDED = Path("benchmarks/results")
# Of these a user waits for an epoch, not for the process; the reports count both.
_EPOCHS = "recsys-load"
_NOTHING = "-"
# Of the frames that a GPU runs on cuDF, the figures on pandas.
BY_DASK = "whitewater_dask"


def tables(recorded: Path = RECORDED) -> dict[str, str]:
    """Return the tables by name, as Markdown, from the recorded files.

    Raises
    ------
    MeasurementError
        If a file cannot be read.
    """
    results = [read(path, Results) for name in NAMES if (path := recorded / f"published-{name}.json").exists()]
    return {"published": published_table(results), "applications": applications_table(recorded)}


def updated(text: str, replacements: dict[str, str]) -> str:
    """Return a text with its tables replaced.

    Raises
    ------
    MeasurementError
        If the lines around a table are missing.
    """
    for name, table in replacements.items():
        begin, end = f"<!-- benchmarks:{name} -->\n", f"<!-- /benchmarks:{name} -->\n"
        before, opened, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not opened or not closed:
            raise MeasurementError(f"There is no table {name}: put {begin.strip()} and {end.strip()} on lines of it.")
        text = f"{before}{begin}{table}\n{end}{after}"
    return text


def published_table(results: Sequence[Results]) -> str:
    """Return a line for each case of R1 to R21, with our times on each device that has results."""
    if not results:
        return "No run of all rows is recorded yet."
    devices = [f"{name}, {NAMES[of.device]}" for of in results for name in ("Whitewater", "tuned for this table")]
    before, after = ("row", "scale", "published", "published code here"), ("ratio to code", "best peer", "ratio to it")
    cases = {(case.row, case.case): case for of in results for case in of.cases}
    lines = [_published_line(case, [_find(of, key) for of in results]) for key, case in cases.items()]
    return "\n\n".join([*map(_where, results), _markdown((*before, *devices, *after), lines)])


def _where(results: Results) -> str:
    """Return on what results were measured, and by what source."""
    machine = results.limits.machine
    hardware = f"{'; '.join(machine.gpus) or machine.processor}, {results.limits.threads} threads"
    commits = {commit_of(case.report) for case in results.cases}
    memory = f"{machine.memory_bytes / 2**30:.0f} GiB"
    return f"{NAMES[results.device]}: {hardware}, {memory}; commit {', '.join(sorted(commits))}."


def _find(results: Results, key: tuple[str, str]) -> Report | None:
    return next((case.report for case in results.cases if (case.row, case.case) == key), None)


def _published_line(case: CaseResult, reports: Sequence[Report | None]) -> list[str]:
    """Return the cells of a case; all but our times are of the first device that has it."""
    report = next(report for report in reports if report)
    best = next(iter(standing.peers(report)), None)
    return [
        " ".join(part for part in (case.id, f"`{case.row}`", case.case) if part),
        f"{report.parameters['scale']:g}",
        published(case),
        _time(report, AS_PUBLISHED, report.headline),
        *(_time(each, own, each.headline) if each else _NOTHING for each in reports for own in (OURS, TUNED)),
        _ratio(report, AS_PUBLISHED, report.headline),
        f"{best} {_time(report, best, report.headline)}" if best else _NOTHING,
        _ratio(report, best, report.headline) if best else _NOTHING,
    ]


def applications_table(recorded: Path) -> str:
    """Return a line for each recorded benchmark of an application."""
    header = (
        "work",
        "rows",
        "Whitewater",
        "its engine dask",
        "best peer",
        "ratio to it",
        "others",
        "peak memory: ours, best peer",
    )
    return _markdown(header, [_application_line(path, report) for path, report in _applications(recorded)])


def _applications(recorded: Path) -> Iterator[tuple[Path, Report]]:
    """Yield the reports by application, then by benchmark, then by size."""
    for application in in_project():
        found = [(path, read(path, Report)) for path in recorded.glob(f"{application}-*.json")]
        yield from sorted(found, key=lambda pair: (pair[0].stem.split("-")[:2], pair[1].size.rows))


def _application_line(path: Path, report: Report) -> list[str]:
    quantity: Quantity = "compute_seconds" if path.stem.startswith(_EPOCHS) else report.headline
    peers = standing.peers(report, quantity)
    best, others = next(iter(peers), None), list(peers)[1:]
    return [
        report.name,
        words.count(report.size.rows),
        _time(report, OURS, quantity),
        f"{_time(report, BY_DASK, quantity)}, {_memory(report, BY_DASK)}" if BY_DASK in report.outcomes else _NOTHING,
        f"{best} {seconds(peers[best].median)}" if best else _NOTHING,
        _ratio(report, best, quantity) if best else _NOTHING,
        ", ".join(f"{name} {seconds(peers[name].median)}" for name in others) or _NOTHING,
        ", ".join(_memory(report, name) for name in (OURS, best) if name),
    ]


def _time(report: Report, variant: str, quantity: Quantity) -> str:
    figure = standing.figure(report, variant, quantity)
    if figure is not None:
        return seconds(figure.median)
    outcome = report.outcomes.get(variant)
    return _NOTHING if outcome is None else "**void**" if outcome.void else "not tried"


def _ratio(report: Report, other: str, quantity: Quantity) -> str:
    """Return ours / other with its interval, and what that is worth if it is little."""
    found = standing.ratio(report, other, quantity)
    if found is None:
        return _NOTHING
    return ratio(found) if found.coverage >= CERTAIN else f"{ratio(found)}, {100 * found.coverage:.0f} %"


def _memory(report: Report, variant: str) -> str:
    figure = standing.figure(report, variant, "peak_memory_bytes")
    return amount(figure.median, "B") if figure else _NOTHING


def _markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *lines))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables, or say where the page differs from them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readme", description=__doc__, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 where a table differs")
    given: Any = parser.parse_args(arguments)
    with log_output(None, name="benchmarks readme"):
        found = README.read_text()
        wanted = updated(found, tables())
        if given.check and found != wanted:
            lines = difflib.unified_diff(found.splitlines(), wanted.splitlines(), str(README), "recorded", lineterm="")
            print("\n".join(lines))
            raise MeasurementError(f"{README} is not what the recorded files say: run `python -m benchmarks.readme`.")
        if not given.check:
            write_bytes(README, wanted.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
