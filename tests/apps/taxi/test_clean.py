"""Every trip is kept or quarantined with all its reasons, and the counts prove it."""

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.apps.taxi.pipeline import Results, run_taxi
from tests.guarantees.running import contents
from tests.helpers.oracle import sql
from tests.helpers.raw_files import TRIP, write_csv, write_parquet, write_zones, yellow_frame
from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import Device, resolve
from whitewater.engines.config import Engine
from whitewater.step import Output, Run
from whitewater_apps.taxi.config import Clean
from whitewater_apps.taxi.steps.clean import clean

DEVICE = resolve("cpu")
PUBLISHED = {
    "clean": {
        "required": [],
        "minimum_month_share": 0,
        "exclude_dropoff_boroughs": ["EWR"],
        "ranges": {
            "duration": {"above": None, "below": 8000},  # trips of no length are kept, against the default
            "fare_amount": {"above": 0, "below": 200},
            "tip_fraction": {"below": 1},
            "trip_distance": None,
            "tip_amount": None,
        },
    }
}


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("month")
    files = [
        write_parquet(yellow_frame(20_000), folder / "march.parquet"),
        write_csv(folder / "few.csv", [TRIP, "torn,line", TRIP.replace("2019-03-01 08:00", "2031-03-01 08:00")]),
    ]
    settings = {"standardize": {"max_malformed_fraction": 0.5}, "clean": {"minimum_month_share": 0.4}}
    return run_taxi(
        files, zones=write_zones(folder / "zones.csv"), folder=folder, device=DEVICE, settings=settings, upto="clean"
    )


def test_reasons_equal_those_of_sql_over_the_raw_file(month: Results) -> None:
    counts = (
        sql(
            f"""
        select count(*) filter (seconds <= 0), count(*) filter (seconds > 21600),
               count(*) filter (fare_amount <= 0), count(*) filter (tip_amount < 0)
        from (select *, date_diff('second', tpep_pickup_datetime, tpep_dropoff_datetime) as seconds
              from '{month.folder}/march.parquet')
        """
        )
        .iloc[0]
        .tolist()
    )
    names = (
        "duration_not_above_0",
        "duration_not_at_most_21600",
        "fare_amount_not_above_0",
        "tip_amount_not_at_least_0",
    )
    reasons = month.quality["files"][0]["by_reason"]
    assert counts == [reasons.get(name, 0) for name in names]


def test_quarantined_rows_have_all_their_reasons(month: Results) -> None:
    quarantine = month.quarantine()
    found = Counter(reason for reasons in quarantine["reasons"] for reason in reasons)
    expected: Counter[str] = sum((Counter(file["by_reason"]) for file in month.quality["files"]), Counter())
    assert found == expected
    assert quarantine["reasons"].map(len).max() >= 2


def test_a_stray_month_is_rejected_by_its_share(tmp_path: Path) -> None:
    lines = [TRIP] * 2_000 + [TRIP.replace("2019-03-01 08", "2009-01-01 08")]
    results = run_taxi(
        [write_csv(tmp_path / "trips.csv", lines)],
        zones=write_zones(tmp_path / "zones.csv"),
        folder=tmp_path,
        device=DEVICE,
        upto="clean",
    )
    assert results.quality["files"][0]["by_reason"]["stray_month"] == 1
    assert [(each["month"], each["rows_in"]) for each in results.quality["by_month"]] == [
        ("2009-01", 1),
        ("2019-03", 2_000),
    ]


def test_the_funnel_counts_down_to_the_rows_kept(month: Results) -> None:
    funnel, totals = month.quality["funnel"], month.quality["totals"]
    assert funnel[0] == {"rule": "read", "rows": totals["rows_in"]}
    assert funnel[-1]["rows"] == totals["rows_out"]
    assert [each["rows"] for each in funnel] == sorted((each["rows"] for each in funnel), reverse=True)


def test_trips_are_partitioned_by_service_and_month_with_one_schema(month: Results) -> None:
    found = sql(
        f"select service, year, month, count(*) as rows from read_parquet('{month.folder}/trips/**/*.parquet', "
        "hive_partitioning=true) group by all"
    )
    assert (
        "yellow/2019/3"
        in (found["service"] + "/" + found["year"].astype("str") + "/" + found["month"].astype("str")).tolist()
    )
    assert found["rows"].sum() == month.quality["totals"]["rows_out"]


def test_nothing_to_keep_is_a_valid_result(tmp_path: Path) -> None:
    results = run_taxi(
        [write_csv(tmp_path / "refunds.csv", [TRIP.replace(",10.0,", ",-10.0,")] * 3)],
        zones=write_zones(tmp_path / "zones.csv"),
        folder=tmp_path,
        device=DEVICE,
    )
    assert results.quality["totals"] == {"rows_in": 3, "rows_out": 0, "quarantined": 3}
    assert len(results.table("hour")) == 0


