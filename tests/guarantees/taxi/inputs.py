"""Runs of the application on raw files that a test writes, and what they leave."""

from pathlib import Path
from typing import Any

import pandas as pd

from tests.guarantees.running import Clone, Ended
from tests.helpers.raw_files import write_csv, write_parquet
from whitewater.testing.guarantees import check_refused

RESULTS = "results/taxi/cpu"
STANDARDIZED, QUALITY = f"{RESULTS}/standardized", f"{RESULTS}/quality.json"
# What the fields of a trip read, by the end of their names; the others are blank.
FIELDS = {
    "pickup_datetime": "2019-03-01 08:00:00",
    "dropoff_datetime": "2019-03-01 08:10:00",
    "trip_distance": "1.5",
    "trip_miles": "1.5",
    "payment_type": "1",
    "fare_amt": "10.0",
    "fare_amount": "10.0",
    "passenger_fare": "10.0",
    "tip_amt": "2.0",
    "tip_amount": "2.0",
    "tips": "2.0",
}


def run(clone: Clone, *files: Path, target: str = STANDARDIZED, **sections: Any) -> Ended:
    """Run the application up to a target on files."""
    fetch = {"source": "files", "files": {"paths": [str(file) for file in files]}}
    return clone.run("taxi", {"fetch": fetch, **sections}, target)


def cleaned(clone: Clone, *files: Path, **sections: Any) -> dict[str, Any]:
    """Run the application on good files up to `quality.json`, and return that."""
    ended = run(clone, *files, target=QUALITY, **sections)
    assert ended.status == 0, ended.terminal
    quality: dict[str, Any] = clone.json(QUALITY)
    return quality


def trips(clone: Clone, data_set: str = "trips") -> pd.DataFrame:
    """Return the trips that were kept, or those in quarantine."""
    return pd.read_parquet(clone / f"{RESULTS}/{data_set}")


def assert_refused(clone: Clone, ended: Ended, *parts: str) -> None:
    """Check that a run was refused with one message that has these parts, and that nothing half-written is left."""
    check_refused(clone, ended, *parts, output=STANDARDIZED)


def write_trips(path: Path, header: str, *changes: dict[str, str]) -> Path:
    """Write trips under a header, as CSV or as Parquet, one for each of the changes to their fields."""
    names = header.split(",")
    usual = {name: next((text for end, text in FIELDS.items() if name.lower().endswith(end)), "") for name in names}
    rows = [usual | change for change in changes or [{}]]
    if path.suffix == ".csv":
        return write_csv(path, [",".join(row.values()) for row in rows], header=header)
    return write_parquet(pd.DataFrame(rows).replace("", None).apply(_as_tlc_types), path)


def _as_tlc_types(column: "pd.Series[Any]") -> "pd.Series[Any]":
    if str(column.name).lower().endswith("_datetime"):
        return pd.to_datetime(column)
    return column.astype("float64") if column.dropna().str.fullmatch(r"-?[\d.]+").all() else column
