"""Step `tips`: summarize tips by hour, weekday, month, payment, passengers, borough and zone."""

from pathlib import Path

from whitewater.script import main
from whitewater.step import Outputs, Run
from whitewater.tables.partitions import group_parts
from whitewater_apps.taxi.config import Tips
from whitewater_apps.taxi.tip_tables import ALL, tip_tables, trip_parts
from whitewater_apps.taxi.zones import read_zones


def tips(run: Run[Tips], *, trips: Path, zones: Path, tables: Outputs) -> None:
    """Summarize tip / fare of trips with a recorded tip, by service and overall, as Parquet or CSV by file name."""
    if run.engine == "local":
        from whitewater_apps.taxi.with_polars import tip_statistics
    else:
        from whitewater_apps.taxi.with_dask import tip_statistics
    partitions = group_parts(trip_parts(trips), rows=run.device.partition_rows)
    with run.workers() as workers:
        sums = tip_statistics(partitions, workers=workers)
    frames = tip_tables(sums, read_zones(zones), confidence=run.settings.confidence)
    for name, path in tables.items():
        table = frames[Path(name).stem.removeprefix("tips_by_")]
        if path.suffix == ".csv":
            table.to_csv(path, index=False, float_format="%.10g")
        else:
            table.to_parquet(path, index=False)
    total = frames["hour"][frames["hour"]["service"] == ALL]
    run.note(all_trips=int(total["all_trips"].sum()), trips=int(total["trips"].sum()))


if __name__ == "__main__":
    main(tips)