ENGINES: tuple[Engine, ...] = ("local", "dask")


def clean_again(month: Results, folder: Path, *, engine: Engine, partition_rows: int, **settings: Any) -> Results:
    """Clean the standardized trips of a month once more, by an engine in partitions of a size."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Device, "partition_rows", partition_rows)
        clean(
            Run("taxi", "clean", DEVICE, Clean(**{"minimum_month_share": 0.4, **settings}), engine=engine),
            standardized=month.folder / "standardized",
            zones=month.folder / "zones.csv",
            trips=Output(folder / "trips"),
            quarantine=Output(folder / "quarantine"),
            quality=Output(folder / "quality.json"),
        )
    return Results(folder)


@pytest.mark.parametrize("partition_rows", [2**20, 100])
def test_engines_leave_the_same_bytes_and_partitions_the_same_trips(
    month: Results, tmp_path: Path, partition_rows: int
) -> None:
    ours, dask = (
        clean_again(month, tmp_path / engine, engine=engine, partition_rows=partition_rows) for engine in ENGINES
    )
    assert contents(ours.folder) == contents(dask.folder)
    assert ours.quality == month.quality
    key = ["pickup_datetime", "dropoff_datetime", "fare_amount", "trip_distance"]
    for data_set in ("trips", "quarantine"):
        same, before = (getattr(each, data_set)().sort_values(key, ignore_index=True) for each in (ours, month))
        pd.testing.assert_frame_equal(same, before)


@pytest.mark.parametrize("engine", ENGINES)
def test_duplicates_are_quarantined_on_request(tmp_path: Path, engine: Engine) -> None:
    torn, other = TRIP.replace(",10.0,", ",-10.0,"), TRIP.replace("08:00", "08:01")
    files = [
        write_csv(tmp_path / "first.csv", [TRIP, other, TRIP, torn, torn, TRIP]),
        write_csv(tmp_path / "second.csv", [TRIP]),
    ]
    before = run_taxi(files, zones=write_zones(tmp_path / "zones.csv"), folder=tmp_path, device=DEVICE, upto="clean")
    assert "duplicate" not in [stage["rule"] for stage in before.quality["funnel"]]
    after = clean_again(before, tmp_path / "again", engine=engine, partition_rows=100, duplicates="quarantine")
    assert [file["by_reason"].get("duplicate", 0) for file in after.quality["files"]] == [3, 0]
    assert after.quality["funnel"][-1] == {"rule": "duplicate", "rows": 3}
    reasons = Counter(tuple(each) for each in after.quarantine()["reasons"])
    assert reasons == {("duplicate",): 2, ("fare_amount_not_above_0",): 1, ("fare_amount_not_above_0", "duplicate"): 1}


@needs_real_data
def test_the_published_cleaning_is_reproduced_by_configuration_alone(tmp_path: Path) -> None:
    folder = real_data("taxi", "seaborn")
    results = run_taxi(
        [folder / "raw_taxis.csv"],
        zones=folder / "raw_taxi_zones.csv",
        folder=tmp_path,
        device=DEVICE,
        settings=PUBLISHED,
    )
    rows = {stage["rule"]: stage["rows"] for stage in results.quality["funnel"]}
    assert rows["read"] == 6_500
    assert rows["dropoff_in_EWR"] == 6_486
    assert rows["duration_not_below_8000"] == 6_463
    assert rows["fare_amount_not_below_200"] == 6_445
    assert rows["tip_fraction_not_below_1"] == 6_433
    trips = results.trips()
    published = pd.read_csv(folder / "taxis.csv", parse_dates=["pickup"])
    assert sorted(trips["pickup_datetime"]) == sorted(published["pickup"])
    assert trips["tip_amount"].sum() == pytest.approx(12_732.32, abs=1e-6)
    cards = results.table("payment_type").query("service == 'all' and payment_type == 1")
    assert cards["mean"].item() == pytest.approx(0.237816, abs=5e-7)


@needs_real_data
def test_all_eras_and_a_parquet_month_pass_in_one_run(tmp_path: Path) -> None:
    files = [*sorted(real_data("taxi", "eras").glob("*.csv")), real_data("taxi", "green_tripdata_2023-12.parquet")]
    zones = real_data("taxi", "taxi_zone_lookup.csv")
    results = run_taxi(files, zones=zones, folder=tmp_path, device=DEVICE)
    for path, file in zip(files, results.quality["files"], strict=True):
        lines = [line for line in path.read_bytes().splitlines()[1:] if line.strip()] if path.suffix == ".csv" else None
        assert file["rows_in"] == (64_215 if lines is None else len(lines))
        assert file["rows_in"] == file["rows_out"] + file["quarantined"]
        assert file["malformed"] == 0
    by_coordinates = [
        file["origin"] for file in results.quality["files"] if file["without_pickup_zone"] == file["rows_in"]
    ]
    assert len(by_coordinates) == 11
