"""``whitewater results``: list the results of the last runs."""

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

from whitewater.application import Application, applications, find_entry_points, load
from whitewater.errors import InputError
from whitewater.io.store import size_of
from whitewater.manifest import read_manifest, read_performance_reports

RESULTS = Path("results")
REPORT = "report.html"
NOT_MADE = "not made yet: run snakemake again"


class Result(NamedTuple):
    """A result of a step in all its formats: files, a directory, or a folder of pictures."""

    step: str
    paths: Sequence[Path]
    where: str
    rows: int | None
    size: int | None  # bytes of all formats; None where one of them is missing


def main(arguments: list[str]) -> int:
    """Print the results of each application and device, and a summary; return 1 if any is missing."""
    parser = argparse.ArgumentParser(prog="whitewater results", description=__doc__)
    parser.add_argument("name", nargs="?", help="show only the run of this name")
    name = parser.parse_args(arguments).name
    places, ready = _places(name), finished_results(name)
    if not ready:
        # If there are results, do not suggest `make run`: its generated data would replace them.
        again = "run snakemake again, with the same configuration"
        remedy = again if places else "run snakemake, or make run for small generated data"
        print(f"No finished results in {RESULTS / (name or '')}/: {remedy}.", file=sys.stderr)
        return 1
    console = terminal()
    failed = 0
    for place in places:
        console.print(_table(place) if place in ready else f"{place}/  {NOT_MADE}")
        try:
            sentences = read_headline(place)
        except InputError as error:  # still show the other applications
            failed = 1
            sentences = [str(error)]
        for sentence in sentences:
            console.print(Padding(Text(sentence), (0, 0, 0, 2)))
    # A report is of a run with all its applications, or of one application.
    folders = [*(place.parents[1] for place in places), *(place.parent for place in places)]
    reports = [path for folder in dict.fromkeys(folders) if (path := folder / REPORT).exists()]
    remedy = f"not made yet: run snakemake --report {RESULTS / REPORT}"
    console.print(f"\nReport with all pictures: {', '.join(map(str, reports)) or remedy}")
    return failed


def terminal() -> Console:
    """Return a console for tables; without a terminal it is wide enough for the path of a picture."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 140)


def finished_results(name: str | None = None) -> list[Path]:
    """Return the folders of finished results, of all runs or of one; see `_places`."""
    return [place for place in _places(name) if (place / "manifest.json").exists()]


def _places(name: str | None) -> list[Path]:
    """Return the folders ``results/[<name>/]<application>/<device>``, those of the unnamed run first."""
    patterns = [f"{name}/*/[cg]pu"] if name else ["*/[cg]pu", "*/*/[cg]pu"]
    known = find_entry_points(Path.cwd())
    return [path for pattern in patterns for path in sorted(RESULTS.glob(pattern)) if path.parent.name in known]


def results_of(place: Path) -> list[Result]:
    """Return the results that the manifest in ``place`` lists below it, in the order of the steps."""
    formats: dict[tuple[str, Path], list[Path]] = defaultdict(list)
    for output in read_manifest(place / "manifest.json")["outputs"]:
        path = Path(output["path"])
        if path.is_relative_to(place):
            formats[output["step"], path.with_suffix("") if path.parent == place else path.parent].append(path)
    position = _application(place).steps.index
    keys = sorted(formats, key=lambda key: (position(key[0]), key[1]))
    return [_describe(key[0], formats[key]) for key in keys]


def _describe(step: str, paths: Sequence[Path]) -> Result:
    """Describe a result: where it is, as ``results/tips.{csv,parquet}``, and its rows in the first format with rows."""
    first = paths[0]
    if len({path.stem for path in paths}) > 1:
        where = f"{first.parent}/  {len(paths)} files"
    elif len(paths) > 1:
        where = f"{first.with_suffix('')}.{{{','.join(path.suffix[1:] for path in paths)}}}"
    else:
        where = f"{first}/" if first.is_dir() else str(first)
    if not all(path.exists() for path in paths):
        return Result(step, paths, where, None, None)
    count = next((number for number in map(rows, paths) if number is not None), None)
    return Result(step, paths, where, count, sum(map(size_of, paths)))


def rows(path: Path) -> int | None:
    """Return the rows of a Parquet file or a directory of Parquet files, None for anything else."""
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    data = [file for file in files if not file.name.startswith((".", "_"))]
    if any(file.suffix != ".parquet" for file in data):
        return None
    import pyarrow.parquet as pq

    return sum(int(pq.read_metadata(file).num_rows) for file in data)


def _table(place: Path) -> Table:
    run = place.parent.parent
    title = f"{place.parent.name} on {place.name}{f', run {run.name}' if run != RESULTS else ''}"
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("step", "rows", "size"):
        table.add_column(name, no_wrap=True, justify="left" if name == "step" else "right")
    table.add_column("where", overflow="fold")
    manifest = place / "manifest.json"
    reports = {"manifest": manifest, **read_performance_reports(manifest)}
    for result in [*results_of(place), *(_describe(step, [path]) for step, path in reports.items())]:
        size, missing = ("", f"  {NOT_MADE}") if result.size is None else (decimal(result.size), "")
        table.add_row(result.step, "" if result.rows is None else f"{result.rows:,}", size, result.where + missing)
    return table


def read_headline(place: Path) -> list[str]:
    """Return the application's own summary of its results, in sentences. Raises InputError if that fails."""
    location = _application(place).headline
    try:
        return list(load(location)(place)) if location else []
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise InputError(f"These results cannot be summarized: {problem}. Make them again.") from error


def _application(place: Path) -> Application:
    """Return the application of the results in ``results/[<name>/]<application>/<device>``."""
    name = place.parent.name
    return applications([name])[name]
