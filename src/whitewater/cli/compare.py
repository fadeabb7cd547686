"""Two runs side by side: ``whitewater compare RUN RUN``."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from whitewater.cli.results import RESULTS, finished_results, read_headline, results_of, terminal
from whitewater.errors import InputError
from whitewater.manifest import flatten, read_manifest

UNNAMED = "."  # not a valid name of a run

Sides = Mapping[str, tuple[Any, Any]]


def main(arguments: list[str]) -> int:
    """Print the settings in which two runs differ, and their rows, seconds and findings."""
    parser = argparse.ArgumentParser(prog="whitewater compare", description=__doc__)
    parser.add_argument("runs", nargs=2, metavar="RUN", help=f"the name of a run; {UNNAMED} is the unnamed run")
    parser.add_argument("--json", action="store_true", help="print JSON, with the values of both runs for each item")
    options = parser.parse_args(arguments)
    comparison = compare(*options.runs)
    if options.json:
        print(json.dumps({"runs": options.runs, "applications": comparison}, indent=2))
    else:
        _print(options.runs, comparison)
    return 0


def compare(*runs: str) -> dict[str, dict[str, Sides]]:
    """Return both runs' values, or None, by ``<application> on <device>`` and kind; of settings those that differ."""
    first, second = map(_read_metrics, runs)
    comparison: dict[str, dict[str, Sides]] = {}
    for place in sorted({*first, *second}):
        comparison[place] = {}
        for kind in ("settings", "rows", "seconds", "found"):
            left, right = (metrics.get(place, {}).get(kind, {}) for metrics in (first, second))
            pairs = {name: (left.get(name), right.get(name)) for name in {**left, **right}}
            differences = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
            comparison[place][kind] = differences if kind == "settings" else pairs
    return comparison


def _read_metrics(run: str) -> dict[str, dict[str, dict[str, Any]]]:
    places = finished_results(run)
    if not places:
        names = sorted({path.parents[1].name if path.parents[1] != RESULTS else UNNAMED for path in finished_results()})
        raise InputError(
            f"{RESULTS / run}/ has no finished results. Runs with results: {', '.join(map(repr, names)) or 'none'}. "
            f"Name two of them, or make it: make run NAME={run}"
        )
    metrics = {}
    for place in places:
        manifest = read_manifest(place / "manifest.json")
        versions = {name: manifest.get(name) for name in ("whitewater", "git_commit", "platform")}
        rows = {str(result.paths[0].relative_to(place)): result.rows for result in results_of(place)}
        metrics[f"{place.parent.name} on {place.name}"] = {
            "settings": {**versions, **flatten(manifest.get("config", {}))},
            "rows": {name: count for name, count in rows.items() if count is not None},
            "seconds": {step: record["seconds"] for step, record in manifest["steps"].items()},
            "found": dict.fromkeys(read_headline(place), True),
        }
    return metrics


def _print(runs: list[str], comparison: Mapping[str, Mapping[str, Sides]]) -> None:
    console = terminal()
    for place, kinds in comparison.items():
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
        return "-"
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
