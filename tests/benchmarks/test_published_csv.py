"""R3, R4 and R5: all ways to read the CSV give one answer, which is that of Python's own csv module."""

import csv
import math
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from benchmarks.measure import differences
from benchmarks.published import csv_read, csv_sum, groupby_dask
from benchmarks.published.row import CallCase, Work, load
from benchmarks.published.yellow_csv import YellowCsv
from tests.benchmarks.published import answers, tiny_work
from whitewater.errors import InputError

FILES = {"csv_read": csv_read.FILES, "csv_sum": csv_sum.FILES, "groupby_dask": groupby_dask.FILES}
# 1,200 lines in each file.
LINES = 1200
SCALES = {name: LINES * len(files.months) / files.rows for name, files in FILES.items()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose neighbor holds the files."""
    folder = tmp_path_factory.mktemp("published") / "row"
    for name, files in FILES.items():
        files.make(tiny_work(folder, scale=SCALES[name]))
    return folder


@pytest.fixture
def ours(made: Path, tmp_path: Path) -> Path:
    """Return such a folder that a test may change."""
    shutil.copytree(made.parent, tmp_path / "copied")
    return tmp_path / "copied" / "row"


def work_of(row: str, folder: Path, **changed: Any) -> Work:
    return replace(tiny_work(folder, scale=SCALES[row]), **changed)


def answer_of(row: str, work: Work, variant: str = "whitewater") -> Any:
    case = load(row).cases[0]
    assert isinstance(case, CallCase)
    chosen = next(each for each in case.variants if each.name == variant)
    with chosen.prepare(work) as timed:
        return timed.answer(timed.call())


def lines_of(row: str, work: Work) -> list[dict[str, str]]:
    """Return the lines of the files by Python's own reader."""
    return [line for path in FILES[row].paths(work) for line in csv.DictReader(path.read_text().splitlines())]


def number(name: str, text: str) -> int:
    """Return a field in the unit in which it is added up."""
    if name in csv_read.TIMES:
        return int((datetime.fromisoformat(text) - datetime(2015, 1, 1)).total_seconds())
    if name == csv_read.FLAG:
        return int(text == "Y")
    return round(Decimal(text) * csv_read.FRACTIONS[name])


def expected_of_read(work: Work) -> JsonValue:
    lines = lines_of("csv_read", work)
    checksums: dict[str, JsonValue] = {"rows": len(lines)}
    for name in csv_read.KINDS:
        values = [(row % 997 + 1, number(name, line[name])) for row, line in enumerate(lines) if line[name]]
        checksums[name] = [len(values), sum(value for _, value in values), sum(w * value for w, value in values)]
    return checksums


def expected_of_sum(work: Work) -> JsonValue:
    return sum(int(line["passenger_count"] or 0) for line in lines_of("csv_sum", work))


def expected_of_groups(work: Work) -> JsonValue:
    miles: defaultdict[str, list[float]] = defaultdict(list)
    for line in lines_of("groupby_dask", work):
        if line["passenger_count"] and line["trip_distance"]:
            miles[line["passenger_count"]].append(float(line["trip_distance"]))
    return {passengers: math.fsum(values) / len(values) for passengers, values in miles.items()}


EXPECTED: Mapping[str, Callable[[Work], JsonValue]] = {
    "csv_read": expected_of_read,
    "csv_sum": expected_of_sum,
    "groupby_dask": expected_of_groups,
}


@pytest.mark.parametrize("row", FILES)
def test_every_variant_gives_the_answer_of_the_csv_module(row: str, made: Path) -> None:
    work = work_of(row, made)
    expected = EXPECTED[row](work)
    found = answers(row, "", work)
    assert {"whitewater", "as_published", "pyarrow", "duckdb"} <= set(found)
    for name, answer in found.items():
        assert list(differences(answer, expected, tolerance=1e-9)) == [], name


def test_files_are_the_same_whenever_they_are_made_and_have_empty_fields(made: Path, tmp_path: Path) -> None:
    files = YellowCsv(months=("2016-02",), rows=LINES)
    again = tiny_work(tmp_path / "row", scale=1.0)
    files.make(again)
    [path] = files.paths(again)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    of_sum = next(each for each in csv_sum.FILES.paths(work_of("csv_sum", made)) if "2016-02" in each.name)
    assert path.read_bytes() == of_sum.read_bytes()
    lines = lines_of("csv_sum", work_of("csv_sum", made))
    assert len(lines) == 6 * LINES == csv_sum.FILES.size(work_of("csv_sum", made)).rows
    for column in ("passenger_count", "trip_distance"):
        assert 0 < sum(line[column] == "" for line in lines) < len(lines) // 10


def change(row: str, folder: Path, changed: Callable[[list[str]], list[str]]) -> Work:
    """Change the lines, after the header, of the first file of a row."""
    work = work_of(row, folder)
    path = FILES[row].paths(work)[0]
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([header, *changed(lines)]))
    return work


def with_field(line: str, column: int, text: str) -> str:
    fields = line.split(",")
    fields[column] = text
    return ",".join(fields)


CHANGES: Mapping[str, Callable[[list[str]], list[str]]] = {
    "a line is lost": lambda lines: lines[:-1],
    "two lines have changed places": lambda lines: [lines[1], lines[0], *lines[2:]],
    "a time is a second later": lambda lines: [with_field(lines[0], 2, "2015-01-07 00:00:01"), *lines[1:]],
    "a flag is another one": lambda lines: [with_field(lines[0], 8, "Y"), *lines[1:]],
    "a field is empty": lambda lines: [with_field(lines[0], 10, ""), *lines[1:]],
    "a degree is 0.0001 more": lambda lines: [
        with_field(lines[0], 6, str(float(lines[0].split(",")[6]) + 1e-4)),
        *lines[1:],
    ],
}


@pytest.mark.parametrize("changed", CHANGES)
def test_the_answer_tells_when(changed: str, ours: Path) -> None:
    before = answer_of("csv_read", work_of("csv_read", ours))
    after = answer_of("csv_read", change("csv_read", ours, CHANGES[changed]))
    assert before != after == expected_of_read(work_of("csv_read", ours))


@pytest.mark.parametrize("row", FILES)
@pytest.mark.parametrize("count", [1, 2, 7])
def test_few_lines_and_many_threads(row: str, count: int, ours: Path) -> None:
    work = change(row, ours, lambda lines: lines[:count])
    found = answer_of(row, replace(work, threads=13))
    assert list(differences(found, EXPECTED[row](work), tolerance=1e-12)) == []


@pytest.mark.parametrize("row", FILES)
def test_a_torn_line_is_refused(row: str, ours: Path) -> None:
    work = change(row, ours, lambda lines: [*lines[:9], lines[9][:40], *lines[10:]])
    with pytest.raises(InputError, match="1 lines that cannot be parsed"):
        answer_of(row, work)


@pytest.mark.parametrize(("row", "text"), [("csv_sum", "-1"), ("csv_sum", "1.5"), ("groupby_dask", "-2")])
def test_a_count_that_is_none_is_refused(row: str, text: str, ours: Path) -> None:
    work = change(row, ours, lambda lines: [with_field(lines[0], 3, text), *lines[1:]])
    with pytest.raises(InputError, match="passenger_count that is negative or not whole"):
        answer_of(row, work)
