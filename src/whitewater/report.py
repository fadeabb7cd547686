"""The cover of a report: what each application found, what it made, how its steps hang together, and where more is."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from whitewater.cli.results import Made, found_in, made, rows, size
from whitewater.errors import InputError
from whitewater.manifest import flattened, read_manifest, read_performance_reports

# Tables of so many rows at most are on the cover.
MOST_ROWS = 100
# Letters of a line; docutils takes 10,000.
_LINE = 2000
# Pixels: a box with the name of a step, and the room between two.
_WIDTH, _HEIGHT, _ACROSS, _DOWN = 118, 34, 18, 26


def cover(place: Path, configured: Mapping[str, Any], *, report: Path) -> str:
    """Return what the report says of one application and device, as HTML.

    ``place`` is ``results/[<run>/]<application>/<device>``, ``configured`` the application's section as it is now, and
    ``report`` the page, from which links go.
    """
    manifest = read_manifest(place / "manifest.json")
    results = made(manifest["outputs"], place)
    links = {"manifest": place / "manifest.json"} | {
        f"Dask's report of {step}": path for step, path in read_performance_reports(place / "manifest.json").items()
    }
    try:
        sentences = found_in(place)
    except InputError as error:
        sentences = [str(error)]
    parts = [
        _list(map(escape, sentences)),
        _differences(flattened(manifest["config"]), flattened(configured)),
        _steps(manifest),
        _details("Results", _results(results)),
        *(_details(f"Table: {each.paths[0].stem}", _table(each)) for each in results if _is_small_table(each)),
        "<p>", ", ".join(f'<a href="{escape(os.path.relpath(to, report.parent))}">{escape(name)}</a>'
                         for name, to in links.items()), "</p>",
    ]  # fmt: skip
    return textwrap.fill("".join(parts), _LINE, break_long_words=False, break_on_hyphens=False)


def _list(items: Any) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _details(title: str, body: str) -> str:
    return f'<details><summary>{escape(title)}</summary><div class="wide">{body}</div></details>'


def _differences(ran: Mapping[str, Any], configured: Mapping[str, Any]) -> str:
    """Say which settings are others now than when the results were made."""
    keys = [key for key in {**ran, **configured} if ran.get(key) != configured.get(key)]
    if not keys:
        return ""
    told = _list(
        f"<code>{escape(key)}</code>: ran with {_value(ran, key)}, configured is {_value(configured, key)}"
        for key in keys
    )
    return f"<p><strong>These results are not of the present configuration:</strong></p>{told}"


def _value(settings: Mapping[str, Any], key: str) -> str:
    return escape(json.dumps(settings[key], ensure_ascii=False), quote=False) if key in settings else "nothing"


def _results(results: Sequence[Made]) -> str:
    lines = []
    for each in results:
        counts = [number for number in map(rows, each.paths) if number is not None]
        cells = (each.step, each.where, f"{counts[0]:,}" if counts else "", f"{sum(map(size, each.paths)):,}")
        lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    head = "<th>step</th><th>where</th><th>rows</th><th>bytes</th>"
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _is_small_table(each: Made) -> bool:
    return any(path.suffix == ".parquet" and (rows(path) or MOST_ROWS + 1) <= MOST_ROWS for path in each.paths)


def _table(each: Made) -> str:
    import pandas as pd

    (path,) = (path for path in each.paths if path.suffix == ".parquet")
    html: str = pd.read_parquet(path).to_html(index=False, border=0, na_rep="", float_format="{:.4g}".format)
    return html


def _steps(manifest: Mapping[str, Any]) -> str:
    """Draw the steps as a graph from top to bottom, with their seconds; what follows from other arrows has none."""
    records = manifest["steps"]
    maker = {each["path"]: each["step"] for each in manifest["outputs"]}
    needs = {
        step: {maker[path] for path in record["inputs"].values() if maker.get(path, step) != step}
        for step, record in records.items()
    }
    before: dict[str, set[str]] = {}
    level: dict[str, int] = {}

    def visit(step: str) -> None:
        if step not in level:
            for other in needs[step]:
                visit(other)
            before[step] = needs[step].union(*(before[other] for other in needs[step]))
            level[step] = 1 + max((level[other] for other in needs[step]), default=-1)

    for step in records:
        visit(step)
    columns = [[step for step in records if level[step] == row] for row in range(max(level.values()) + 1)]
    width = max(map(len, columns)) * (_WIDTH + _ACROSS)
    place = {
        step: (width / 2 + (number - (len(column) - 1) / 2) * (_WIDTH + _ACROSS), 2 + row * (_HEIGHT + _DOWN))
        for row, column in enumerate(columns)
        for number, step in enumerate(column)
    }
    lines = [
        _arrow(place[other], place[step])
        for step in records
        for other in sorted(needs[step])
        if not any(other in before[between] for between in needs[step])
    ]
    boxes = [_box(step, f"{records[step]['seconds']:.1f} s", *place[step]) for step in records]
    height = 4 + len(columns) * (_HEIGHT + _DOWN) - _DOWN
    name = escape(f"Steps of {manifest['application']}, each below those that it reads from")
    return (
        f'<div class="wide"><svg role="img" aria-label="{name}" width="{width}" height="{height}" font-size="11" '
        f'text-anchor="middle">{"".join(lines + boxes)}</svg></div>'
    )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x, y), (to, bottom) = (start[0], start[1] + _HEIGHT), end
    bend = _DOWN * 0.8
    path = f"M{x},{y} C{x},{y + bend} {to},{bottom - bend} {to},{bottom}"
    return f'<path d="{path}" fill="none" stroke="#777"/><circle cx="{to}" cy="{bottom}" r="2.5" fill="#777"/>'


def _box(name: str, below: str, x: float, y: float) -> str:
    return (
        f'<rect x="{x - _WIDTH / 2}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="#f1f5f9" stroke="#777"/>'
        f'<text x="{x}" y="{y + 14}" font-weight="bold">{escape(name)}</text>'
        f'<text x="{x}" y="{y + 27}" fill="#555">{below}</text>'
    )
