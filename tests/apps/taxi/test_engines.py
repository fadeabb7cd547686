"""Both engines of the taxi application leave the same bytes, and DuckDB's answers, whatever the partitions and dirt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.apps.taxi.pipeline import TABLES, Results, Threaded, run_taxi
from tests.apps.taxi.raw_trips import write_raw
from tests.guarantees.running import contents
from tests.helpers.oracle import sql
from tests.helpers.raw_files import write_parquet, write_zones, yellow_frame
from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import resolve
from whitewater.engines.config import Engine
from whitewater_apps.taxi import with_dask, with_polars

ENGINES: tuple[Engine, ...] = get_args(Engine)
# Every kind of rule.
BOUNDS = {"above": 0, "below": 300}
DIRTY: dict[str, Any] = {
    "standardize": {"block_rows": 1000, "max_malformed_fraction": 1},
    "clean": {
        "required": ["pickup_datetime", "fare_amount"],
        "ranges": {"speed": BOUNDS, "passenger_count": {"at_least": 0, "at_most": 9}, "tip_fraction": {"below": 1}},
        "exclude_pickup_boroughs": ["EWR"],
        "exclude_dropoff_boroughs": ["Staten Island"],
        "minimum_month_share": 0.01,
        "max_unknown_zone_fraction": 1,
    },
    "model": {
        "max_rows": 400,
        "folds": 2,
        "ridge_alphas": [1.0],
        "forest": {"trees": [3], "depths": [3]},
        "bootstrap": 20,
    },
}
# Months, zones and lines that depend on the files, and not on the rows alone, are left out.
BY_ROW: dict[str, Any] = {"clean": {"minimum_month_share": 0, "max_unknown_zone_fraction": 1}}
Make = Callable[[Engine, Path], Results]


@pytest.mark.parametrize("operation", ["standardize_unit", "clean_trips", "tip_statistics", "read"])
def test_an_operation_has_one_signature(operation: str) -> None:
    assert signature(getattr(with_polars, operation)) == signature(getattr(with_dask, operation))


def assert_same_bytes(make: Make, folder: Path) -> Results:
    """Check that all files of both engines are the same, and return them."""
    made = {engine: make(engine, folder / engine) for engine in ENGINES}
    local, dask = (contents(made[engine].folder) for engine in ("local", "dask"))
    assert sorted(local) == sorted(dask)
    assert [name for name in local if local[name] != dask[name]] == []
    return made["local"]


@pytest.mark.slow
def test_all_files_are_the_same_on_raw_files_of_every_form(tmp_path: Path) -> None:
    files, zones = write_raw(tmp_path)

    def make(engine: Engine, folder: Path) -> Results:
        return run_taxi(
            files, zones=zones, folder=folder, device=resolve("cpu"), engine=engine, settings=DIRTY, upto="predict"
        )

    made = assert_same_bytes(make, tmp_path)
    found = {path.relative_to(made.folder).parts[0] for path in made.folder.rglob("*.parquet")}
    assert found >= {"standardized", "trips", "quarantine", "model", "predictions", "tips_by_zone.parquet"}
    assert len(made.quality["totals"]) > 2
    assert {reason for reasons in made.quarantine()["reasons"] for reason in reasons} >= {
        "malformed_line", "stray_month", "missing_pickup_datetime", "pickup_in_EWR", "dropoff_in_Staten Island",
        "unreadable_passenger_count", "fare_amount_not_above_0", "trip_distance_not_at_most_200",
    }  # fmt: skip


@pytest.mark.slow
@needs_real_data
def test_all_files_are_the_same_on_real_records_of_every_era(tmp_path: Path) -> None:
    eras = sorted(real_data("taxi", "eras").glob("*.csv"))
    files = [*eras, real_data("taxi", "green_tripdata_2023-12.parquet")]
    zones = real_data("taxi", "taxi_zone_lookup.csv")

    def make(engine: Engine, folder: Path) -> Results:
        given = {"standardize": {"max_malformed_fraction": 1}, "clean": {"max_unknown_zone_fraction": 1}}
        return run_taxi(files, zones=zones, folder=folder, device=Threaded(), engine=engine, settings=given)

    made = assert_same_bytes(make, tmp_path)
    assert len(made.catalog) == 16
    assert made.quality["totals"]["rows_in"] == sum(entry["rows"] for entry in made.catalog)


def clean_and_dirty() -> st.SearchStrategy[pd.DataFrame]:
    """Return trips of which each value is usual, missing, at a bound of its rule, or beyond."""
    usual = yellow_frame(1)
    odd: Mapping[str, Sequence[Any]] = {
        "tpep_pickup_datetime": [
            pd.NaT,
            "2009-01-01",
            "2019-03-31 23:59:59.999999",
            "2019-04-01",
            "2262-04-11",
            "1700-01-01",
        ],
        "tpep_dropoff_datetime": [pd.NaT, "2019-03-01 08:00:00", "2019-03-03", "2019-03-01 14:00:00"],
        "passenger_count": [np.nan, 0.0, -1.0, 2.5, 9.0, 10.0, 208.0, 1e300],
        "trip_distance": [np.nan, 0.0, -0.5, 200.0, 200.01, np.inf, 1e-300],
        "RatecodeID": [np.nan, 99.0, 7.0, 1.0],
        "store_and_fwd_flag": [None, "", " y", "1", "*"],
        "PULocationID": [0, 264, 265, 266, -1, 32768],
        "payment_type": [np.nan, 0.0, 2.0, 7.0, 0.5],
        "fare_amount": [np.nan, 0.0, -2.5, 0.01, 1e6, np.inf, 3e-308],
        "tip_amount": [np.nan, 0.0, -1.0, 0.1, 1e5],
    }
    rows = st.integers(1, 40)

    @st.composite
    def frames(draw: st.DrawFn) -> pd.DataFrame:
        count = draw(rows)
        frame = yellow_frame(count, seed=draw(st.integers(0, 99)))
        for name, values in odd.items():
            pool = pd.Series([*values], dtype=usual[name].dtype if name != "store_and_fwd_flag" else object)
            chosen = draw(st.lists(st.integers(-2 * len(pool), len(pool) - 1), min_size=count, max_size=count))
            places = np.array(chosen)
            frame[name] = frame[name].where(places < 0, pool.reindex(places.clip(0)).to_numpy())
        return frame

    return frames()


def write(trips: pd.DataFrame, path: Path, *, as_csv: bool) -> Path:
    """Write trips as Parquet in row groups of three, or as CSV."""
    if not as_csv:
        return write_parquet(trips, path.with_suffix(".parquet"), row_group_size=3)
    trips.to_csv(path.with_suffix(".csv"), index=False)
    return path.with_suffix(".csv")


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    trips=clean_and_dirty(),
    seed=st.integers(0, 99),
    parts=st.sampled_from([1, 2, 7]),
    rows=st.sampled_from([5, 1000]),
    as_csv=st.booleans(),
    duplicates=st.sampled_from(["keep", "quarantine"]),
)
def test_all_files_are_the_same_whatever_the_dirt(
    *, trips: pd.DataFrame, seed: int, parts: int, rows: int, as_csv: bool, duplicates: str
) -> None:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        order = np.random.default_rng(seed).integers(len(trips), size=2 * len(trips))  # some of them twice
        files = [write(trips.iloc[rows], folder / str(number), as_csv=as_csv)
                 for number, rows in enumerate(np.array_split(order, parts)) if len(rows)]  # fmt: skip
        zones = write_zones(folder / "zones.csv")
        clean = {**DIRTY["clean"], "exclude_pickup_boroughs": ["Queens"], "duplicates": duplicates}
        given = {**DIRTY, "clean": clean}

        def make(engine: Engine, made: Path) -> Results:
            return run_taxi(
                files,
                zones=zones,
                folder=made,
                device=Threaded(partition_rows=rows),
                engine=engine,
                settings=given,
            )

        assert_same_bytes(make, folder)


def rows_of(frame: pd.DataFrame) -> list[str]:
    """Return the rows as text, sorted, without what tells of which file they were."""
    return sorted(map(repr, frame.drop(columns="source_file", errors="ignore").itertuples(index=False)))


def of_shuffled_parts(trips: pd.DataFrame, parts: int, folder: Path, *, engine: Engine, zones: Path) -> Results:
    """Run the steps on trips in random order, in so many files."""
    folder.mkdir()
    order = np.random.default_rng(parts).permutation(len(trips))
    files = [write_parquet(trips.iloc[rows], folder / f"{number}.parquet", row_group_size=100)
             for number, rows in enumerate(np.array_split(order, parts))]  # fmt: skip
    return run_taxi(
        files,
        zones=zones,
        folder=folder / "made",
        device=Threaded(partition_rows=150),
        engine=engine,
        settings=BY_ROW,
        threads=2,
    )


@pytest.fixture(scope="module")
def trips() -> pd.DataFrame:
    return pd.concat([yellow_frame(600), yellow_frame(300, seed=2, month="2019-04")], ignore_index=True)


@pytest.fixture(scope="module")
def whole(trips: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What the engine local makes of all trips in one file."""
    folder = tmp_path_factory.mktemp("whole")
    return of_shuffled_parts(trips, 1, folder / "one", engine="local", zones=write_zones(folder / "zones.csv"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_tables_do_not_depend_on_partitions_or_order(
    trips: pd.DataFrame, whole: Results, parts: int, engine: Engine, tmp_path: Path
) -> None:
    found = of_shuffled_parts(
        trips, parts, tmp_path / "parts", engine=engine, zones=write_zones(tmp_path / "zones.csv")
    )
    for name in TABLES:
        table = f"tips_by_{name}.parquet"
        assert (found.folder / table).read_bytes() == (whole.folder / table).read_bytes(), name
    assert found.quality["totals"] == whole.quality["totals"]
    assert found.quality["by_month"] == whole.quality["by_month"]
    assert rows_of(found.trips()) == rows_of(whole.trips())
    assert rows_of(found.quarantine()) == rows_of(whole.quarantine())


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_and_tables_are_those_of_duckdb(trips: pd.DataFrame, engine: Engine, tmp_path: Path) -> None:
    made = of_shuffled_parts(trips, 2, tmp_path / "made", engine=engine, zones=write_zones(tmp_path / "zones.csv"))
    raw = f"read_parquet('{tmp_path}/made/*.parquet')"
    kept = sql(f"""
        select hour(tpep_pickup_datetime)::int as hour, count(*) as all_trips,
               count(*) filter (payment_type = 1) as trips,
               avg(tip_amount / fare_amount) filter (payment_type = 1) as mean
        from {raw}
        where date_diff('second', tpep_pickup_datetime, tpep_dropoff_datetime) between 1 and 21600
          and fare_amount > 0 and tip_amount >= 0 and trip_distance <= 200
        group by 1 order by 1
        """)
    table = made.table("hour")
    table = table[table["service"] == "yellow"].reset_index(drop=True)
    pd.testing.assert_frame_equal(table[["hour", "all_trips", "trips", "mean"]], kept, check_dtype=False, rtol=1e-12)
    assert made.quality["totals"]["rows_out"] == kept["all_trips"].sum()
