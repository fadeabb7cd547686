"""The step `fetch` of the recsys application: every source leaves one log, and nothing is lost in silence.

What Python's own `csv` and DuckDB read of the same files is compared with the log.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracle import sql
from tests.real_data import needs_real_data, real_data
from whitewater.engines import resolve
from whitewater.errors import ConfigError, InputError
from whitewater.features.log_folder import Log, open_log
from whitewater.io import text_files
from whitewater.step import Run, execute
from whitewater_apps.recsys.config import Fetch
from whitewater_apps.recsys.sources import spans, text
from whitewater_apps.recsys.steps.fetch import fetch

NAMES = ["label", *(f"I{number}" for number in range(1, 14)), *(f"C{number}" for number in range(1, 27))]
Row = dict[str, Any]


def run_fetch(source: str, /, simulated: Path | None = None, *, threads: int = 2, **given: Any) -> Log:
    """Run the step, with settings of its section and of that of the source; return the log."""
    own = {name: given.pop(name) for name in ("row_group_rows",) if name in given}
    run = Run("recsys", "fetch", resolve("cpu"), Fetch.model_validate({"source": source, source: given, **own}
              if source != "generated" else {"source": source, **own}), threads)  # fmt: skip
    place = Path("data/recsys")
    outputs = {"events": place / "events", "inputs": place / "inputs.json"}
    inputs: dict[str, Path | dict[str, Path]] = {"simulated": {"simulated": simulated} if simulated else {}}
    execute(run, fetch, inputs=inputs, outputs=outputs, record=Path("logs/fetch.json"))
    return open_log(outputs["events"])


def table(log: Log) -> pa.Table:
    return pa.concat_tables([pq.read_table(log.path / file.name) for file in log.files])


def records(log: Log) -> list[Row]:
    found: list[Row] = table(log).to_pylist()
    return found


def column(log: Log, name: str) -> list[Any]:
    found: list[Any] = table(log).column(name).to_pylist()
    return found


def write(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# ---- Criteo's days


def clicks(rows: int, *, seed: int = 0) -> list[list[str]]:
    """Lines of Criteo's, as fields: nulls, negative numbers, texts."""
    lines = []
    for row in range(seed, seed + rows):
        numbers = ["" if (row + each) % 4 == 0 else str((row * 31 + each) % 97 - 3) for each in range(13)]
        texts = ["" if (row + each) % 5 == 0 else f"{(row * each * 2654435761) % 2**32:08x}" for each in range(26)]
        lines.append([str(row % 2), *numbers, *texts])
    return lines


def lines_of(fields: Sequence[Sequence[str]], delimiter: str = "\t") -> str:
    return "".join(delimiter.join(line) + "\n" for line in fields)


def as_row(fields: Sequence[str]) -> Row:
    """What a line means, by Python's own conversions."""
    values = dict(zip(NAMES, fields, strict=True))
    return {
        name: (None if not value else value if name[0] == "C" else int(float(value))) for name, value in values.items()
    }


def test_days_of_criteo_are_a_log_whose_time_is_the_line(folder: Path) -> None:
    days = [clicks(7), clicks(5, seed=100), clicks(3, seed=200)]
    write(folder / "in/day_0", lines_of(days[0]))
    write(folder / "in/day_2.gz", gzip.compress(lines_of(days[1]).encode()))
    write(folder / "in/day_10", lines_of(days[2])[:-1].replace("\n", "\r\n"))
    log = run_fetch("criteo", files=["in/day_*"])
    expected = [
        {"row_id": place, "day": day, "time": place, **as_row(fields)}
        for place, (day, fields) in enumerate((day, fields) for day, lines in enumerate(days) for fields in lines)
    ]
    assert records(log) == expected
    assert (log.source, log.time.unit, log.rows) == ("criteo", "position", 15)
    assert [(file.rows, file.day) for file in log.files] == [(7, 0), (5, 1), (3, 2)]
    assert log.counts == {"lines": 15, "empty": 0, "malformed": 0}
    assert {log.columns[name] for name in NAMES[1:14]} == {"continuous"}
    assert {log.columns[name] for name in NAMES[14:]} == {"categorical"}
    inputs = json.loads(Path("data/recsys/inputs.json").read_text())
    assert (inputs["source"], inputs["rows"]) == ("criteo", 15)
    assert [each["path"] for each in inputs["files"]] == ["in/day_0", "in/day_2.gz", "in/day_10"]
    content = Path("in/day_2.gz").read_bytes()
    assert inputs["files"][1] == {"path": "in/day_2.gz", "origin": "in/day_2.gz", "bytes": len(content),
                                  "sha256": hashlib.sha256(content).hexdigest()}  # fmt: skip


