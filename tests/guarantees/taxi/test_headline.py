"""What `python -m whitewater results` says was found: no contrast where the trips show none."""

import sys

import pandas as pd
import pytest

from tests.guarantees.running import Clone
from tests.helpers.raw_files import write_parquet, yellow_frame


def card_trips(hours: list[int], tips: list[float]) -> pd.DataFrame:
    """Return ten-minute trips for 10 dollars paid by card, one for each hour and tip."""
    frame = yellow_frame(len(hours))
    pickup = pd.Timestamp("2019-03-05") + pd.to_timedelta(hours, unit="h")
    frame["tpep_pickup_datetime"] = pickup.astype("datetime64[us]")
    frame["tpep_dropoff_datetime"] = (pickup + pd.Timedelta(minutes=10)).astype("datetime64[us]")
    return frame.assign(fare_amount=10.0, trip_distance=1.5, payment_type=1.0, tip_amount=tips)


@pytest.mark.slow
def test_one_hour_and_hours_within_noise_are_not_called_the_most_and_the_least(fresh: Clone) -> None:
    write_parquet(card_trips([8] * 40, [1.0, 3.0] * 20), fresh / "yellow.parquet")
    green = card_trips([8] * 40 + [9] * 40, [1.0, 3.0] * 20 + [1.0, 3.1] * 20)
    names = {name: name.replace("tpep", "lpep") for name in green.columns}
    write_parquet(green.rename(columns=names), fresh / "green.parquet")
    fetch = {"source": "files", "files": {"paths": ["*.parquet"]}}
    ended = fresh.run("taxi", {"fetch": fetch, "plot": {"formats": ["png"]}})
    assert ended.status == 0, ended.terminal
    ended = fresh.start(sys.executable, "-m", "whitewater", "results", PYTHONPATH="src").ended()
    words = " ".join(ended.terminal.split())
    assert "Tips in yellow taxis at 8:00: 20.0 % [16.9, 23.1] of the fare (n = 40). No other hour" in words
    assert "Tips in green taxis do not clearly differ by hour" in words
    assert "tip most" not in words
