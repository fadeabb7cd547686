"""Two runs side by side: ``whitewater compare RUN RUN``."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from whitewater.cli.results import RESULTS, finished, found_in, results_of, terminal
from whitewater.errors import InputError
from whitewater.manifest import flatten, read_manifest

PLAIN = "."  # which no run with a name can be called
NONE = "-"

Sides = Mapping[str, tuple[Any, Any]]


def main(arguments: list[str]) -> int:
    """Print where the settings of two runs differ, and their rows, seconds and findings. Raises InputError."""
    parser = argparse.ArgumentParser(prog="whitewater compare", description=__doc__)
    parser.add_argument("runs", nargs=2, metavar="RUN", help=f"the name of a run; {PLAIN} is the unnamed run")
    parser.add_argument("--json", action="store_true", help="print JSON, a value of each run for each item")
    options = parser.parse_args(arguments)
    compared = compare(*options.runs)
    if options.json:
        print(json.dumps({"runs": options.runs, "applications": compared}, indent=2))
    else:
        _print(options.runs, compared)
    return 0


def compare(*runs: str) -> dict[str, dict[str, Sides]]:
    """Return of each application and device the ``settings`` that differ, and ``rows``, ``seconds`` and ``found``.

    Each item has the values of both runs, None where a run has none. Raises InputError if a run has no results.
    """
    first, second = map(_metrics_of, runs)
    compared: dict[str, dict[str, Sides]] = {}
    for place in sorted({*first, *second}):
        compared[place] = {}
        for kind in ("settings", "rows", "seconds", "found"):
            one, other = (described.get(place, {}).get(kind, {}) for described in (first, second))
            pairs = {name: (one.get(name), other.get(name)) for name in {**one, **other}}
            differ = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
            compared[place][kind] = differ if kind == "settings" else pairs
    return compared


def _metrics_of(run: str) -> dict[str, dict[str, dict[str, Any]]]:
    places = finished(run)
    if not places:
        others = sorted({path.parents[1].name if path.parents[1] != RESULTS else PLAIN for path in finished()})
        raise InputError(
            f"{RESULTS / run}/ has no finished results. Runs with results: {', '.join(map(repr, others)) or 'none'}. "
            f"Name two of them, or make it: make run NAME={run}"
        )
    described = {}
    for place in places:
        manifest = read_manifest(place / "manifest.json")
        about = {name: manifest.get(name) for name in ("whitewater", "git_commit", "platform")}
        counted = {str(each.paths[0].relative_to(place)): each.rows for each in results_of(place)}
        described[f"{place.parent.name} on {place.name}"] = {
            "settings": {**about, **flatten(manifest.get("config", {}))},
            "rows": {name: rows for name, rows in counted.items() if rows is not None},
            "seconds": {step: record["seconds"] for step, record in manifest["steps"].items()},
            "found": dict.fromkeys(found_in(place), True),
        }
    return described


def _print(runs: list[str], compared: Mapping[str, Mapping[str, Sides]]) -> None:
    console = terminal()
    for place, kinds in compared.items():
        has_run = [any(value is not None for value in side) for side in zip(*kinds["seconds"].values(), strict=True)]
        if has_run.count(True) == 1:
            console.print(f"{place}: only in {runs[has_run.index(True)]}", markup=False)
            continue
        table = Table(title=place, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
        for name in ("", "", *runs):
            table.add_column(name, overflow="fold", justify="left")
        for kind in ("settings", "rows", "seconds"):
            for number, (name, pair) in enumerate(kinds[kind].items()):
                table.add_row("" if number else kind, name, *map(_format_value, pair))
        console.print(table)
        for sentence, (first, second) in kinds["found"].items():
            whose = "both" if first and second else runs[0 if first else 1]
            console.print(f"  {whose}: {sentence}", markup=False)


def _format_value(value: Any) -> str:
    if value is None:
        return NONE
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
