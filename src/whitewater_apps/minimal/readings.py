"""The table of readings: its columns, the rules that a reading must meet, and how a block of them is written."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.tables.eras import Names
from whitewater.tables.partitions import Part, write_table
from whitewater.tables.quarantine import MALFORMED, write_malformed, write_rejected
from whitewater.tables.raw_files import Source, Unit, UnitCounts
from whitewater.tables.rules import Rule
from whitewater_apps.minimal.config import Read

# What files may call the columns, in lower case. A column that is neither here nor in `not_carried` is refused.
NAMES = Names(
    aliases={"station": "station", "station_id": "station", "time": "time", "date": "time", "wind_speed": "wind_speed"},
    not_carried=frozenset({"temperature", "note"}),
    kinds={"station": "text", "time": "timestamp", "wind_speed": "number"},
    spelled=(),
    required=("station", "time", "wind_speed"),
    of=("a file of wind readings", "weather service's"),
)
SOURCE = Source(NAMES.era, NAMES, rows="readings", setting="minimal.fetch.files.paths", zone="UTC")
READINGS = pa.schema({"station": pa.string(), "time": pa.timestamp("us"), "wind_speed": pa.float64()})
# The stations are those that the readings name; the hour is that of the day.
KEYS = pa.schema({"station": pa.string(), "hour": pa.int8()})


def rules(settings: Read) -> tuple[Rule, ...]:
    """Return the reasons to reject a reading."""
    return (
        *(Rule(f"missing_{name}", name, "missing") for name in READINGS.names),
        Rule("wind_speed_negative", "wind_speed", operator.lt, 0),
        Rule("wind_speed_too_high", "wind_speed", operator.gt, settings.fastest),
    )


@dataclass(frozen=True)
class Destination:
    """Where `read` writes, the rules, and the name of each file by its number."""

    readings: Path
    quarantine: Path
    rules: Sequence[Rule]
    origins: Mapping[int, str]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons by their bit in the mask of a row: malformed lines have bit 0, the rules follow."""
        return (MALFORMED, *(rule.reason for rule in self.rules))

    def write(self, block: pa.Table, broken: Array, malformed: Sequence[str], unit: Unit, piece: int) -> UnitCounts:
        """Write the rows that break no rule as readings, all others to quarantine; count the rows by mask.

        ``block`` has the columns `READINGS`; ``broken``, int64 (rows,), has bit *i* set where ``rules[i]`` is broken.
        """
        file, name, mask = unit.place[0], f"part-{unit.stem(piece)}.parquet", broken << 1
        if len(kept := block.filter(pa.array(mask == 0))):
            write_table(kept, self.readings / name)
        if len(rejected := block.filter(pa.array(mask > 0))):
            origin = mask[mask > 0] * 0 + file
            write_rejected(
                rejected, mask[mask > 0], origin, self.quarantine / name, reasons=self.reasons, origins=self.origins
            )
        if malformed:
            lines = self.quarantine / f"malformed-{unit.stem(piece)}.parquet"
            write_malformed(pa.array(malformed), lines, schema=READINGS, origin=self.origins[file])
        counts = Counter((each,) for each in mask.tolist())
        return UnitCounts(len(malformed), next(iter(malformed), None), Counter[tuple[int | None, ...]](counts))

    def write_nothing(self) -> None:
        """Give a data set without rows one empty file, so that its readers find the columns."""
        if not any(self.readings.iterdir()):
            write_table(READINGS.empty_table(), self.readings / "part-none.parquet")
        if not any(self.quarantine.iterdir()):
            write_malformed(pa.nulls(0), self.quarantine / "malformed-none.parquet", schema=READINGS, origin="")


def parts(readings: Path) -> list[Part]:
    """List the files of a folder of readings."""
    return [Part(path, 0, pq.read_metadata(path).num_rows) for path in sorted(readings.glob("*.parquet"))]
