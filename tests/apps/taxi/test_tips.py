"""The tips tables equal SQL over the same cleaned trips, whatever the partitions and the order of the rows."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.apps.taxi.pipeline import TABLES, Results, run_taxi
from tests.helpers.oracle import sql
from tests.helpers.raw_files import write_parquet, write_zones, yellow_frame
from whitewater.engines import resolve
from whitewater.errors import InputError
from whitewater_apps.taxi.tip_tables import trip_parts

DEVICE = resolve("cpu")
KEYS = {
    "hour": "hour(pickup_datetime)",
    "weekday_hour": "isodow(pickup_datetime) - 1, hour(pickup_datetime)",
    "month": "strftime(pickup_datetime, '%Y-%m')",
    "payment_type": "payment_type",
    "passenger_count": "passenger_count",
    "borough": "Borough",
    "zone": "pickup_location_id",
}
COLUMNS = {"weekday_hour": ["weekday", "hour"], "zone": ["location_id"]}


def green(frame: pd.DataFrame) -> pd.DataFrame:
    """Return yellow trips as green ones, by the names of their columns."""
    return frame.rename(columns=lambda name: name.replace("tpep", "lpep"))


def split(frame: pd.DataFrame, parts: int) -> Iterator[pd.DataFrame]:
    for rows in np.array_split(np.arange(len(frame)), parts):
        yield frame.iloc[rows]


def make(folder: Path, *, parts: int, shuffle: bool) -> Results:
    yellow = pd.concat([yellow_frame(6_000), yellow_frame(3_000, seed=2, month="2019-04")])
    frames = [yellow, green(yellow_frame(2_000, seed=3))]
    if shuffle:
        frames = [frame.sample(frac=1, random_state=5) for frame in frames]
    folder.mkdir(exist_ok=True)
    files = [
        write_parquet(piece, folder / f"{number}-{part}.parquet", row_group_size=1_000)
        for number, frame in enumerate(frames)
        for part, piece in enumerate(split(frame, parts))
    ]
    return run_taxi(files, zones=write_zones(folder / "zones.csv"), folder=folder, device=DEVICE, threads=2)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return make(tmp_path_factory.mktemp("whole"), parts=1, shuffle=False)


def by_sql(results: Results, name: str) -> pd.DataFrame:
    """Summarize the cleaned trips by SQL."""
    return sql(
        f"""
        with trips as (
            select *, tip_amount / fare_amount as fraction, payment_type = 1 and fare_amount > 0 as recorded
            from read_parquet('{results.folder}/trips/**/*.parquet', hive_partitioning=true)
            left join read_csv('{results.folder}/zones.csv') as zones on zones.LocationID = pickup_location_id
        )
        select coalesce(service, 'all') as service, {KEYS[name]}, count(*) as all_trips,
               count(*) filter (recorded) as trips, avg(fraction) filter (recorded) as mean,
               median(fraction) filter (recorded) as median, stddev_samp(fraction) filter (recorded) as deviation,
               count(*) filter (tip_amount > 0 and fare_amount > 0) as plain_trips,
               avg(fraction) filter (tip_amount > 0 and fare_amount > 0) as plain_mean
        from trips group by grouping sets ((service, {KEYS[name]}), ({KEYS[name]}))
        """
    )


@pytest.mark.parametrize("name", TABLES)
def test_tables_equal_sql(name: str, whole: Results) -> None:
    keys = ["service", *COLUMNS.get(name, [name])]
    ours = whole.table(name).astype(dict.fromkeys(keys, "str")).sort_values(keys).reset_index(drop=True)
    theirs = by_sql(whole, name)
    theirs.columns = [*keys, *theirs.columns[len(keys) :]]
    for key in keys[1:]:
        if theirs[key].dtype.kind == "f":
            theirs[key] = theirs[key].astype("Int64")
    theirs = theirs.astype(dict.fromkeys(keys, "str")).sort_values(keys).reset_index(drop=True)
    assert ours[keys].fillna("null").to_numpy().tolist() == theirs[keys].fillna("null").to_numpy().tolist()
    for column in ("all_trips", "trips", "plain_trips"):
        assert ours[column].tolist() == theirs[column].tolist()
    for column in ("mean", "plain_mean"):
        np.testing.assert_allclose(ours[column], theirs[column].astype(float), rtol=1e-9)
    margin = 1.959963984540054 * theirs["deviation"].astype(float) / np.sqrt(theirs["trips"])
    np.testing.assert_allclose(ours["mean_high"] - ours["mean"], margin, rtol=1e-6)
    np.testing.assert_allclose(ours["median"], theirs["median"].astype(float), rtol=2**-9, atol=2**-9)


@pytest.mark.parametrize(("parts", "shuffle"), [(2, False), (7, False), (1, True), (7, True)])
def test_partitions_and_order_of_rows_change_nothing(parts: int, shuffle: bool, whole: Results, tmp_path: Path) -> None:
    other = make(tmp_path, parts=parts, shuffle=shuffle)
    assert other.quality["totals"] == whole.quality["totals"]
    for name in TABLES:
        pd.testing.assert_frame_equal(other.table(name), whole.table(name), rtol=1e-9)
        counts = ["all_trips", "trips", "plain_trips"]
        pd.testing.assert_frame_equal(other.table(name)[counts], whole.table(name)[counts])


def test_cash_tips_are_missing_not_zero(whole: Results) -> None:
    cash = whole.table("payment_type").query("service == 'all' and payment_type == 2")
    assert cash["all_trips"].item() > 0
    assert cash["trips"].item() == 0
    assert cash[["mean", "mean_low", "median"]].isna().all(axis=None)


def test_all_is_the_sum_of_the_services(whole: Results) -> None:
    for name in TABLES:
        counts = whole.table(name).groupby("service")["all_trips"].sum()
        assert counts["all"] == counts.drop("all").sum() == whole.quality["totals"]["rows_out"]


def test_trips_that_are_not_in_the_directory_of_their_service_are_refused(whole: Results, tmp_path: Path) -> None:
    whole.trips().to_parquet(tmp_path / "one.parquet")
    with pytest.raises(InputError, match=r"one\.parquet: tips are summarized by the directory of a service"):
        trip_parts(tmp_path / "one.parquet")
