"""Times of raw files become New York's clock, or are refused; none is silently that of another place."""

from datetime import UTC, datetime
from typing import Literal
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.guarantees.running import Clone
from tests.guarantees.taxi.inputs import assert_refused, cleaned, run, trips, write_trips
from tests.helpers.raw_files import YELLOW_2019, write_parquet, yellow_frame

NEW_YORK = ZoneInfo("America/New_York")
INSTANTS = [
    "2019-01-15 00:30",
    "2019-03-10 06:59",  # the last minute before the hour that the clock skips
    "2019-03-10 07:00",
    "2019-07-15 12:00",
    "2019-11-03 05:30",  # the hour that the clock shows twice
    "2019-11-03 06:30",
    "2020-01-01 04:59",
]


def write_times(folder: Clone, name: str, times: "pd.Series[pd.Timestamp]") -> str:
    frame = yellow_frame(len(times)).assign(fare_amount=10.0, tip_amount=2.0)
    frame = frame.assign(tpep_pickup_datetime=times, tpep_dropoff_datetime=times + pd.Timedelta(minutes=1))
    return str(write_parquet(frame, folder / name))


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_times_with_a_zone_become_new_yorks_clock(fresh: Clone, unit: Literal["us", "ns"]) -> None:
    utc = pd.Series(pd.to_datetime(INSTANTS)).dt.tz_localize("UTC").dt.as_unit(unit)
    zones = ["UTC", "America/New_York", "Asia/Kathmandu"]
    files = [write_times(fresh, f"{number}.parquet", utc.dt.tz_convert(zone)) for number, zone in enumerate(zones)]
    cleaned(fresh, *map(fresh.folder.__truediv__, files), clean={"minimum_month_share": 0})
    expected = [datetime.fromisoformat(each).replace(tzinfo=UTC).astimezone(NEW_YORK) for each in INSTANTS]
    clock = sorted(each.replace(tzinfo=None) for each in expected)
    assert sorted(trips(fresh)["pickup_datetime"]) == sorted(clock * len(zones))
    assert clock.count(datetime(2019, 11, 3, 1, 30)) == 2
    assert {datetime(2019, 3, 10, 1, 59), datetime(2019, 3, 10, 3, 0)} <= set(clock)


def test_times_without_a_zone_stay_as_they_are(fresh: Clone) -> None:
    # The clock skipped the second one.
    times = pd.Series(pd.to_datetime(["2019-03-10 01:59", "2019-03-10 02:30", "2019-03-10 03:00"]))
    cleaned(fresh, fresh / write_times(fresh, "naive.parquet", times))
    assert sorted(trips(fresh)["pickup_datetime"]) == times.tolist()


def test_times_of_text_with_an_offset_are_refused_with_an_example(fresh: Clone) -> None:
    said = []
    for number, text in enumerate(["2019-03-01T08:00:00Z", "2019-03-01 08:00:00+00:00", "01/05/2015 01:02:03 AM"]):
        path = write_trips(fresh / f"{number}.csv", YELLOW_2019, *[{"tpep_dropoff_datetime": text}] * 9)
        said.append(f"{path}: 9 of 9 lines cannot be parsed")
        said.append(f"column 'tpep_dropoff_datetime': {text!r} is not a time such as 2019-03-01 08:00:00, without zone")
    files = sorted(fresh.folder.glob("[0-9].csv"))
    assert_refused(fresh, run(fresh, *files), *said)
    frame = yellow_frame(9).assign(tpep_pickup_datetime="2019-03-01T08:00:00Z")
    path = write_parquet(frame, fresh / "text.parquet")
    assert_refused(fresh, run(fresh, path), f"{path}", "'tpep_pickup_datetime' '2019-03-01T08:00:00Z' is not a time")


def test_times_of_a_declared_format_are_read(fresh: Clone) -> None:
    morning = {"tpep_pickup_datetime": "01/05/2015 01:02:03 AM", "tpep_dropoff_datetime": "01/05/2015 01:12:03 AM"}
    path = write_trips(fresh / "american.csv", YELLOW_2019, morning)
    cleaned(fresh, path, standardize={"datetime_format": "%m/%d/%Y %I:%M:%S %p"})
    assert trips(fresh)["pickup_datetime"].tolist() == [datetime(2015, 1, 5, 1, 2, 3)]


def test_times_that_text_could_not_tell_are_refused(fresh: Clone) -> None:
    # DuckDB writes the first for its infinity.
    said = []
    for number, odd in enumerate([-(2**63) + 1, -62_167_219_200_000_001, 253_402_300_800_000_000]):
        table = pa.Table.from_pandas(yellow_frame(9))
        times = pa.array([odd] * len(table)).cast(pa.timestamp("us"))
        pq.write_table(table.set_column(1, "tpep_pickup_datetime", times), fresh / f"{number}.parquet")
        said.append(f"{number}.parquet: column 'tpep_pickup_datetime' has a time outside the years 0 to 9999.")
    assert_refused(fresh, run(fresh, *sorted(fresh.folder.glob("[0-9].parquet"))), *said)
