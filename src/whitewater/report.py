"""What Whitewater adds to a report of Snakemake: a cover, tables beside pictures, and texts for screen readers."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path
from typing import Any

from whitewater.cli.results import Result, found_in, results_by_step, rows
from whitewater.errors import InputError
from whitewater.io.store import read_json, size_of
from whitewater.manifest import flatten, read_manifest, read_performance_reports

# Tables of so many rows at most are on the cover.
MOST_ROWS = 100
# Letters of a line; docutils takes 10,000.
_LINE = 2000
# An element of Snakemake's page, and what it lacks: a text for a picture, which is its label and its caption.
_PICTURE = "{ src: this.props.app.state.contentPath }"
_RESULT = "results[this.props.app.state.resultPath]"
_TEXT = f'{_RESULT}.labels.picture + ". " + {_RESULT}.caption.replace(/<details.*/s, "").replace(/<[^>]*>/g, "")'


def add_picture_texts(report: Path) -> None:
    """Give the pictures of a report that Snakemake has written texts for screen readers; of no report, do nothing."""
    with suppress(OSError, UnicodeDecodeError):
        page = report.read_text("utf-8")
        report.write_text(page.replace(_PICTURE, f"{{ {_PICTURE[2:-2]}, alt: {_TEXT} }}"), "utf-8")


def tables(place: Path) -> dict[str, str]:
    """Return the small tables and numbers in the results of one application and device by their names, as HTML."""
    results = results_by_step(read_manifest(place / "manifest.json")["outputs"], place)
    shown: dict[str, list[str]] = defaultdict(list)
    for path in (path for each in results for path in each.paths):
        shown[path.stem] += _tables(path)
    return {name: _wrapped(_details(f"Table: {name}", "".join(html))) for name, html in shown.items() if html}


def _tables(path: Path) -> list[str]:
    """Return the tables of a Parquet file, or of JSON its single values and its lists of records."""
    import pandas as pd

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


def cover(place: Path, configured: Mapping[str, Any], *, report: Path) -> str:
    """Return what the report says of one application and device, as HTML.

    ``place`` is ``results/[<run>/]<application>/<device>``, ``configured`` the application's section as it is now, and
    ``report`` the page, from which links go.
    """
    manifest = read_manifest(place / "manifest.json")
    results = results_by_step(manifest["outputs"], place)
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
        _details("Results", _results(results)),
        *tables(place).values(),
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


def _results(results: Sequence[Result]) -> str:
    lines = []
    for result in results:
        number = "" if result.rows is None else f"{result.rows:,}"
        cells = (result.step, result.where, number, f"{sum(map(size_of, result.paths)):,}")
        lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    head = "<th>step</th><th>where</th><th>rows</th><th>bytes</th>"
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _steps(manifest: Mapping[str, Any]) -> str:
    """Draw the steps from top to bottom, each with its seconds and the steps that it follows directly."""
    records = manifest["steps"]
    maker = {each["path"]: each["step"] for each in manifest["outputs"]}
    needs = {
        step: {maker[path] for path in record["inputs"].values() if maker.get(path, step) != step}
        for step, record in records.items()
    }
    before: dict[str, set[str]] = {}
    rows: list[str] = []
    order = TopologicalSorter(needs)
    order.prepare()
    while ready := order.get_ready():
        before |= {step: needs[step].union(*(before[other] for other in needs[step])) for step in ready}
        boxes = []
        for step in (each for each in records if each in ready):
            direct = sorted(each for each in needs[step] if not any(each in before[other] for other in needs[step]))
            after = f"<br>after {escape(', '.join(direct))}" if direct else ""
            boxes.append(f"<td><strong>{escape(step)}</strong><br>{records[step]['seconds']:.1f} s{after}</td>")
        rows.append(f"<table><tr>{''.join(boxes)}</tr></table>")
        order.done(*ready)
    name = escape(f"Steps of {manifest['application']}, each below those that it reads from")
    return f'<div class="wide" role="group" aria-label="{name}">{"".join(rows)}</div>'
