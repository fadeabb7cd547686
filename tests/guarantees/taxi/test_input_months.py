"""A pickup whose month lies far from those of its file had a wrong clock, however few trips the file has."""

import pandas as pd

from tests.guarantees.running import Clone
from tests.guarantees.taxi.inputs import cleaned, trips, write_trips
from tests.helpers.raw_files import YELLOW_2019


def at(day: str) -> dict[str, str]:
    return {"tpep_pickup_datetime": f"{day} 08:00:00", "tpep_dropoff_datetime": f"{day} 08:10:00"}


def test_a_lone_month_far_from_those_of_its_file_is_stray(fresh: Clone) -> None:
    alone = ["2098-01-01", "2018-02-28", "2002-12-31", "2020-04-01"]
    near = ["2019-02-28", "2019-04-01", "2018-03-01", "2020-03-01"]
    days = [*near, *["2019-03-15"] * 991, *alone]
    path = write_trips(fresh / "small.csv", YELLOW_2019, *map(at, days))
    assert cleaned(fresh, path)["files"][0]["by_reason"] == {"stray_month": 4}
    stray = trips(fresh, "quarantine")["pickup_datetime"]
    assert sorted(stray.dt.strftime("%Y-%m-%d")) == sorted(alone)


def test_months_that_hold_the_trips_of_a_file_are_kept_however_far_apart(fresh: Clone) -> None:
    # Before and after; and years, with few trips in the spring of 2020.
    apart = write_trips(fresh / "apart.csv", YELLOW_2019, *map(at, ["2015-01-15"] * 70 + ["2021-01-15"] * 30))
    months = pd.date_range("2018-01-01", "2022-12-01", freq="MS").strftime("%Y-%m-15")
    days = [day for day in months for _ in range(2 if day.startswith("2020-0") else 20)]
    years = write_trips(fresh / "years.csv", YELLOW_2019, *map(at, days))
    totals = cleaned(fresh, apart, years)["totals"]
    assert totals == {"rows_in": 100 + len(days), "rows_out": 100 + len(days), "quarantined": 0}