def test_files_keep_the_order_in_which_they_are_named(folder: Path) -> None:
    for number in range(3):
        write(folder / f"{number}.tsv", lines_of(clicks(1, seed=number)))
    log = run_fetch("criteo", files=["2.tsv", "0.tsv", "./2.tsv", "1.tsv"])
    assert column(log, "label") == [0, 0, 1]
    assert column(log, "I1") == [as_row(clicks(1, seed=number)[0])["I1"] for number in (2, 0, 1)]


@needs_real_data
def test_the_published_sample_is_read_as_duckdb_reads_it(folder: Path) -> None:
    sample = real_data("recsys", "criteo_sample.txt")
    log = run_fetch("criteo", files=[str(sample)], delimiter="comma")
    integers = ", ".join(f"CAST(I{number} AS BIGINT) AS I{number}" for number in range(1, 14))
    texts = ", ".join(f"NULLIF(C{number}, '') AS C{number}" for number in range(1, 27))
    kinds = {name: "DOUBLE" if name[0] in "lI" else "VARCHAR" for name in NAMES}
    found = sql(f"SELECT CAST(label AS TINYINT) AS label, {integers}, {texts} FROM read_csv('{sample}', types={kinds})")
    expected = pa.Table.from_pandas(found, schema=table(log).select(NAMES).schema, preserve_index=False)
    assert table(log).select(NAMES).equals(expected)
    assert log.rows == 200
    assert sum(value < 0 for value in column(log, "I2")) == 15


def test_a_header_tells_the_order_of_the_columns(folder: Path) -> None:
    order = NAMES[::-1]
    fields = [dict(zip(NAMES, line, strict=True)) for line in clicks(4)]
    text = lines_of([order, *([line[name] for name in order] for line in fields)], ",")
    write(folder / "a.csv", b"\xef\xbb\xbf" + text.encode())
    log = run_fetch("criteo", files=["a.csv"], delimiter="comma")
    assert [{name: row[name] for name in NAMES} for row in records(log)] == [as_row(line) for line in clicks(4)]
    write(folder / "a.csv", text.replace("C7", "C77"))
    with pytest.raises(InputError, match="its header has not each of C7 once"):
        run_fetch("criteo", files=["a.csv"], delimiter="comma")


BAD_LINES = {
    "few fields": "0\t1\t2",
    "many fields": "\t".join(clicks(1)[0]) + "\tx",
    "text for a number": "\t".join(["0", "many", *clicks(1)[0][2:]]),
    "a fraction": "\t".join(["0", "1.5", *clicks(1)[0][2:]]),
    "text for a label": "\t".join(["label", *clicks(1)[0][1:]]),
    "carriage return": "\t".join(clicks(1)[0])[:-3] + "\rab",
    "two lines in one": "\t".join(clicks(1)[0]) + "\r" + "\t".join(clicks(1)[0]),
    "not UTF-8": "\t".join([*clicks(1)[0][:-1], "\udcff"]),
    "a number of 20 digits": "\t".join(["0", "12345678901234567890", *clicks(1)[0][2:]]),
}


