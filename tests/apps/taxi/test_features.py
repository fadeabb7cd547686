"""What the tip model sees of a trip: derived independently with pandas, the same in any block, and never the tip."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.apps.taxi.cleaned_trips import BOROUGHS, trips, zones
from whitewater.config.resolve import resolve as resolve_config
from whitewater.engines import resolve
from whitewater.errors import ConfigError
from whitewater_apps.taxi.config import Model
from whitewater_apps.taxi.tip_model import (
    Columns,
    FeatureSet,
    columns_read,
    feature_matrix,
    recorded_tip_fraction,
)

DEVICE = resolve("cpu")
FEATURES = (*Model().features, "congestion_surcharge", "airport_fee")
FEATURE_SET = FeatureSet(FEATURES, BOROUGHS, zones())
EPOCH, MICROSECOND = pd.Timestamp("1970-01-01"), pd.Timedelta(1, "us")


def columns_of(frame: pd.DataFrame) -> Columns:
    names = (*columns_read(FEATURES), "payment_type", "tip_amount", "total_amount")
    times = frame.columns[frame.dtypes == "datetime64[us]"]
    numbers = frame.assign(**{name: (frame[name] - EPOCH) / MICROSECOND for name in times})
    return {name: numbers[name].to_numpy(float) for name in names}


def oracle(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the feature matrix as pandas computes it from the frame itself."""
    seconds = (frame["dropoff_datetime"] - frame["pickup_datetime"]).dt.total_seconds()
    borough = pd.Series([np.nan, *(np.arange(264) % 6), np.nan])
    derived: dict[str, Any] = {
        "hour": frame["pickup_datetime"].dt.hour,
        "weekday": frame["pickup_datetime"].dt.weekday,
        "duration": seconds / 60,
        "speed": frame["trip_distance"] / (seconds / 3600),
        "rate_code": frame["rate_code"].where(frame["rate_code"].between(1, 6)),
        "pickup_borough": frame["pickup_location_id"].map(borough),
        "dropoff_borough": frame["dropoff_location_id"].map(borough),
        **{name: frame[name] for name in FEATURES if name in frame and name != "rate_code"},
    }
    return pd.DataFrame(derived)[list(FEATURES)].astype(float)


def test_each_feature_is_what_pandas_derives_and_null_is_nan() -> None:
    frame = trips(2_000)
    frame["trip_distance"] = frame["trip_distance"].where(frame.index % 50 != 0)
    frame["dropoff_datetime"] = frame["dropoff_datetime"].where(frame.index % 70 != 0)
    matrix = feature_matrix(columns_of(frame), FEATURE_SET, DEVICE)
    expected = oracle(frame)
    assert expected.isna().any().sum() >= 8
    np.testing.assert_allclose(matrix, expected.to_numpy(), rtol=1e-12, equal_nan=True)


def test_a_borough_that_the_model_does_not_know_is_null() -> None:
    feature_set = FeatureSet(("pickup_borough",), ("Queens",), zones())
    matrix = feature_matrix(columns_of(trips(500)), feature_set, DEVICE)
    assert set(matrix[~np.isnan(matrix)]) == {0.0}


def test_levels_are_named_as_riders_know_them() -> None:
    values = {"hour": 7.0, "weekday": 6.0, "rate_code": 2.0, "pickup_borough": 3.0, "fare_amount": 1.0}
    names = [FEATURE_SET.levels(name).get(value) for name, value in values.items()]
    assert names == ["07", "Sunday", "JFK", "Manhattan", None]


def test_the_features_of_a_trip_do_not_depend_on_its_partition() -> None:
    columns = columns_of(trips(100))
    parts = [{name: values[row : row + 1] for name, values in columns.items()} for row in range(100)]
    alone = np.concatenate([feature_matrix(part, FEATURE_SET, DEVICE) for part in parts])
    np.testing.assert_array_equal(feature_matrix(columns, FEATURE_SET, DEVICE), alone)


def test_no_feature_contains_the_tip() -> None:
    frame = trips(500)
    other = frame.assign(tip_amount=frame["tip_amount"] * 3 + 1, total_amount=0.0)
    one, two = (feature_matrix(columns_of(each), FEATURE_SET, DEVICE) for each in (frame, other))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("name", "message"),
    [("hour", "names a feature twice")]
    + [(name, f"{name}.*contains the tip") for name in ("total_amount", "tip_amount", "tip_fraction", "tips")],
)
def test_a_feature_that_contains_the_tip_or_is_named_twice_is_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve_config({"taxi": {"model": {"features": ["hour", name]}}}, ["taxi"])


def test_the_tip_fraction_is_known_for_card_trips_with_a_fare_and_for_all_app_trips() -> None:
    frame = trips(7).assign(
        payment_type=[1, 2, 1, 1, 1, np.nan, 1],
        fare_amount=[10.0, 10.0, 0.0, -5.0, 10.0, 10.0, 10.0],
        tip_amount=[2.0, 0.0, 1.0, 1.0, np.nan, 3.0, -1.0],
    )
    taxi = recorded_tip_fraction(columns_of(frame), "yellow", DEVICE)
    app = recorded_tip_fraction(columns_of(frame), "fhvhv", DEVICE)
    nan = np.nan
    np.testing.assert_allclose(taxi, [0.2, nan, nan, nan, nan, nan, nan])
    np.testing.assert_allclose(app, [0.2, 0.0, nan, nan, nan, 0.3, nan])
