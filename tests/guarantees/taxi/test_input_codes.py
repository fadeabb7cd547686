"""Codes of raw files mean the same in CSV and in Parquet; which are kept is documented."""

import pandas as pd

from tests.guarantees.running import Clone
from tests.guarantees.taxi.inputs import cleaned, trips, write_trips

GREEN = (
    "VendorID,lpep_pickup_datetime,lpep_dropoff_datetime,store_and_fwd_flag,RatecodeID,PULocationID,DOLocationID,"
    "trip_distance,fare_amount,tip_amount,payment_type,trip_type"
)
# Raw codes, and what the standardized columns hold.
KEPT: dict[str, dict[str, int | None]] = {
    "VendorID": {"0": 0, "1": 1, "4": 4, "127": 127},
    "RatecodeID": {"0": 0, "1": 1, "7": 7, "28": 28, "99": None},
    "trip_type": {"0": 0, "2": 2, "3": 3},
}
REJECTED: dict[str, dict[str, tuple[str, ...]]] = {
    "vendor_id": {"VendorID": ("128", "-1", "1.5")},
    "rate_code": {"RatecodeID": ("-1", "1.5", "40000")},
    "trip_type": {"trip_type": ("-1", "128")},
    "payment_type": {"payment_type": ("7", "-1", "1.5")},
    "pickup_location_id": {"PULocationID": ("0", "266")},
    "dropoff_location_id": {"DOLocationID": ("0", "266")},
}


def changes(codes: dict[str, tuple[str, ...]]) -> list[dict[str, str]]:
    # The distance tells afterwards which trip it was.
    every = [{name: text} for name, texts in codes.items() for text in texts]
    return [{**change, "trip_distance": f"{number}.5"} for number, change in enumerate(every)]


def both(fresh: Clone, codes: dict[str, tuple[str, ...]], data_set: str) -> list[pd.DataFrame]:
    """Return what is left of the same trips in CSV and in Parquet, by distance."""
    files = [write_trips(fresh / f"green.{form}", GREEN, *changes(codes)) for form in ("csv", "parquet")]
    cleaned(fresh, *files)
    frame = trips(fresh, data_set).sort_values("trip_distance", ignore_index=True)
    assert len(frame) == 2 * len(changes(codes))
    return [frame[0::2].reset_index(drop=True), frame[1::2].reset_index(drop=True)]


def test_vendors_rates_and_trip_types_outside_the_data_dictionary_are_kept(fresh: Clone) -> None:
    of_csv, of_parquet = both(fresh, {name: tuple(codes) for name, codes in KEPT.items()}, "trips")
    pd.testing.assert_frame_equal(of_csv, of_parquet)
    expected = [(column, code) for column, codes in KEPT.items() for code in codes.values()]
    standard = {"VendorID": "vendor_id", "RatecodeID": "rate_code", "trip_type": "trip_type"}
    for row, (column, code) in enumerate(expected):
        found = of_csv[standard[column]][row]
        assert pd.isna(found) if code is None else found == code


def test_what_is_no_code_is_null_and_the_trip_goes_to_quarantine(fresh: Clone) -> None:
    codes = {name: texts for each in REJECTED.values() for name, texts in each.items()}
    of_csv, of_parquet = both(fresh, codes, "quarantine")
    reasons = [f"unreadable_{column}" for column, each in REJECTED.items() for texts in each.values() for _ in texts]
    for found in (of_csv, of_parquet):
        assert [list(each) for each in found["reasons"]] == [[reason] for reason in reasons]
        for row, reason in enumerate(reasons):
            assert pd.isna(found[reason.removeprefix("unreadable_")][row])
