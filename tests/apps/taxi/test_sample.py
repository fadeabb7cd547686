"""The sample is the trips of the smallest hash: a property of the data, not of files, partitions or row order."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from tests.apps.taxi import cleaned_trips
from tests.apps.taxi.cleaned_trips import BOROUGHS, trips, write, write_parts, zones
from whitewater.engines.config import Engine
from whitewater.errors import InputError
from whitewater_apps.taxi.data_sets import row_groups
from whitewater_apps.taxi.tip_model import FeatureSet

FEATURE_SET = FeatureSet(("hour", "fare_amount", "passenger_count", "pickup_borough"), BOROUGHS, zones())
FRAME = trips(3_000)
drawn = partial(cleaned_trips.drawn, feature_set=FEATURE_SET)


def smallest_hashes(frame: pd.DataFrame, rows: int) -> list[int]:
    """Hash every card trip with the reference implementation of XXH64, one by one."""
    card = frame[(frame["payment_type"] == 1) & (frame["fare_amount"] > 0) & frame["tip_amount"].notna()]
    times = card[["pickup_datetime", "dropoff_datetime"]].astype("int64")
    zones_of = card[["pickup_location_id", "dropoff_location_id"]].fillna(-1).astype("int64")
    # Cents and thousandths of a mile.
    whole = (card[["fare_amount", "trip_distance"]] * [100, 1000]).round().astype("int64")
    hashed = pd.concat([times, zones_of, whole], axis=1)
    return sorted(xxhash.xxh64_intdigest(row.astype("<i8").tobytes()) for row in hashed.to_numpy())[:rows]


@pytest.mark.parametrize("engine", ["local", "dask"])
@pytest.mark.parametrize("rows", [100, 500, 10_000])
def test_sample_is_the_trips_of_the_smallest_reference_hash(tmp_path: Path, rows: int, engine: Engine) -> None:
    sample = drawn(write_parts(FRAME, tmp_path, service="yellow"), rows, engine=engine)
    assert sample.hashes.tolist() == smallest_hashes(FRAME, rows)
    assert sample.eligible == (FRAME["payment_type"] == 1).sum()


def test_other_services_are_left_out(tmp_path: Path) -> None:
    write_parts(FRAME, tmp_path, service="yellow")
    write_parts(trips(1_000, seed=1), tmp_path, service="green")
    assert drawn(tmp_path, 300).hashes.tolist() == smallest_hashes(FRAME, 300)
    assert len(drawn(tmp_path, 300, service="fhvhv")) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame, "service of the trips is unknown"),
        (lambda frame: frame.assign(service="fhv"), "service 'fhv' is unknown. Use one of yellow, green, fhvhv"),
        (lambda frame: frame.assign(service=None), "a trip has no service"),
    ],
)
def test_a_file_of_unknown_service_is_refused(
    tmp_path: Path, change: Callable[[pd.DataFrame], pd.DataFrame], message: str
) -> None:
    path = write(change(FRAME.head(5)), tmp_path / "trips.parquet")
    with pytest.raises(InputError, match=message):
        drawn(path, 100)


def test_what_is_not_a_file_of_trips_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no Parquet file of trips"):
        row_groups(tmp_path)
    (tmp_path / "service=yellow").mkdir()
    (tmp_path / "service=yellow" / "torn.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(InputError, match=r"torn\.parquet cannot be read"):
        row_groups(tmp_path)
    FRAME[["fare_amount"]].to_parquet(tmp_path / "service=yellow" / "torn.parquet")
    with pytest.raises(InputError, match="no column pickup_datetime"):
        row_groups(tmp_path)


@pytest.mark.parametrize(
    ("name", "type_", "meaning"),
    [
        ("pickup_datetime", pa.timestamp("us", "UTC"), "a time without zone"),
        ("dropoff_datetime", pa.string(), "a time without zone"),
        ("fare_amount", pa.string(), "a number"),
    ],
)
def test_text_and_times_with_a_zone_are_refused_by_the_name_of_their_column(
    tmp_path: Path, name: str, type_: pa.DataType, meaning: str
) -> None:
    path = write(FRAME.head(5).assign(service="yellow"), tmp_path / "trips.parquet")
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.column_names.index(name), name, table[name].cast(type_)), path)
    with pytest.raises(InputError, match=f"column {name} is .*, not {meaning}"):
        row_groups(path)


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_numbers_and_times_of_any_width_give_the_same_sample(tmp_path: Path, engine: Engine) -> None:
    path = write_parts(FRAME, tmp_path, service="yellow")
    expected = drawn(path, 300)
    file = next(path.rglob("*.parquet"))
    table = pq.read_table(file, partitioning=None)
    for name, type_ in (
        ("pickup_datetime", pa.timestamp("ns")),
        ("dropoff_datetime", pa.timestamp("ms")),
        ("fare_amount", pa.decimal128(9, 2)),
        ("payment_type", pa.int64()),
        ("airport_fee", pa.null()),
    ):
        column = pa.nulls(len(table)) if type_ == pa.null() else table[name].cast(type_)
        table = table.set_column(table.column_names.index(name), name, column)
    pq.write_table(table, file)
    found = drawn(path, 300, engine=engine)
    for name in ("hashes", "time", "target", "features", "eligible"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
