"""Simulated readings with realistic faults: broken sensors, missing values, malformed lines."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from whitewater.tables.partitions import write_table
from whitewater_apps.minimal.config import Fetch

START = np.datetime64("2025-06-01", "us")
WEEK, STEP = 7 * 24 * 6, np.timedelta64(10, "m")  # ten minutes
MALFORMED = ("S01,2025-06-01 00:00", "S02,yesterday,3.5", "S01,2025-06-01 00:10:00,2.5,4.5")
FAULTY = 0.01


def write_generated(folder: Path, settings: Fetch) -> list[Path]:
    """Write readings of two weeks, the first as CSV with a few malformed lines, the second as Parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(settings.seed)
    text, table = folder / "week-1.csv", folder / "week-2.parquet"
    pa.csv.write_csv(_week(0, settings.stations, random), text)
    with text.open("a") as lines:
        lines.writelines(f"{line}\n" for line in MALFORMED)
    write_table(_week(1, settings.stations, random), table)
    return [text, table]


def _week(number: int, stations: int, random: np.random.Generator) -> pa.Table:
    """Return a week of readings of all stations: speeds follow a Weibull distribution, strongest in the afternoon."""
    time = np.tile(START + (number * WEEK + np.arange(WEEK)) * STEP, stations)
    station = np.repeat(np.arange(stations), WEEK)
    hour = (time - time.astype("datetime64[D]")) / np.timedelta64(1, "h")
    strength = (3 + station % 7) * (1 + 0.4 * np.cos((hour - 15) / 24 * 2 * np.pi))
    speed = np.round(strength * random.weibull(2.0, len(time)), 1)
    speed[random.random(len(time)) < FAULTY] = -999  # what a broken sensor reports
    names = np.array([f"S{number + 1:02d}" for number in range(stations)])[station]
    missing = random.random(len(time)) < FAULTY
    return pa.table({"station": names, "time": time, "wind_speed": pa.array(speed, mask=missing)})
