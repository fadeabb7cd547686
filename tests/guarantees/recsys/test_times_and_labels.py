"""What times and labels of the user's own files mean, in text as in Parquet, and which of them stop a run."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.guarantees.running import Clone, Ended

EVENTS = "data/recsys/events"
NOON = 1_591_012_800  # 2020-06-01 12:00 UTC


def fetch(clone: Clone, name: str, column: list[Any] | pa.Array, *, unit: str | None, labels: list[Any]) -> Ended:
    """Read a file of times and labels, which is written as CSV or Parquet, whichever its name says."""
    table = pa.table({"at": column, "clicked": labels})
    if name.endswith(".csv"):
        table.to_pandas().to_csv(clone / name, index=False)
    else:
        pq.write_table(table, clone / name)
    time = {"name": "at", "role": "time"} | ({"unit": unit} if unit else {})
    files = {"files": [name], "columns": [time, {"name": "clicked", "role": "label"}]}
    return clone.run("recsys", {"fetch": {"source": "files", "files": files}}, EVENTS)


@pytest.mark.parametrize(
    ("name", "times", "unit"),
    [
        ("log.csv", [NOON * 1000 + 999, (NOON + 3600) * 1000], "ms"),
        ("log.csv", [20060112, 20060113], "%y%m%d%H"),
        ("log.csv", ["2020-06-01T17:30:00+05:30", "2020-06-01T09:00:00-04:00"], None),
        ("log.parquet", [20200601120000, 20200601130000], "%Y%m%d%H%M%S"),
        ("log.parquet", pa.array([NOON, NOON + 3600], pa.timestamp("s", "America/New_York")), None),
    ],
    ids=["milliseconds", "hours", "offsets", "digits", "zone"],
)
def test_times_of_any_unit_are_seconds_of_utc(fresh: Clone, name: str, times: list[Any], unit: str | None) -> None:
    ended = fetch(fresh, name, times, unit=unit, labels=[0, 1])
    assert ended.status == 0, ended.terminal
    (path,) = (fresh / EVENTS).glob("*.parquet")
    assert pd.read_parquet(path)["time"].tolist() == [NOON, NOON + 3600]


@pytest.mark.parametrize(
    ("name", "time", "unit", "told"),
    [
        ("log.csv", NOON * 1000, "s", ["line 3", "at", f"{NOON * 1000}", "ms", "2020-06-01 12:00:00"]),
        ("log.csv", NOON, None, ["line 2", "at", "unit", " s (2020-06-01 12:00:00)"]),
        ("log.parquet", 14102100, "s", ["row 2", "at", "14102100", "%y%m%d%H (2014-10-21 00:00:00)"]),
        ("log.parquet", 20200601120000, "s", ["row 2", "at", "20200601120000", "%Y%m%d%H%M%S"]),
    ],
)
def test_numbers_that_are_no_times_stop_the_run_with_the_unit_that_would_fit(
    fresh: Clone, name: str, time: int, unit: str | None, told: list[str]
) -> None:
    ended = fetch(fresh, name, [NOON, time, *[NOON] * 300], unit=unit, labels=[0, 1] * 151)
    assert ended.message.startswith(f"InputError: {name}, ")
    assert [each for each in told if each not in ended.message] == []
    assert not (fresh / EVENTS).exists()


def test_a_day_of_seconds_is_refused_where_a_log_has_no_times_but_the_numbers_of_its_rows(fresh: Clone) -> None:
    (fresh / "log.csv").write_text("user,clicked\n" + "a,1\nb,0\n" * 50)
    columns = [{"name": "user", "role": "categorical"}, {"name": "clicked", "role": "label"}]
    source = {"source": "files", "files": {"files": ["log.csv"], "columns": columns}}
    groups = [{"name": "past", "columns": ["user"], "operators": ["PastCount"]}]
    ended = fresh.run("recsys", {"fetch": source, "fit": {"features": groups}}, "results/recsys/cpu/workflow")
    assert ended.message.startswith("ConfigError: recsys.fit.features, group 'past': PastCount counts by periods of ")
    assert "{time: day, period: 1}" in ended.message


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
@pytest.mark.parametrize(("column", "value"), [("at", None), ("clicked", 2), ("clicked", None)])
def test_one_null_time_or_other_label_of_hundreds_stops_the_run(
    fresh: Clone, name: str, column: str, value: int | None
) -> None:
    columns: dict[str, list[Any]] = {"at": [NOON] * 300, "clicked": [0, 1] * 150}
    columns[column][100] = value
    texts = [None if each is None else "2020-06-01 12:00:00" for each in columns["at"]]
    ended = fetch(fresh, name, texts, unit="%Y-%m-%d %H:%M:%S", labels=columns["clicked"])
    place = "line 102" if name.endswith(".csv") else "row 101"
    assert ended.message.startswith(f"InputError: {name}, {place}: column {column}: ")
    assert ("null" if value is None else "label is 2") in ended.message
    assert not (fresh / EVENTS).exists()
