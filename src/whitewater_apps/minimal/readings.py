"""The table of readings: its columns, their names in raw files, and the rules that a reading must meet."""

import operator

import pyarrow as pa

from whitewater.tables.casts import Clock
from whitewater.tables.eras import Rule, Source
from whitewater_apps.minimal.config import Read

SOURCE = Source(
    # Names of columns in files, in lower case; None: dropped. Files with other columns are refused.
    aliases={
        "station": "station", "station_id": "station", "time": "time", "date": "time", "wind_speed": "wind_speed",
        "temperature": None, "note": None,
    },
    kinds={"station": "text", "time": "timestamp", "wind_speed": "number"},
    required=("station", "time", "wind_speed"),
    of=("a file of wind readings", "the weather service"),
    rows="readings",
    setting="minimal.fetch.files",
    clock=Clock("UTC"),
)  # fmt: skip
READINGS = pa.schema({"station": pa.string(), "time": pa.timestamp("us"), "wind_speed": pa.float64()})
# Hour of the day, 0 to 23.
KEYS = pa.schema({"station": pa.string(), "hour": pa.int8()})


def rules(settings: Read) -> tuple[Rule, ...]:
    """Return the reasons to reject a reading."""
    return (
        *(Rule(f"missing_{name}", name, "missing") for name in READINGS.names),
        Rule("wind_speed_negative", "wind_speed", operator.lt, 0),
        Rule("wind_speed_too_high", "wind_speed", operator.gt, settings.fastest),
    )