@pytest.mark.parametrize("bad", list(BAD_LINES.values()), ids=list(BAD_LINES))
def test_a_malformed_line_is_left_out_counted_and_told(
    folder: Path, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    lines = lines_of(clicks(250)).splitlines()
    lines[140:140] = [bad]
    write(folder / "day", ("\n".join(lines) + "\n").encode(errors="surrogateescape"))
    with caplog.at_level(logging.WARNING):
        log = run_fetch("criteo", files=["day"])
    assert log.counts == {"lines": 251, "empty": 0, "malformed": 1}
    assert column(log, "row_id") == [*range(140), *range(141, 251)]
    assert [{name: row[name] for name in NAMES} for row in records(log)] == [as_row(line) for line in clicks(250)]
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("day: 1 of 251 lines are malformed: line 141: ")
    assert json.loads(Path("logs/fetch.json").read_text())["facts"]["counts"]["malformed"] == 1


def test_empty_lines_are_counted_and_are_not_rows(folder: Path) -> None:
    lines = lines_of(clicks(6)).splitlines()
    write(folder / "day", "\n".join(["", *lines[:3], "", "\r", *lines[3:], "", ""]))
    log = run_fetch("criteo", files=["day"])
    assert log.counts == {"lines": 10, "empty": 4, "malformed": 0}
    assert column(log, "row_id") == [1, 2, 3, 6, 7, 8]


def test_a_file_with_too_many_malformed_lines_is_refused(folder: Path) -> None:
    lines = lines_of(clicks(200)).splitlines()
    write(folder / "day", "\n".join([*lines[:198], "x", "y"]))
    assert run_fetch("criteo", files=["day"]).counts["malformed"] == 2
    write(folder / "day", "\n".join([*lines[:197], "x", "y", "z"]))
    with pytest.raises(InputError, match=r"day: 3 of 200 lines are malformed: line 198: .*More than 1% are too many"):
        run_fetch("criteo", files=["day"])


def test_a_file_of_another_format_is_refused_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MALFORMED_OF_BLOCK", 10)
    write(folder / "day", lines_of([line[1:] for line in clicks(1000)]))  # Kaggle's test set: it has no labels
    with pytest.raises(InputError, match=r"day: 1,000 of 1,000 lines are malformed: line 1: Expected 40 columns, got"):
        run_fetch("criteo", files=["day"])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    bad=st.sets(st.integers(0, 199), max_size=2),
    empty=st.sets(st.integers(0, 199), max_size=3),
    floats=st.sets(st.integers(0, 199), max_size=5),
    sizes=st.tuples(st.integers(1000, 9000), st.integers(3000, 60_000)),
)
def test_the_log_does_not_depend_on_blocks_and_spans(
    folder: Path, bad: set[int], empty: set[int], floats: set[int], sizes: tuple[int, int]
) -> None:
    lines = []
    for place, fields in enumerate(clicks(200)):
        written = [f"{each}.0" if place in floats and each and column < 14 else each
                   for column, each in enumerate(fields)]  # fmt: skip
        lines.append("" if place in empty else "x" if place in bad else "\t".join(written))
    write(folder / "day_0", "\n".join(lines) + "\n")
    write(folder / "day_1.gz", gzip.compress(lines_of(clicks(30)).encode()))
    rows = [
        {"row_id": place, "day": 0, "time": place, **as_row(fields)}
        for place, fields in enumerate(clicks(200))
        if place not in bad | empty
    ]
    rows += [{"row_id": 200 + place, "day": 1, "time": 200 + place, **as_row(fields)}
             for place, fields in enumerate(clicks(30))]  # fmt: skip
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(text_files, "BLOCK_BYTES", sizes[0])
        patched.setattr(text, "SPAN_BYTES", sizes[1])
        assert records(run_fetch("criteo", files=["day_*"])) == rows


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-6], "a gzip file that is cut off"),
        (lambda data: data[: len(data) // 2], "a gzip file that is cut off"),
        (lambda data: data[:-8] + bytes(8), "a damaged gzip file .*CRC check failed"),
        (lambda data: data[:60] + b"\xff" * 8 + data[68:], "a damaged gzip file"),
    ],
)
def test_a_torn_gzip_file_is_an_error(folder: Path, damage: Callable[[bytes], bytes], message: str) -> None:
    write(folder / "day_0.gz", damage(gzip.compress(lines_of(clicks(500)).encode())))
    write(folder / "day_1.gz", gzip.compress(lines_of(clicks(5)).encode()))
    with pytest.raises(InputError, match=f"day_0.gz is {message}"):
        run_fetch("criteo", files=["day_*"])
    assert not Path("data/recsys/events").exists()


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_an_error(folder: Path, content: bytes) -> None:
    write(folder / "day_0", lines_of(clicks(5)))
    write(folder / "day_1", content)
    with pytest.raises(InputError, match="day_1 is empty"):
        run_fetch("criteo", files=["day_*"])


