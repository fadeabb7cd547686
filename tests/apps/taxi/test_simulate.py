"""The simulated source: the layouts of TLC, believable trips, stated dirt, and nothing left to chance."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.real_data import needs_real_data, real_data
from whitewater.errors import ConfigError
from whitewater_apps.taxi.config import Generated, Service
from whitewater_apps.taxi.schema import SERVICES, SOURCE
from whitewater_apps.taxi.synthetic import months as simulate
from whitewater_apps.taxi.synthetic.months import simulate_month, write_generated, write_zones
from whitewater_apps.taxi.synthetic.trips import DIRT
from whitewater_apps.taxi.zones import read_zones

ROWS = 60_000
YELLOW_2019 = {
    "VendorID": "int64", "tpep_pickup_datetime": "timestamp[us]", "tpep_dropoff_datetime": "timestamp[us]",
    "passenger_count": "double", "trip_distance": "double", "RatecodeID": "double", "store_and_fwd_flag": "string",
    "PULocationID": "int64", "DOLocationID": "int64", "payment_type": "int64", "fare_amount": "double",
    "extra": "double", "mta_tax": "double", "tip_amount": "double", "tolls_amount": "double",
    "improvement_surcharge": "double", "total_amount": "double", "congestion_surcharge": "double",
    "airport_fee": "null",
}  # fmt: skip
FHVHV_NAMES = [
    "hvfhs_license_num", "dispatching_base_num", "originating_base_num", "request_datetime", "on_scene_datetime",
    "pickup_datetime", "dropoff_datetime", "PULocationID", "DOLocationID", "trip_miles", "trip_time",
    "base_passenger_fare", "tolls", "bcf", "sales_tax", "congestion_surcharge", "airport_fee", "tips", "driver_pay",
    "shared_request_flag", "shared_match_flag", "access_a_ride_flag", "wav_request_flag", "wav_match_flag",
]  # fmt: skip
BOROUGHS = {
    "Bronx": 43, "Brooklyn": 61, "EWR": 1, "Manhattan": 69, "N/A": 1, "Queens": 69, "Staten Island": 20, "Unknown": 1,
}  # fmt: skip


@lru_cache
def month(service: Service, name: str = "2019-06") -> pd.DataFrame:
    frame: pd.DataFrame = simulate_month(service, name, rows=ROWS, seed=2019).to_pandas()
    return frame


@pytest.fixture(scope="module")
def yellow() -> pd.DataFrame:
    return month("yellow")


def types(table: pa.Table) -> dict[str, str]:
    return {field.name: str(field.type) for field in table.schema}


def test_yellow_of_2019_has_the_layout_of_todays_file() -> None:
    assert list(types(simulate_month("yellow", "2019-06", rows=100, seed=1)).items()) == list(YELLOW_2019.items())


def test_the_airport_fee_changed_its_name_in_february_2023_and_types_were_narrowed() -> None:
    before = types(simulate_month("yellow", "2023-01", rows=100, seed=1))
    after = types(simulate_month("yellow", "2023-02", rows=100, seed=1))
    assert list(before)[-1] == "airport_fee"
    assert list(after)[-1] == "Airport_fee"
    assert [after[name] for name in ("VendorID", "PULocationID", "passenger_count")] == ["int32", "int32", "int64"]


@pytest.mark.parametrize("service", ["yellow", "green", "fhvhv"])
def test_the_fee_of_the_central_business_district_came_with_2025(service: Service) -> None:
    without = simulate_month(service, "2024-12", rows=100, seed=1)
    with_fee = simulate_month(service, "2025-02", rows=100, seed=1)
    assert with_fee.column_names == [*without.column_names, "cbd_congestion_fee"]


def test_high_volume_trips_have_their_24_columns() -> None:
    table = simulate_month("fhvhv", "2019-06", rows=100, seed=1)
    assert table.column_names == FHVHV_NAMES


@needs_real_data
def test_green_of_2023_has_the_names_and_types_of_the_real_file() -> None:
    real = pq.read_schema(real_data("taxi", "green_tripdata_2023-12.parquet"))
    table = simulate_month("green", "2023-12", rows=1_000, seed=1)
    assert types(table) == {field.name: str(field.type) for field in real}
    assert table.column_names == real.names
    assert table["ehail_fee"].null_count == 1_000


@needs_real_data
def test_every_era_of_csv_begins_and_ends_its_lines_as_the_real_file_does(tmp_path: Path) -> None:
    # Yellow is simulated from 2015 on, green as Parquet only.
    real_files = [path for path in real_data("taxi", "eras").glob("yellow*") if path.stem[-7:] >= "2015"]
    assert len(real_files) == 5
    for real in real_files:
        service, _, name = real.stem.split("_")
        settings = Generated(scale=0.0005, seed=1, services=(service,), months=(name,))
        (made,) = write_generated(tmp_path, settings)
        ours, theirs = (path.read_bytes().split(b"\n") for path in (made, real))
        assert ours[0] == theirs[0], real.name
        assert (ours[1].strip() == b"") == (theirs[1].strip() == b""), real.name
        first, real_first = (next(line for line in lines[1:] if line.strip()) for lines in (ours, theirs))
        assert first.count(b",") == real_first.count(b","), real.name
        assert first.endswith(b"\r"), real.name


@pytest.mark.parametrize(
    ("service", "name"),
    [("yellow", f"{year}-{number:02d}") for year in range(2015, 2026) for number in (1, 7)]
    + [("green", f"{year}-{number:02d}") for year in range(2017, 2026) for number in (1, 7)]
    + [("fhvhv", f"{year}-02") for year in range(2019, 2026)],
)
def test_every_month_is_recognized(service: Service, name: str) -> None:
    table = simulate_month(service, name, rows=50, seed=1)
    assert SOURCE.recognize(table.column_names, path=name).constants == {"service": SERVICES.index(service)}
    assert table.num_rows == 50


@pytest.mark.parametrize(("service", "name"), [("yellow", "2014-12"), ("green", "2016-12"), ("fhvhv", "2019-01")])
def test_a_service_that_is_not_simulated_yet_is_refused(service: Service, name: str) -> None:
    with pytest.raises(ConfigError, match=f"no {service} trips before"):
        simulate_month(service, name, rows=10, seed=1)


def test_equal_seeds_give_equal_tables_and_others_do_not() -> None:
    again = simulate_month("yellow", "2019-06", rows=1_000, seed=7)
    assert again.equals(simulate_month("yellow", "2019-06", rows=1_000, seed=7))
    assert not again.equals(simulate_month("yellow", "2019-06", rows=1_000, seed=8))
    assert not again["fare_amount"].equals(simulate_month("yellow", "2019-07", rows=1_000, seed=7)["fare_amount"])


def test_a_month_in_several_blocks_has_all_its_trips_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "BLOCK_TRIPS", 700)
    frame = simulate_month("green", "2019-06", rows=5_000, seed=3).to_pandas()
    pickups = frame.lpep_pickup_datetime
    inside = pickups[(pickups >= "2019-06-01") & (pickups < "2019-07-01")]
    assert len(frame) == 5_000
    assert len(inside) > 4_980
    assert inside.diff().dt.total_seconds().ge(0).mean() > 0.99


def test_totals_are_the_sum_of_their_parts(yellow: pd.DataFrame) -> None:
    hailed = yellow[yellow.payment_type != 0]
    parts = [
        "fare_amount", "extra", "mta_tax", "tip_amount", "tolls_amount", "improvement_surcharge",
        "congestion_surcharge",
    ]  # fmt: skip
    np.testing.assert_allclose(hailed[parts].sum(axis=1), hailed.total_amount, atol=0.006)


def test_fares_are_those_of_a_meter_or_the_flat_fare_of_jfk(yellow: pd.DataFrame) -> None:
    charged = yellow[yellow.fare_amount > 0]
    assert set(charged.fare_amount[charged.RatecodeID == 2]) == {52.0}
    units = (charged.fare_amount[charged.RatecodeID == 1] - 2.5) / 0.5
    np.testing.assert_allclose(units, units.round(), atol=1e-6)


def test_the_congestion_surcharge_came_with_2019() -> None:
    assert month("yellow", "2018-12").congestion_surcharge.isna().all()
    assert set(month("yellow", "2019-01").congestion_surcharge.abs().dropna()) == {0.0, 2.5}


def test_cash_tips_are_not_recorded() -> None:
    for frame in (month("yellow"), month("green")):
        assert (frame.tip_amount[frame.payment_type == 2] == 0).all()


@pytest.mark.parametrize(("service", "low", "high"), [("yellow", 0.22, 0.27), ("green", 0.18, 0.23)])
def test_card_tips_are_a_believable_share_of_the_fare(service: Service, low: float, high: float) -> None:
    frame = month(service)
    card = frame[(frame.payment_type == 1) & (frame.fare_amount > 0)]
    assert low < (card.tip_amount / card.fare_amount).mean() < high
    assert 0.02 < (card.tip_amount == 0).mean() < 0.2


def test_the_dirt_has_the_stated_shares(yellow: pd.DataFrame) -> None:
    left_out = ["passenger_count", "RatecodeID", "store_and_fwd_flag", "congestion_surcharge"]
    together = yellow[left_out].isna()
    assert together.eq(together.passenger_count, axis=0).all(axis=None)
    assert (yellow.payment_type[together.passenger_count] == 0).all()
    repeated = yellow.duplicated() & (yellow.fare_amount > 0)
    seconds = (yellow.tpep_dropoff_datetime - yellow.tpep_pickup_datetime).dt.total_seconds()
    found = {
        "dispatched": together.passenger_count.mean(),
        "refunded": (yellow.fare_amount < 0).mean(),
        "repeated": repeated.mean(),
        "without_distance": (yellow.trip_distance == 0).mean(),
        "wrong_clock": (yellow.tpep_pickup_datetime.dt.strftime("%Y-%m") != "2019-06").mean(),
        "reversed": (seconds < 0).mean(),
        "left_running": (seconds.abs() > 80_000).mean(),
        "unknown_rate_code": (yellow.RatecodeID == 99).mean(),
        "unknown_zone": (yellow.PULocationID >= 264).mean(),
        "without_passengers": (yellow.passenger_count == 0).mean(),
    }
    for fault, share in found.items():
        stated = DIRT[fault]
        assert share == pytest.approx(stated, abs=5 * (stated / ROWS) ** 0.5 + 0.06 * stated), fault
    assert 300 < yellow.trip_distance.max() <= 200_000


def test_the_zone_table_has_265_zones_in_the_boroughs_of_new_york(tmp_path: Path) -> None:
    zones = read_zones(write_zones(tmp_path / "zones.csv"))
    assert {borough: len(zones.within(borough)) for borough in zones.borough_names} == BOROUGHS
    assert zones.duplicates == 0
    assert [zones.names[location] for location in (1, 132, 138, 265)] == [
        "Newark Airport", "JFK Airport", "LaGuardia Airport", "Outside of NYC",
    ]  # fmt: skip
    assert (tmp_path / "zones.csv").read_text().startswith("LocationID,Borough,Zone,service_zone\n")


SMALL = Generated(scale=0.004, seed=5, services=("yellow", "green"), months=("2019-03", "2019-06"))


def test_the_first_month_of_yellow_is_csv_and_the_others_are_parquet(tmp_path: Path) -> None:
    names = [path.name for path in write_generated(tmp_path, SMALL)]
    assert names == [
        "yellow_tripdata_2019-03.csv", "yellow_tripdata_2019-06.parquet",
        "green_tripdata_2019-03.parquet", "green_tripdata_2019-06.parquet",
    ]  # fmt: skip
    assert (tmp_path / "zones.csv").exists()


def test_the_csv_holds_the_trips_of_the_month_and_a_few_torn_lines(tmp_path: Path) -> None:
    path = write_generated(tmp_path, SMALL)[0]
    lines = path.read_bytes().decode().split("\r\n")
    whole = [line for line in lines[1:-1] if line.count(",") == lines[0].count(",")]
    assert len(whole) == 12_000
    assert len(lines) - 2 - len(whole) == round(DIRT["torn_line"] * 12_000)
    expected = simulate_month("yellow", "2019-03", rows=12_000, seed=5)
    clean = tmp_path / "whole.csv"
    clean.write_text("\n".join([lines[0], *whole]))
    read = duckdb.read_csv(str(clean)).aggregate("sum(total_amount), sum(tip_amount)").fetchall()[0]
    assert read == pytest.approx([sum(expected[name].to_pylist()) for name in ("total_amount", "tip_amount")])


def test_files_that_are_no_longer_asked_for_are_removed(tmp_path: Path) -> None:
    write_generated(tmp_path, SMALL)
    write_generated(tmp_path, SMALL.model_copy(update={"services": ("green",)}))
    assert sorted(path.name for path in tmp_path.glob("*tripdata*")) == [
        "green_tripdata_2019-03.parquet", "green_tripdata_2019-06.parquet",
    ]  # fmt: skip


def test_what_a_killed_run_left_unfinished_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".yellow_tripdata_2018-01.csv.part").write_text("half")
    write_generated(tmp_path, SMALL)
    assert not list(tmp_path.glob(".*"))


def test_a_month_does_not_depend_on_the_others_that_are_asked_for(tmp_path: Path) -> None:
    both = write_generated(tmp_path / "both", SMALL)
    one = write_generated(tmp_path / "one", SMALL.model_copy(update={"services": ("green",), "months": ("2019-06",)}))
    assert one[0].read_bytes() == both[3].read_bytes()
