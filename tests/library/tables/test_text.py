"""Parsing comma-separated text: the oracles are Python's own numbers, times and csv module."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from whitewater.tables.casts import TYPES, Clock, Kind, Lines, cast_column, parse_lines

KINDS: dict[str, Kind] = {"when": "timestamp", "fare": "number", "riders": "number", "flag": "text"}


def parse(
    text: str | bytes | memoryview, kinds: Mapping[str, Kind], *, names: Sequence[str] = ()
) -> tuple[list[Any], Lines]:
    """Parse text and return its only column, empty text as null, and all that came of it."""
    data = text.encode() if isinstance(text, str) else text
    parsed = parse_lines(data, names or list(kinds), kinds, clock=Clock("UTC"))
    assert parsed.table.schema.types == [TYPES[kind] for kind in kinds.values()]
    return values_of(parsed, next(iter(kinds))), parsed


def values_of(parsed: Lines, name: str) -> list[Any]:
    """Return a column, empty text as null."""
    return [None if value == "" else value for value in parsed.table[name].to_pylist()]


def test_a_line_becomes_a_row_of_the_kinds_asked_for() -> None:
    text = b"2009-03-26 15:30:14,12.5,2,Y\n,,,\n2009-03-26,-0.01,300,\n"
    _, parsed = parse(text, KINDS)
    assert parsed.malformed == ()
    assert values_of(parsed, "when") == [datetime(2009, 3, 26, 15, 30, 14), None, datetime(2009, 3, 26)]
    assert values_of(parsed, "fare") == [12.5, None, -0.01]
    assert values_of(parsed, "riders") == [2, None, 300]
    assert values_of(parsed, "flag") == ["Y", None, None]


@settings(max_examples=300, deadline=None)
@given(st.floats(-9e307, 9e307), st.sampled_from(["{!r}", "{:.25f}", "{:.17e}", "{:+.3E}"]))
@example(0.1 + 0.2, "{!r}")
@example(-73.972487999999998, "{:.25f}")
@example(5e-324, "{!r}")
@example(9007199254740993.0, "{:.1f}")
def test_a_decimal_number_becomes_the_nearest_double(number: float, form: str) -> None:
    [found], _ = parse(form.format(number), {"x": "number"})
    assert found == float(form.format(number))
    assert math.copysign(1, found) == math.copysign(1, float(form.format(number)))


SIGNS, DIGITS = st.sampled_from(["", "+", "-"]), st.text("0123456789", max_size=22)
EXPONENTS = st.sampled_from(["", "e5", "E-7", "e+22", "e-30", "e", "e+"])


@settings(max_examples=300, deadline=None)
@given(st.tuples(SIGNS, DIGITS, st.sampled_from(["", "."]), DIGITS, EXPONENTS).map("".join))
def test_what_python_reads_as_a_number_is_read_as_the_same_and_nothing_else(text: str) -> None:
    values, parsed = parse(f"{text},", {"x": "number"}, names=["x", "y"])
    try:
        expected: list[float | None] = [float(text)]
    except ValueError:
        expected = [] if text else [None]
    assert values == expected
    assert parsed.malformed == (() if expected else (f"{text},",))


NO_NUMBERS = ["1e400", "1" + 310 * "0", "0x1", "1_000", "nan", "inf", "1e", "-", ".", "1.2.3", "--1", "1 2", "1\r2"]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_not_a_number_makes_its_line_malformed(text: str) -> None:
    values, parsed = parse(f"7\n{text}\n8\n", {"x": "number"})
    assert values == [7, 8]
    assert parsed.malformed == (text,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1), ("1.0", 1), (" 7 ", 7), ('"7"', 7), ("007", 7), ("1e2", 100), ("10e-1", 1), ("-0.00", 0), ("1.5", 1.5)],
)
def test_numbers_may_be_written_in_many_ways(text: str, expected: float) -> None:
    assert parse(text, {"x": "number"})[0] == [expected]


@given(st.integers(0, 2**53 - 1))
def test_long_whole_numbers_are_exact(number: int) -> None:
    assert parse(str(number), {"x": "number"})[0] == [number]


@settings(max_examples=200, deadline=None)
@given(
    st.datetimes(),
    st.sampled_from(["seconds", "milliseconds", "microseconds", "minutes", "hours"]),
    st.sampled_from(" T"),
)
def test_iso_8601_without_zone_is_read_as_by_python(moment: datetime, precision: str, separator: str) -> None:
    text = moment.isoformat(separator, precision)
    assert parse(text, {"x": "timestamp"})[0] == [datetime.fromisoformat(text)]
    assert parse(text[:10], {"x": "timestamp"})[0] == [datetime.fromisoformat(text[:10])]


def test_nanoseconds_are_floored() -> None:
    [found], _ = parse("2009-03-26 15:30:14.123456999", {"x": "timestamp"})
    assert found == datetime(2009, 3, 26, 15, 30, 14, 123456)
    ends = [-(2**63) + 1, -1_001, -1_000, -1, 999, 2**63 - 1]
    floored = cast_column(pa.array([*ends, None], pa.timestamp("ns")), "timestamp", clock=Clock("UTC"))
    assert floored.cast(pa.int64()).to_pylist() == [*(end // 1_000 for end in ends), None]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_time_with_a_changed_character_is_read_as_by_python_or_malformed(data: st.DataObject) -> None:
    text = "2012-02-29 23:59:59.999"
    place = data.draw(st.integers(0, len(text) - 1))
    spoilt = text[:place] + data.draw(st.sampled_from("0123456789-: T./xZ")) + text[place + 1 :]
    values, parsed = parse(spoilt, {"x": "timestamp"})
    expected = []
    if re.fullmatch(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d{2,3}", spoilt.rstrip(" ")):
        with suppress(ValueError):
            expected = [datetime.fromisoformat(spoilt.replace(" ", "T", 1).replace(" ", "0"))]
    assert values == expected
    assert parsed.malformed == (() if expected else (spoilt,))


@pytest.mark.parametrize(
    "text",
    [
        "2009-3-26",
        "2009-02-29",
        "26/03/2009",
        "2009-03-26 15:3",
        "2009-03-26 24:00:00",
        "2009-03-26 15:30:60",
        "2009-03-26 15:30:14.",
        "2009-03-26 15:30:14Z",
        "2009-03-26 15:30:14.1234567890",
    ],
)
def test_other_times_make_their_line_malformed(text: str) -> None:
    assert parse(text, {"x": "timestamp"})[1].malformed == (text,)


WORDS = st.text(st.characters(exclude_characters="\r\n\0", codec="utf-8"), max_size=5)


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=20),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
def test_texts_are_what_python_wrote(rows: list[tuple[str, ...]], quoting: int, line_end: str) -> None:
    written = io.StringIO()
    csv.writer(written, quoting=quoting, lineterminator=line_end).writerows(rows)  # type: ignore[arg-type]
    kinds: dict[str, Kind] = {"c": "text", "a": "text"}
    _, parsed = parse(written.getvalue(), kinds, names=["a", "b", "c"])
    assert parsed.malformed == ()
    assert values_of(parsed, "a") == [row[0] or None for row in rows]
    assert values_of(parsed, "c") == [row[2] or None for row in rows]


PIECES = [b",", b"\n", b"\r\n", b'"', b"1", b"-", b".", b"2009-03-26", b" ", b"\xff", b"x", b"\r"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_whatever_the_bytes_every_line_is_a_row_or_handed_back_as_it_stood(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    lines = [line.removesuffix(b"\r").decode("utf-8", "backslashreplace") for line in data.split(b"\n")]
    lines = [line for line in lines if line]
    _, parsed = parse(data, KINDS)
    handed_back = list(parsed.malformed)
    assert len(parsed.table) + len(handed_back) == len(lines)
    assert [line for line in lines if line in set(handed_back)] == handed_back
    assert all(line.count(",") >= len(KINDS) - 1 for line in lines if line not in set(handed_back))


def test_lines_with_another_number_of_fields_are_malformed() -> None:
    _, parsed = parse("1,2\n1\n1,2,3\n\n,\n1,2,\n", {"x": "number", "y": "number"})
    assert (len(parsed.table), parsed.malformed) == (2, ("1", "1,2,3", "1,2,"))


def test_a_torn_quote_costs_its_own_line_and_no_other() -> None:
    values, parsed = parse('"a",1\n"b,2\nc,3\n"d"x,4\n"e""f",5\n', {"word": "text"}, names=["word", "n"])
    assert values == ["a", "c", 'e"f']
    assert parsed.malformed == ('"b,2', '"d"x,4')


def test_all_lines_may_be_malformed_and_there_may_be_none() -> None:
    names = ["x", "y"]
    for text, malformed in (("a\nb\r\n", ("a", "b")), ("", ()), ("\n\r\n", ()), ("torn", ("torn",))):
        parsed = parse_lines(text.encode(), names, {"y": "text", "x": "number"}, clock=Clock("UTC"))
        assert (len(parsed.table), parsed.malformed) == (0, malformed)
        assert [values_of(parsed, name) for name in names] == [[], []]


def test_fields_that_are_not_asked_for_may_hold_anything() -> None:
    values, parsed = parse(
        'x,1.5,"a,b",\n,2.5,\xff,\n'.encode("latin-1"), {"fare": "number"}, names=["a", "fare", "b", ""]
    )
    assert (values, parsed.malformed) == ([1.5, 2.5], ())


def test_text_that_is_not_utf_8_is_malformed() -> None:
    text = b"Z\xfcrich\n" + "Zürich\n\ufffd\n".encode() + b"\xff,\nZ\xf6rich\n"
    values, parsed = parse(text, {"word": "text"})
    assert (values, parsed.malformed) == (["Zürich", "\ufffd"], (r"Z\xfcrich", r"\xff,", r"Z\xf6rich"))


@pytest.mark.parametrize(
    ("line", "words", "malformed"),
    [
        (b'"a,b",2', ["a,b"], ()),
        (b'"a,2', [], ('"a,2',)),
        (b"a\rb,2", [], ("a\rb,2",)),
        (b"a,2\r", ["a"], ()),
        (b"caf\xe9,2", [], (r"caf\xe9,2",)),
    ],
)
def test_what_stands_late_in_a_long_block_is_noticed(line: bytes, words: list[str], malformed: tuple[str, ...]) -> None:
    block = b"x,1\n" * 50_000 + line + b"\n"
    for data in (block, memoryview(block)):
        values, parsed = parse(data, {"word": "text"}, names=["word", "n"])
        assert (values[:50_000], values[50_000:], parsed.malformed) == (["x"] * 50_000, words, malformed)


def test_many_words_and_lines_stay_in_order() -> None:
    words = [f"word {n % 3_001}" for n in range(40_000)]
    values, parsed = parse("\n".join(words), {"word": "text"})
    assert values == words
    assert parsed.table["word"].chunk(0).dictionary.to_pylist() == words[:3_001]


def test_a_quoted_word_is_the_word() -> None:
    values, _ = parse('Y\n"Y"\n""\n"N"\nN\n', {"flag": "text"})
    assert values == ["Y", "Y", None, "N", "N"]


@pytest.mark.skipif("REAL_DATA" not in os.environ, reason="REAL_DATA does not name the folder of real data")
def test_published_files_of_every_era_are_parsed_as_by_csv() -> None:
    for path in sorted(Path(os.environ["REAL_DATA"], "taxi", "eras").glob("*.csv")):
        header, *lines = path.read_bytes().split(b"\n")
        rows = [row for row in csv.reader(line.decode().rstrip("\r") for line in lines) if row]
        names = [name.strip() for name in header.decode().split(",")]
        names += [f"pad {n}" for n in range(len(rows[0]) - len(names))]
        fare = next(name for name in names if name.lower() in {"fare_amt", "fare_amount"})
        pickup = next(name for name in names if name.lower().endswith("pickup_datetime"))
        _, parsed = parse(b"\n".join(lines), {fare: "number", pickup: "timestamp"}, names=names)
        assert parsed.malformed == ()
        assert values_of(parsed, fare) == [float(row[names.index(fare)]) for row in rows]
        assert values_of(parsed, pickup) == [
            datetime.fromisoformat(row[names.index(pickup)]).replace(tzinfo=None) for row in rows
        ]


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("%m/%d/%Y %I:%M:%S %p", "01/05/2015 11:02:03 PM", datetime(2015, 1, 5, 23, 2, 3)),
        ("%m/%d/%Y %I:%M:%S %p", " 1/5/2015 12:02:03 am", datetime(2015, 1, 5, 0, 2, 3)),
        ("%d.%m.%Y", "29.02.2016", datetime(2016, 2, 29)),
        ("%Y%m%dT%H%M%S.%f", "20190301T080000.000001", datetime(2019, 3, 1, 8, 0, 0, 1)),
        ("%Y-%m-%dT%H:%M:%S%z", "2019-07-01T08:00:00+0200", datetime(2019, 7, 1, 2)),
        ("%d.%m.%Y", "", None),
    ],
)
def test_times_of_a_declared_form_are_read(form: str, text: str, expected: datetime | None) -> None:
    kinds: dict[str, Kind] = {"when": "timestamp", "fare": "number"}
    parsed = parse_lines(f"{text},1\n".encode(), list(kinds), kinds, clock=Clock("America/New_York", form))
    assert parsed.table.schema.types == [TYPES[kind] for kind in kinds.values()]
    assert (parsed.table["when"].to_pylist(), parsed.malformed) == ([expected], ())


@pytest.mark.parametrize("text", ["31.02.2019", "2019-03-01", "1.3.2019 8", "1.3.", "x"])
def test_times_of_another_form_than_the_declared_one_are_malformed(text: str) -> None:
    kinds: dict[str, Kind] = {"when": "timestamp"}
    assert parse_lines(f"{text}\n1.3.2019\n".encode(), ["when"], kinds, clock=Clock("UTC", "%d.%m.%Y")).malformed == (
        text,
    )
