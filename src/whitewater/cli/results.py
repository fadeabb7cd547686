"""What the last runs made, and where it is: ``whitewater results``."""

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.filesize import decimal
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from whitewater.application import Application, applications, declared, load
from whitewater.errors import InputError
from whitewater.io.store import size_of
from whitewater.manifest import read_manifest, read_performance_reports

RESULTS = Path("results")
REPORT = "report.html"
# Not `make run`: its small generated data would replace results of the user's own.
AGAIN = "run snakemake again, with the same configuration"
NOT_MADE = "not made yet: run snakemake again"
REPORT_NOT_MADE = f"not made yet: run snakemake --report {RESULTS / REPORT}"


class Result(NamedTuple):
    """One result, in all its formats: the step that made it, and its files or directory, or a folder of pictures."""

    step: str
    paths: Sequence[Path]
    where: str
    rows: int | None
    size: int | None  # bytes of all formats; None where one of them is missing


def main(arguments: list[str]) -> int:
    """Print a table of the results of each application and device, and what they say; return 1 where it is missing."""
    parser = argparse.ArgumentParser(prog="whitewater results", description=__doc__)
    parser.add_argument("name", nargs="?", help="show only the run of this name")
    name = parser.parse_args(arguments).name
    places, ready = _places(name), finished(name)
    if not ready:
        remedy = AGAIN if places else "run snakemake, or make run for small generated data"
        print(f"No finished results in {RESULTS / (name or '')}/: {remedy}.", file=sys.stderr)
        return 1
    console = terminal()
    failed = 0
    for place in places:
        console.print(_table(place) if place in ready else f"{place}/  {NOT_MADE}")
        try:
            sentences = found_in(place)
        except InputError as error:  # the other applications' results are to be seen all the same
            failed = 1
            sentences = [str(error)]
        for sentence in sentences:
            console.print(Padding(Text(sentence), (0, 0, 0, 2)))
    # Of all applications of a run, and of one of them.
    folders = [*(place.parents[1] for place in places), *(place.parent for place in places)]
    reports = [path for folder in dict.fromkeys(folders) if (path := folder / REPORT).exists()]
    console.print(f"\nReport with all pictures: {', '.join(map(str, reports)) or REPORT_NOT_MADE}")
    return failed


def terminal() -> Console:
    """Return what prints tables, wide enough for the path of a picture where no terminal says how wide it is."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 140)


def finished(name: str | None = None) -> list[Path]:
    """Return ``results/[<name>/]<application>/<device>`` of finished runs: all, or those of one name."""
    return [place for place in _places(name) if (place / "manifest.json").exists()]


def _places(name: str | None) -> list[Path]:
    """Return where results are: ``results/[<name>/]<application>/<device>``, those of runs without a name first."""
    patterns = [f"{name}/*/[cg]pu"] if name else ["*/[cg]pu", "*/*/[cg]pu"]
    known = declared(Path.cwd())
    return [path for pattern in patterns for path in sorted(RESULTS.glob(pattern)) if path.parent.name in known]


def results_of(place: Path) -> list[Result]:
    """Return what the manifest of a directory lists of it, in the order of the steps, all formats of a result together.

    What is not in ``place``, ``results/<application>/<device>``, such as downloads, is left out.
    """
    formats: dict[tuple[str, Path], list[Path]] = defaultdict(list)
    for output in read_manifest(place / "manifest.json")["outputs"]:
        path = Path(output["path"])
        if path.is_relative_to(place):
            formats[output["step"], path.with_suffix("") if path.parent == place else path.parent].append(path)
    turn = _application(place).steps.index
    ordered = sorted(formats.items(), key=lambda result: (turn(result[0][0]), result[0][1]))
    return [_result(step, paths) for (step, _), paths in ordered]


def _result(step: str, paths: Sequence[Path]) -> Result:
    """Describe a result: where it is, as ``results/tips.{csv,parquet}``, and the rows of the first format with some."""
    first = paths[0]
    if len({path.stem for path in paths}) > 1:
        where = f"{first.parent}/  {len(paths)} files"
    elif len(paths) > 1:
        where = f"{first.with_suffix('')}.{{{','.join(path.suffix[1:] for path in paths)}}}"
    else:
        where = f"{first}/" if first.is_dir() else str(first)
    if not all(path.exists() for path in paths):
        return Result(step, paths, where, None, None)
    counted = next((number for number in map(rows, paths) if number is not None), None)
    return Result(step, paths, where, counted, sum(map(size_of, paths)))


def rows(path: Path) -> int | None:
    """Return the rows of a Parquet file or of a directory of nothing else, None where it is something else."""
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    data = [each for each in files if not each.name.startswith((".", "_"))]
    if any(each.suffix != ".parquet" for each in data):
        return None
    import pyarrow.parquet as pq

    return sum(int(pq.read_metadata(each).num_rows) for each in data)


def _table(place: Path) -> Table:
    run = place.parent.parent
    title = f"{place.parent.name} on {place.name}{f', run {run.name}' if run != RESULTS else ''}"
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("step", "rows", "size"):
        table.add_column(name, no_wrap=True, justify="left" if name == "step" else "right")
    table.add_column("where", overflow="fold")
    manifest = place / "manifest.json"
    reports = {"manifest": manifest, **read_performance_reports(manifest)}
    for each in [*results_of(place), *(_result(step, [path]) for step, path in reports.items())]:
        size, missing = ("", f"  {NOT_MADE}") if each.size is None else (decimal(each.size), "")
        table.add_row(each.step, "" if each.rows is None else f"{each.rows:,}", size, each.where + missing)
    return table


def found_in(place: Path) -> list[str]:
    """Return what the application itself says of its results, in sentences. Raises InputError if it cannot."""
    location = _application(place).headline
    try:
        return list(load(location)(place)) if location else []
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise InputError(f"What these results say cannot be told: {problem}. Make them again.") from error


def _application(place: Path) -> Application:
    """Return the application that results, in ``results/[name/]<application>/<device>``, are of."""
    name = place.parent.name
    return applications([name])[name]