def test_a_line_without_end_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(text_files, "LONGEST_LINE", 5000)
    write(folder / "day_0", lines_of(clicks(5)) + "x" * 10_000)
    with pytest.raises(InputError, match="day_0: a line is longer than 5,000 bytes"):
        run_fetch("criteo", files=["day_0"])


# ---- the generated log


def simulated_day(path: Path, first: int, rows: int) -> pa.Table:
    numbers = range(first, first + rows)
    found = pa.table(
        {
            "time": pa.array([1_400_000_000 + 100 * number for number in numbers], pa.int64()),
            "label": pa.array([number % 3 == 0 for number in numbers]).cast(pa.int8()),
            "I1": pa.array([None if number % 4 == 0 else number for number in numbers], pa.int32()),
            "I2": pa.array([number / 7 for number in numbers], pa.float64()),
            "C1": pa.array(
                [None if number % 5 == 0 else ("", "é", 'a"b')[number % 3] for number in numbers], pa.string()
            ),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(found, path, row_group_size=4)
    return found


def test_simulated_days_are_a_log_in_seconds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "SPAN_ROWS", 8)
    days = [simulated_day(folder / f"simulated/day-{day:02d}.parquet", 20 * day, rows)
            for day, rows in enumerate((20, 0, 13))]  # fmt: skip
    log = run_fetch("generated", folder / "simulated")
    found = table(log)
    assert found.select(days[0].column_names).equals(pa.concat_tables(days))
    assert found.column("row_id").to_pylist() == list(range(33))
    assert found.column("day").to_pylist() == [0] * 20 + [2] * 13
    assert (log.source, log.time.unit) == ("generated", "seconds")
    assert log.columns == {"row_id": "key", "day": "key", "time": "time", "label": "label", "I1": "continuous",
                           "I2": "continuous", "C1": "categorical"}  # fmt: skip
    assert [file.rows for file in log.files] == [8, 8, 4, 8, 5]


def test_the_generated_log_needs_the_simulation(folder: Path) -> None:
    with pytest.raises(InputError, match="Run the step simulate before"):
        run_fetch("generated")


# ---- files whose columns are declared

DECLARED = [
    {"name": "clicked", "role": "label"},
    {"name": "at", "role": "time", "unit": "s"},
    {"name": "price", "role": "continuous"},
    {"name": "user", "role": "categorical"},
]


def declared(**roles: str) -> list[dict[str, str]]:
    return [{"name": name, "role": role} for name, role in roles.items()]


def clicked_at(unit: str | None) -> list[dict[str, str | None]]:
    return [{"name": "clicked", "role": "label"}, {"name": "at", "role": "time", "unit": unit}]


def test_text_is_read_by_the_declared_roles(folder: Path) -> None:
    write(
        folder / "a.csv",
        'user,ignored,at,price,clicked\n"x, ""y""",q,1500000000,1.5,1\n007,q,1500000001,,0\n,,1500000002,nan,1.0\n',
    )
    log = run_fetch("files", files=["a.csv"], columns=DECLARED)
    found = records(log)
    assert [row["user"] for row in found] == ['x, "y"', "007", None]
    assert [row["label"] for row in found] == [1, 0, 1]
    assert [row["time"] for row in found] == [1_500_000_000, 1_500_000_001, 1_500_000_002]
    assert [str(row["price"]) for row in found] == ["1.5", "None", "nan"]
    assert (log.time.unit, [row["day"] for row in found]) == ("seconds", [0, 0, 0])
    assert list(log.columns) == ["row_id", "day", "time", "label", "price", "user"]


EVENING = 1_577_836_799  # the last second of 2019
TIMES = {
    "s": [f"{EVENING + seconds}" for seconds in (0, 86_400, 86_401, 259_201)],
    "s, some with a fraction": [f"{EVENING + seconds}" for seconds in (0, 86_400.9, 86_401, 259_201)],
    "ms": [f"{EVENING}999", f"{EVENING + 86_400}000", f"{EVENING + 86_401}000", f"{EVENING + 259_201}001"],
    "ns": [f"{EVENING + seconds}999999999" for seconds in (0, 86_400, 86_401, 259_201)],
    "%Y%m%d%H%M%S": ["20191231235959", "20200101235959", "20200102000000", "20200104000000"],
    "%d.%m.%Y %H:%M:%S.%f": [
        "31.12.2019 23:59:59.5", "01.01.2020 23:59:59.9", "2.1.2020 0:00:00.0", "04.01.2020 00:00:00.0",
    ],
    "%Y-%m-%d %H:%M:%S %z": [
        "2019-12-31 23:59:59 +0000", "2020-01-01 23:59:59 Z", "2020-01-02 05:30:00 +05:30", "2020-01-03 19:00:00 -0500",
    ],
    "UTC": ["2019-12-31T23:59:59Z", "2020-01-01T23:59:59.9Z", "2020-01-02T01:00:00+01:00", "2020-01-03T19:00:00-05"],
    "without a zone": ["2019-12-31 23:59:59", "2020-01-01 23:59:59.999999999", "2020-01-02 00:00", "2020-01-04"],
}  # fmt: skip


@pytest.mark.parametrize("unit", TIMES)
def test_a_day_is_one_of_utc_whatever_times_are_written_as(folder: Path, unit: str) -> None:
    write(folder / "a.csv", "at,clicked\n\n" + "".join(f"{time},1\n" for time in TIMES[unit]))
    declared_unit = None if unit in ("UTC", "without a zone") else unit.partition(",")[0]
    log = run_fetch("files", files=["a.csv"], columns=clicked_at(declared_unit))
    assert column(log, "time") == [EVENING, EVENING + 86_400, EVENING + 86_401, EVENING + 259_201]
    assert column(log, "day") == [0, 1, 2, 4]
    assert [file.day for file in log.files] == [0, 1, 2, 4]


@pytest.mark.parametrize(
    ("type_", "unit"),
    [
        (pa.timestamp("ms"), None), (pa.timestamp("ns", "America/New_York"), None), (pa.date32(), None),
        (pa.date64(), None), (pa.int32(), "s"), (pa.uint64(), "s"), (pa.float64(), "s"), (pa.string(), "%Y-%m-%d"),
        (pa.dictionary(pa.int32(), pa.string()), "%Y-%m-%d"),
    ],
)  # fmt: skip
def test_times_of_parquet_are_seconds(folder: Path, type_: pa.DataType, unit: str | None) -> None:
    seconds = pa.array([EVENING + 1, EVENING + 1 + 86_400 * 2], pa.int64())
    found = seconds.cast(type_) if unit == "s" else seconds.cast(pa.timestamp("s")).cast(pa.date32() if unit else type_)
    pq.write_table(pa.table({"at": found.cast(pa.string()).cast(type_) if unit not in (None, "s") else found,
                             "clicked": [True, False]}), "a.parquet")  # fmt: skip
    log = run_fetch("files", files=["a.parquet"], columns=clicked_at(unit))
    assert (column(log, "time"), column(log, "label")) == (seconds.to_pylist(), [1, 0])


def test_digits_of_a_format_that_begins_with_0_are_as_the_integer_that_lost_it(folder: Path) -> None:
    """09021005 is the hour 5 of 2009-02-10, and not, with one digit for the last, some hour of 1990-21."""
    pq.write_table(pa.table({"at": [9_021_005], "clicked": [1]}), "a.parquet")
    write(folder / "b.csv", "at,clicked\n09021005,1\n")
    for name in ("a.parquet", "b.csv"):
        assert column(run_fetch("files", files=[name], columns=clicked_at("%y%m%d%H")), "time") == [1_234_242_000]
    write(folder / "b.csv", "at,clicked\n9021005,1\n")
    with pytest.raises(InputError, match="the time '9021005' is not of the form %y%m%d%H; it would fit as %y%m%d%H"):
        run_fetch("files", files=["b.csv"], columns=clicked_at("%y%m%d%H"))


@pytest.mark.parametrize(
    ("time", "unit", "message"),
    [
        (5, "ns", "is 5, which as ns is 1970-.*no unit would fit"),
        (float("inf"), "s", "is inf, which as s"),
    ],
)
def test_numbers_that_are_times_of_no_unit_are_refused(folder: Path, time: float, unit: str, message: str) -> None:
    write(folder / "a.csv", f"at,clicked\n{time},1\n")
    pq.write_table(pa.table({"at": [time], "clicked": [1]}), "b.parquet")
    for name, place in (("a.csv", "line 2"), ("b.parquet", "row 1")):
        with pytest.raises(InputError, match=f"{name}, {place}: column at: a time .*{message}"):
            run_fetch("files", files=[name], columns=clicked_at(unit))


def test_a_timestamp_outside_of_1980_to_2100_is_refused(folder: Path) -> None:
    pq.write_table(pa.table({"at": pa.array([EVENING, 0], pa.timestamp("s")), "clicked": [1, 1]}), "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet, row 2: column at: a time is 1970-01-01 00:00:00, outside of"):
        run_fetch("files", files=["a.parquet"], columns=clicked_at(None))
    with pytest.raises(InputError, match=r"is timestamp.*, but time with the unit s is declared, which needs timest"):
        run_fetch("files", files=["a.parquet"], columns=clicked_at("s"))


def test_rows_may_be_in_any_order_within_a_day_but_days_ascend(folder: Path) -> None:
    columns, days = clicked_at("s"), [EVENING + 1, EVENING + 86_401]
    write(folder / "a.csv", f"at,clicked\n{days[0] + 500},1\n{days[0] + 3},0\n{days[1]},1\n")
    write(folder / "b.csv", f"at,clicked\n{days[1] + 3600},1\n{days[1] + 100},0\n")
    assert column(run_fetch("files", files=["a.csv", "b.csv"], columns=columns), "day") == [0, 0, 1, 1, 1]
    with pytest.raises(InputError, match=r"a\.csv: a row is of an earlier day than the row before it"):
        run_fetch("files", files=["b.csv", "a.csv"], columns=columns)
    write(folder / "c.csv", f"at,clicked\n{days[1]},1\n{days[0]},0\n")
    with pytest.raises(InputError, match=r"c\.csv: a row is of an earlier day"):
        run_fetch("files", files=["c.csv"], columns=columns)


def test_without_times_a_file_is_a_day_and_time_is_the_row(folder: Path) -> None:
    write(folder / "a.csv", "clicked\n1\n0\n")
    pq.write_table(pa.table({"clicked": pa.array([1.0, 0.0])}), "b.parquet")
    log = run_fetch("files", files=["a.csv", "b.parquet"], columns=declared(clicked="label"))
    assert (column(log, "time"), column(log, "day")) == ([0, 1, 2, 3], [0, 0, 1, 1])
    assert log.time.unit == "position"


def test_labels_may_be_numbers_of_which_some_are_positive(folder: Path) -> None:
    columns = declared(stars="label")
    write(folder / "a.csv", "stars\n3.5\n4\n5\n-1\n")
    assert column(run_fetch("files", files=["a.csv"], columns=columns, positive=4), "label") == [0, 1, 1, 0]
    pq.write_table(pa.table({"stars": [1.0, 2.0]}), "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet, row 2: column stars: a label is 2, neither 0 nor 1"):
        run_fetch("files", files=["a.parquet"], columns=columns)
    for null in (None, float("nan")):
        pq.write_table(pa.table({"stars": pa.array([1.0, null], from_pandas=False)}), "a.parquet")
        with pytest.raises(InputError, match="column stars: a label is null"):
            run_fetch("files", files=["a.parquet"], columns=columns, positive=1)


def test_parquet_is_read_as_it_is(folder: Path) -> None:
    rows = pa.table(
        {
            "clicked": pa.array([1, 0, 1], pa.int64()),
            "small": pa.array([1, None, -3], pa.int16()),
            "large": pa.array([2**40, None, 5], pa.int64()),
            "real": pa.array([0.5, None, 3.0], pa.float32()),
            "flag": pa.array([True, False, None]),
            "text": pa.array(["a", None, "a"]).dictionary_encode(),
            "code": pa.array([7, None, 9], pa.uint16()),
            "texts": pa.array([["x", "y"], None, []], pa.large_list(pa.string())),
            "codes": pa.array([[1], [], [2, 3]], pa.list_(pa.int32())),
            "id": pa.array(["k1", "k2", "k3"], pa.large_string()),
            "null": pa.nulls(3),
            "nulls": pa.nulls(3),
        }
    )
    pq.write_table(rows, "a.parquet")
    roles = {"small": "continuous", "large": "continuous", "real": "continuous", "flag": "continuous",
             "text": "categorical", "code": "categorical", "texts": "list", "codes": "list", "id": "key",
             "null": "continuous", "nulls": "categorical"}  # fmt: skip
    log = run_fetch("files", files=["a.parquet"], columns=declared(clicked="label", **roles))
    found = table(log)
    assert {name: str(log.types[name]) for name in roles} == {
        "small": "int32", "large": "int64", "real": "double", "flag": "int32", "text": "string", "code": "int64",
        "texts": "list<item: string>", "codes": "list<item: int64>", "id": "string", "null": "double",
        "nulls": "string",
    }  # fmt: skip
    expected = {name: rows.column(name).to_pylist() for name in roles} | {"flag": [1, 0, None]}
    assert {name: found.column(name).to_pylist() for name in roles} == expected


def test_a_column_that_is_null_everywhere_in_a_file_agrees_with_any_type(folder: Path) -> None:
    pq.write_table(pa.table({"clicked": [1], "user": pa.nulls(1)}), "a.parquet")
    pq.write_table(pa.table({"clicked": [0], "user": pa.array([5], pa.int64())}), "b.parquet")
    columns = declared(clicked="label", user="categorical")
    assert column(run_fetch("files", files=["a.parquet", "b.parquet"], columns=columns), "user") == [None, 5]


def test_types_that_differ_between_files_are_told(folder: Path) -> None:
    pq.write_table(pa.table({"clicked": [1], "user": ["a"]}), "a.parquet")
    pq.write_table(pa.table({"clicked": [0], "user": pa.array([5], pa.int64())}), "b.parquet")
    columns = declared(clicked="label", user="categorical")
    with pytest.raises(InputError, match=r"b\.parquet: the column 'user' is int64, but in a\.parquet it is string"):
        run_fetch("files", files=["a.parquet", "b.parquet"], columns=columns)


@pytest.mark.parametrize(
    ("role", "values", "message"),
    [
        ("continuous", ["a"], "is string, but continuous is declared, which needs numbers or booleans"),
        ("categorical", [1.5], "is double, but categorical is declared, which needs text or integers"),
        ("list", ["a"], "is string, but list is declared, which needs lists"),
        ("list", [[1.5]], "is list<.*double.*>, but list is declared"),
        ("time", ["2020-01-01"], "is string, but time is declared, which needs timestamps or dates without a unit, "),
        ("time", [True], "is bool, but time is declared"),
        ("key", [b"a"], "is binary, but key is declared"),
    ],
)
def test_a_type_that_does_not_suit_the_role_is_told(folder: Path, role: str, values: list[Any], message: str) -> None:
    pq.write_table(pa.table({"clicked": [1], "x": values}), "a.parquet")
    with pytest.raises(InputError, match=f"a.parquet: the column 'x' {message}"):
        run_fetch("files", files=["a.parquet"], columns=declared(clicked="label", x=role))


def test_a_missing_or_repeated_column_is_told(folder: Path) -> None:
    write(folder / "a.csv", "clicked,user,user\n1,a,b\n")
    with pytest.raises(InputError, match=r"a\.csv has 2 columns named 'user'; its columns are clicked, user, user"):
        run_fetch("files", files=["a.csv"], columns=declared(clicked="label", user="categorical"))
    pq.write_table(pa.table({"clicked": [1]}), "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet has no column 'user'; its columns are clicked\."):
        run_fetch("files", files=["b.parquet"], columns=declared(clicked="label", user="categorical"))


def test_a_torn_parquet_file_is_refused(folder: Path) -> None:
    pq.write_table(pa.table({"clicked": [1, 1]}), "a.parquet")
    write(folder / "a.parquet", Path("a.parquet").read_bytes()[:-9])
    with pytest.raises(InputError, match=r"a\.parquet is not a whole Parquet file"):
        run_fetch("files", files=["a.parquet"], columns=declared(clicked="label"))


def test_parquet_without_rows_is_an_error_unless_another_file_has_some(folder: Path) -> None:
    rows = pa.table({"clicked": pa.array([1], pa.int64())})
    pq.ParquetWriter("a.parquet", rows.schema).close()
    with pytest.raises(InputError, match="The files have no rows"):
        run_fetch("files", files=["a.parquet"], columns=declared(clicked="label"))
    pq.write_table(rows, "b.parquet")
    log = run_fetch("files", files=["a.parquet", "b.parquet"], columns=declared(clicked="label"))
    assert [(file.day, file.rows) for file in log.files] == [(1, 1)]


def test_files_are_downloaded(folder: Path, served: tuple[str, Path]) -> None:
    address, root = served
    write(root / "day_0.gz", gzip.compress(lines_of(clicks(5)).encode()))
    log = run_fetch("criteo", files=[f"{address}/day_0.gz?token=secret"])
    assert log.rows == 5
    (read,) = json.loads(Path("data/recsys/inputs.json").read_text())["files"]
    assert read["origin"] == f"{address}/day_0.gz?token=..."
    assert Path(read["path"]).parent == Path("data/recsys/downloads")


def test_malformed_lines_of_quoted_text_are_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines = [f'{number % 2},"u{number}, x"' for number in range(300)]
    lines[7] = '1,"a'
    lines[8] = 'b"'
    lines[200] = '0,"open'
    write(folder / "a.csv", "clicked,user\n" + "\n".join(lines))
    log = run_fetch("files", files=["a.csv"], columns=declared(clicked="label", user="categorical"))
    assert (log.rows, log.counts["malformed"]) == (297, 3)
    assert column(log, "user") == [f"u{number}, x" for number in range(300) if number not in (7, 8, 200)]
    assert "line 9: " in caplog.text
    assert "line 10: " in caplog.text
    assert "line 202: " in caplog.text


def test_a_list_in_text_is_a_fault_of_the_configuration(folder: Path) -> None:
    write(folder / "a.csv", "clicked,tags\n1,a\n")
    with pytest.raises(ConfigError, match=r"'tags' is a list, but a\.csv is text"):
        run_fetch("files", files=["a.csv"], columns=declared(clicked="label", tags="list"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"source": "criteo"}, "criteo.files is empty"),
        ({"source": "movielens"}, "movielens.path is empty"),
        ({"source": "files", "files": {"files": ["a.csv"]}}, "files.columns is empty"),
        ({"files": {"columns": declared(a="continuous")}}, "exactly one with the role label"),
        ({"files": {"columns": declared(a="label", b="time", c="time")}}, "at most one with the role time"),
        ({"files": {"columns": declared(a="label") * 2}}, "exactly one"),
        ({"files": {"columns": declared(a="label", day="categorical")}}, "which a log has itself"),
        ({"files": {"columns": declared(time="label")}}, "which a log has itself"),
        ({"files": {"delimiter": "¦"}}, "none of ASCII"),
        ({"files": {"columns": clicked_at("seconds")}}, "unit of 'at' is 'seconds', which is none of s, ms, us, ns"),
        ({"files": {"columns": clicked_at("%H%M")}}, "nor a format that tells a time with its year"),
        ({"files": {"columns": clicked_at("%Y%q")}}, "nor a format that tells a time with its year"),
        ({"files": {"columns": [{"name": "a", "role": "key", "unit": "s"}]}}, "its role is key: only a time has one"),
    ],
)
def test_settings_that_cannot_be_are_refused(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Fetch(**given)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(st.sampled_from("01"), st.text(st.characters(exclude_characters="\r\n\0", codec="utf-8"))),
        min_size=1,
        max_size=30,
    )
)
def test_text_is_read_as_pythons_csv_reads_it(folder: Path, rows: list[tuple[str, str]]) -> None:
    with (folder / "a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([("clicked", "user"), *rows])
    log = run_fetch("files", files=["a.csv"], columns=declared(clicked="label", user="categorical"))
    with (folder / "a.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert column(log, "user") == [row["user"] or None for row in read]
    assert column(log, "label") == [int(row["clicked"]) for row in read]
