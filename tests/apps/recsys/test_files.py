"""The source `files` of the step `fetch`: columns by their declared roles, times of any unit, and what is refused."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.recsys_logs import column, records, run_fetch, table, write
from whitewater.errors import ConfigError, InputError
from whitewater_apps.recsys.config import Fetch

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
    with pytest.raises(InputError, match="'9021005' does not match the format %y%m%d%H; it would fit as %y%m%d%H"):
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


@pytest.mark.parametrize("year", [1600, 2500, 9999])
def test_a_year_that_nanoseconds_cannot_tell_is_refused_in_text_too(folder: Path, year: int) -> None:
    write(folder / "a.csv", f"at,clicked\n2019-12-31 23:59:59.999999999,1\n{year}-01-01 00:00:00,1\n")
    with pytest.raises(InputError, match=rf"a\.csv, line 3: column at: a time is {year}-01-01 00:00:00, outside of"):
        run_fetch("files", files=["a.csv"], columns=clicked_at(None))


@pytest.mark.parametrize("delimiter", list("^]\\-|;\t"))
def test_any_delimiter_separates_fields_in_quotes(folder: Path, delimiter: str) -> None:
    lines = [["user", "clicked"], [f'"x{delimiter}y"', "1"], ['"z', "1"], *[["z", "0"]] * 200]
    write(folder / "a.csv", "".join(f"{delimiter.join(line)}\n" for line in lines))
    log = run_fetch(
        "files", files=["a.csv"], columns=declared(user="categorical", clicked="label"), delimiter=delimiter
    )
    assert column(log, "user") == [f"x{delimiter}y", *["z"] * 200]


def test_text_in_utf_16_is_told(folder: Path) -> None:
    Path("a.csv").write_bytes("user,clicked\nx,1\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"a\.csv is text in UTF-16\. Save it as UTF-8\."):
        run_fetch("files", files=["a.csv"], columns=declared(user="categorical", clicked="label"))


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
    with pytest.raises(InputError, match=r"a\.parquet: no rows"):
        run_fetch("files", files=["a.parquet"], columns=declared(clicked="label"))
    pq.write_table(rows, "b.parquet")
    log = run_fetch("files", files=["a.parquet", "b.parquet"], columns=declared(clicked="label"))
    assert [(file.day, file.rows) for file in log.files] == [(1, 1)]


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
        ({"files": {"delimiter": "¦"}}, "not ASCII"),
        ({"files": {"columns": clicked_at("seconds")}}, "unit of 'at' is 'seconds', which is not one of s, ms, us, ns"),
        ({"files": {"columns": clicked_at("%H%M")}}, "nor a format of a time with its year"),
        ({"files": {"columns": clicked_at("%Y%q")}}, "nor a format of a time with its year"),
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
