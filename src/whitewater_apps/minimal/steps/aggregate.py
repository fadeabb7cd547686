"""Step `aggregate`: wind speed by station and hour of the day."""

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.group_statistics import summarize
from whitewater.tables.partitions import Part, group_parts, write_table
from whitewater_apps.minimal.config import Aggregate
from whitewater_apps.minimal.readings import KEYS


def aggregate(run: Run[Aggregate], *, readings: Path, table: Output, csv: Output) -> None:
    """Write count, mean, deviation and median of each station and hour that has enough readings."""
    if run.engine == "local":
        from whitewater_apps.minimal.with_polars import wind_sums
    else:
        from whitewater_apps.minimal.with_dask import wind_sums
    parts = [Part(path, 0, pq.read_metadata(path).num_rows) for path in sorted(readings.glob("*.parquet"))]
    partitions = group_parts(parts, rows=run.device.partition_rows)
    with run.workers() as workers:
        sums = wind_sums(partitions, workers=workers)
    groups = summarize(sums, KEYS.names)
    listed = groups.filter(pc.greater_equal(groups["values"], run.settings.minimum_readings))
    write_table(listed, table)
    listed.to_pandas().to_csv(csv, index=False, float_format="%.10g")
    run.note(groups=len(groups), listed=len(listed))


if __name__ == "__main__":
    main(aggregate)
