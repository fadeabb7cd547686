"""What Whitewater adds to a report of Snakemake: a cover, tables beside pictures, and texts for screen readers."""

import json
import os
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from whitewater.cli.results import found_in, results_of, rows
from whitewater.errors import InputError
from whitewater.io.store import read_json
from whitewater.manifest import flatten, read_manifest, read_performance_reports

# Tables of so many rows at most are on the cover.
MOST_ROWS = 100
# Letters of a line; docutils takes 10,000.
_LINE = 2000
# An element of Snakemake's page, and what it lacks: a text for a picture, which is its label and its caption.
_PICTURE = "{ src: this.props.app.state.contentPath }"
_RESULT = "results[this.props.app.state.resultPath]"
_TEXT = f'{_RESULT}.labels.picture + ". " + {_RESULT}.caption.replace(/<details.*/s, "").replace(/<[^>]*>/g, "")'
# Pixels: a box with the name of a step, and the room between two.
_WIDTH, _HEIGHT, _ACROSS, _DOWN = 118, 34, 18, 26


def add_picture_texts(report: Path) -> None:
    """Give the pictures of a report that Snakemake has written texts for screen readers; of no report, do nothing."""
    with suppress(OSError, UnicodeDecodeError):
        page = report.read_text("utf-8")
        report.write_text(page.replace(_PICTURE, f"{{ {_PICTURE[2:-2]}, alt: {_TEXT} }}"), "utf-8")


def tables(place: Path) -> dict[str, str]:
    """Return the small tables and numbers in the results of one application and device by their names, as HTML."""
    shown: dict[str, list[str]] = defaultdict(list)
    for path in (path for each in results_of(place) for path in each.paths):
        shown[path.stem] += _tables(path)
    return {name: _wrapped(_details(f"Table: {name}", "".join(html))) for name, html in shown.items() if html}


def _tables(path: Path) -> list[str]:
    """Return the tables of a Parquet file, or of JSON its single values and its lists of records."""
    tables = []
    if path.suffix == ".parquet" and (rows(path) or 0) <= MOST_ROWS:
        tables = [pd.read_parquet(path)]
    elif path.suffix == ".json":
        values = read_json(path)
        single = {key: value for key, value in flatten(values).items() if not isinstance(value, list)}
        records = [each for each in values.values() if isinstance(each, list) and each and isinstance(each[0], dict)]
        tables = [pd.DataFrame(single.items(), columns=["name", "value"]), *map(pd.DataFrame, records)]
    return [
        table.to_html(index=False, border=0, na_rep="", justify="left", float_format="{:.4g}".format)
        for table in tables
        if 0 < len(table) <= MOST_ROWS
    ]


def cover(place: Path, configured: Mapping[str, Any], shown: Iterable[str], *, report: Path) -> str:
    """Return what the report says of one application and device, as HTML.

    ``place`` is ``results/[<run>/]<application>/<device>``, ``configured`` the application's section as it is now,
    ``shown`` its `tables`, and ``report`` the page, from which links go.
    """
    manifest = read_manifest(place / "manifest.json")
    links = {"manifest": place / "manifest.json"} | {
        f"Dask's report of {step}": path for step, path in read_performance_reports(place / "manifest.json").items()
    }
    try:
        sentences = found_in(place)
    except InputError as error:
        sentences = [str(error)]
    parts = [
        _list(re.sub("`(.+?)`", r"<code>\1</code>", escape(sentence)) for sentence in sentences),
        _differences(flatten(manifest["config"]), flatten(configured)),
        _steps(manifest),
        _details("Results", _results(place)),
        *shown,
        "<p>", ", ".join(f'<a href="{escape(os.path.relpath(to, report.parent))}">{escape(name)}</a>'
                         for name, to in links.items()), "</p>",
    ]  # fmt: skip
    return _wrapped("".join(parts))


def _wrapped(html: str) -> str:
    return textwrap.fill(html, _LINE, break_long_words=False, break_on_hyphens=False)


def _list(items: Any) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _details(title: str, body: str) -> str:
    return f'<details><summary>{escape(title)}</summary><div class="wide">{body}</div></details>'


def _differences(ran: Mapping[str, Any], configured: Mapping[str, Any]) -> str:
    """Say which settings are others now than when the results were made."""
    keys = [key for key in {**ran, **configured} if ran.get(key) != configured.get(key)]
    if not keys:
        return ""
    differences = _list(
        f"<code>{escape(key)}</code>: ran with {_value(ran, key)}, configured is {_value(configured, key)}"
        for key in keys
    )
    return f"<p><strong>These results are not of the present configuration:</strong></p>{differences}"


def _value(settings: Mapping[str, Any], key: str) -> str:
    return escape(json.dumps(settings[key], ensure_ascii=False), quote=False) if key in settings else "nothing"


def _results(place: Path) -> str:
    lines = "<tr><th>step</th><th>where</th><th>rows</th><th>bytes</th></tr>"
    for each in results_of(place):
        numbers = ("" if number is None else f"{number:,}" for number in (each.rows, each.size))
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in (each.step, each.where, *numbers))
        lines += f"<tr>{cells}</tr>"
    return f"<table>{lines}</table>"


def _steps(manifest: Mapping[str, Any]) -> str:
    """Draw the steps as a graph from top to bottom, with their seconds; what follows from other arrows has none."""
    records = manifest["steps"]
    maker = {each["path"]: each["step"] for each in manifest["outputs"]}
    needs = {
        step: {maker[path] for path in record["inputs"].values() if maker.get(path, step) != step}
        for step, record in records.items()
    }
    before: dict[str, set[str]] = {}
    row: dict[str, int] = {}
    for step in TopologicalSorter(needs).static_order():
        before[step] = needs[step].union(*(before[other] for other in needs[step]))
        row[step] = 1 + max((row[other] for other in needs[step]), default=-1)
    columns = [[step for step in records if row[step] == number] for number in range(1 + max(row.values()))]
    width, height = max(map(len, columns)) * (_WIDTH + _ACROSS), 4 + len(columns) * (_HEIGHT + _DOWN) - _DOWN
    place = {
        step: (width / 2 + (number - (len(column) - 1) / 2) * (_WIDTH + _ACROSS), 2 + row[step] * (_HEIGHT + _DOWN))
        for column in columns
        for number, step in enumerate(column)
    }
    arrows, boxes = "", ""
    for step, record in records.items():
        x, y = place[step]
        for other in sorted(needs[step]):
            if not any(other in before[between] for between in needs[step]):
                start, below, bend = place[other][0], place[other][1] + _HEIGHT, _DOWN * 0.8
                path = f"M{start},{below} C{start},{below + bend} {x},{y - bend} {x},{y}"
                arrows += f'<path d="{path}" fill="none" stroke="#777"/><circle cx="{x}" cy="{y}" r="2.5" fill="#777"/>'
        boxes += (
            f'<rect x="{x - _WIDTH / 2}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="#f1f5f9" '
            f'stroke="#777"/><text x="{x}" y="{y + 14}" font-weight="bold">{escape(step)}</text>'
            f'<text x="{x}" y="{y + 27}" fill="#555">{record["seconds"]:.1f} s</text>'
        )
    name = escape(f"Steps of {manifest['application']}, each below those that it reads from")
    return (
        f'<div class="wide"><svg role="img" aria-label="{name}" width="{width}" height="{height}" font-size="11" '
        f'text-anchor="middle">{arrows}{boxes}</svg></div>'
    )
