"""Additions to Snakemake's report: a cover page, tables beside the pictures, and alternative texts of the pictures."""

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

from whitewater.cli.results import read_headline, results_of, rows
from whitewater.errors import InputError
from whitewater.io.store import read_json
from whitewater.manifest import flatten, read_manifest, read_performance_reports

MOST_ROWS = 100  # longer tables are left out
_LINE = 2000  # characters; docutils accepts 10,000
# The image element of Snakemake's page, and the alternative text that it lacks: the picture's label and caption.
_PICTURE = "{ src: this.props.app.state.contentPath }"
_RESULT = "results[this.props.app.state.resultPath]"
_TEXT = f'{_RESULT}.labels.picture + ". " + {_RESULT}.caption.replace(/<details.*/s, "").replace(/<[^>]*>/g, "")'
# Pixels: size of the box of a step, and gaps between boxes.
_WIDTH, _HEIGHT, _ACROSS, _DOWN = 118, 34, 18, 26


def add_picture_texts(report: Path) -> None:
    """Add alternative texts for screen readers to the pictures of a report, if Snakemake has written it."""
    with suppress(OSError, UnicodeDecodeError):
        page = report.read_text("utf-8")
        report.write_text(page.replace(_PICTURE, f"{{ {_PICTURE[2:-2]}, alt: {_TEXT} }}"), "utf-8")


def tables(place: Path) -> dict[str, str]:
    """Return the small tables in the results of one application and device by name, as HTML."""
    html: dict[str, list[str]] = defaultdict(list)
    for path in (path for result in results_of(place) for path in result.paths):
        html[path.stem] += _read_tables(path)
    return {name: _wrap(_details(f"Table: {name}", "".join(parts))) for name, parts in html.items() if parts}


def _read_tables(path: Path) -> list[str]:
    """Return as HTML the table of a Parquet file, or the single values and the lists of records of a JSON file."""
    tables = []
    if path.suffix == ".parquet" and (rows(path) or 0) <= MOST_ROWS:
        tables = [pd.read_parquet(path)]
    elif path.suffix == ".json":
        values = read_json(path)
        single = {key: value for key, value in flatten(values).items() if not isinstance(value, list)}
        records = [item for item in values.values() if isinstance(item, list) and item and isinstance(item[0], dict)]
        tables = [pd.DataFrame(single.items(), columns=["name", "value"]), *map(pd.DataFrame, records)]
    return [
        table.to_html(index=False, border=0, na_rep="", justify="left", float_format="{:.4g}".format)
        for table in tables
        if 0 < len(table) <= MOST_ROWS
    ]


def cover(place: Path, configured: Mapping[str, Any], html: Iterable[str], *, report: Path) -> str:
    """Return the report's cover for one application and device, as HTML.

    ``place`` is ``results/[<run>/]<application>/<device>``, ``configured`` the application's current settings, ``html``
    its `tables`, and ``report`` the page, to which links are relative.
    """
    path = place / "manifest.json"
    manifest = read_manifest(path)
    reports = {f"Dask's report of {step}": file for step, file in read_performance_reports(path).items()}
    try:
        sentences = read_headline(place)
    except InputError as error:
        sentences = [str(error)]
    parts = [
        _list(re.sub("`(.+?)`", r"<code>\1</code>", escape(sentence)) for sentence in sentences),
        _differences(flatten(manifest["config"]), flatten(configured)),
        _draw_steps(manifest),
        _details("Results", _results(place)),
        *html,
    ]
    links = [
        f'<a href="{escape(os.path.relpath(target, report.parent))}">{escape(name)}</a>'
        for name, target in {"manifest": path, **reports}.items()
    ]
    return _wrap(f"{''.join(parts)}<p>{', '.join(links)}</p>")


def _wrap(html: str) -> str:
    return textwrap.fill(html, _LINE, break_long_words=False, break_on_hyphens=False)


def _list(items: Any) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _details(title: str, body: str) -> str:
    return f'<details><summary>{escape(title)}</summary><div class="wide">{body}</div></details>'


def _differences(recorded: Mapping[str, Any], configured: Mapping[str, Any]) -> str:
    """List the settings that have changed since the results were made."""
    keys = [key for key in {**recorded, **configured} if recorded.get(key) != configured.get(key)]
    if not keys:
        return ""
    differences = _list(
        f"<code>{escape(key)}</code>: ran with {_format(recorded, key)}, configured is {_format(configured, key)}"
        for key in keys
    )
    return f"<p><strong>These results are not of the present configuration:</strong></p>{differences}"


def _format(settings: Mapping[str, Any], key: str) -> str:
    return escape(json.dumps(settings[key], ensure_ascii=False), quote=False) if key in settings else "nothing"


def _results(place: Path) -> str:
    lines = "<tr><th>step</th><th>where</th><th>rows</th><th>bytes</th></tr>"
    for result in results_of(place):
        numbers = ("" if number is None else f"{number:,}" for number in (result.rows, result.size))
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in (result.step, result.where, *numbers))
        lines += f"<tr>{cells}</tr>"
    return f"<table>{lines}</table>"


def _draw_steps(manifest: Mapping[str, Any]) -> str:
    """Draw the graph of steps, top to bottom, with their seconds. Arrows that follow from others are left out."""
    records = manifest["steps"]
    producer = {output["path"]: output["step"] for output in manifest["outputs"]}
    parents = {
        step: {producer[path] for path in record["inputs"].values() if producer.get(path, step) != step}
        for step, record in records.items()
    }
    ancestors: dict[str, set[str]] = {}
    row: dict[str, int] = {}
    for step in TopologicalSorter(parents).static_order():
        ancestors[step] = parents[step].union(*(ancestors[parent] for parent in parents[step]))
        row[step] = 1 + max((row[parent] for parent in parents[step]), default=-1)
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
        for parent in sorted(parents[step]):
            if not any(parent in ancestors[between] for between in parents[step]):
                start, bottom, bend = place[parent][0], place[parent][1] + _HEIGHT, _DOWN * 0.8
                path = f"M{start},{bottom} C{start},{bottom + bend} {x},{y - bend} {x},{y}"
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
