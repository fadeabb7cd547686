"""The taxi benchmark in Polars: lazy scans on the streaming engine.

Of the forms tried, these were the fastest: one group-by of hour of week and zone as one integer key, rolled up after
that; trips of Parquet filtered by a column, because a filter by the rules is handed to the scan, which takes longer,
unless the trips are also written; CSV times as text, parsed by their format; the trips written month by month in the
pass that aggregates them.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from benchmarks.taxi.variant import (
    CARD,
    CSV_COLUMNS,
    MAXIMUM_FARE,
    MAXIMUM_HOURS,
    MAXIMUM_MILES,
    Answer,
    Work,
    answer,
    main,
)

TIMES = ("tpep_pickup_datetime", "tpep_dropoff_datetime")
TYPES = {"integer": pl.Int64(), "real": pl.Float64(), "text": pl.String(), "timestamp": pl.String()}
HOUR = 3_600_000_000
ZONES = 512
BY_CARD = pl.col("payment_type") == CARD
TIP_FRACTION = pl.col("tip_amount") / pl.col("fare_amount")
SUM_OF_FLOATS = TIP_FRACTION.sum()


def compute(work: Work, *, total: pl.Expr = SUM_OF_FLOATS, unit: int = 1) -> Answer:
    """Aggregate, and write the cleaned trips where that is asked for; ``total`` is counted in 1 / ``unit``."""
    if work.output is None:
        groups = _tips_by_hour_and_zone(_clean_by_card(work), total).collect(engine="streaming")
    else:
        work.output.mkdir(parents=True)
        groups = pl.concat(
            [_write_back(file, work.output / f"{number:03d}.parquet", total) for number, file in enumerate(work.files)]
        )
    return _roll_up(groups, work, unit)


def _clean_by_card(work: Work) -> pl.LazyFrame:
    if not work.csv:
        is_counted = pl.all_horizontal(*_rules(), BY_CARD)
        return pl.scan_parquet(list(work.files)).with_columns(is_counted=is_counted).filter("is_counted")
    schema = {name: TYPES[kind] for name, kind in CSV_COLUMNS.items()}
    trips = pl.concat([pl.scan_csv(file, schema=schema) for file in work.files])
    times = pl.col(*TIMES).str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us")
    return trips.with_columns(times).filter(*_rules(), BY_CARD)


def _rules() -> list[pl.Expr]:
    pickup, dropoff = (pl.col(name).to_physical() for name in TIMES)
    return [
        pl.col("fare_amount") > 0,
        pl.col("fare_amount") <= MAXIMUM_FARE,
        pl.col("tip_amount") >= 0,
        pl.col("trip_distance").is_between(0, MAXIMUM_MILES),
        dropoff - pickup > 0,
        dropoff - pickup <= MAXIMUM_HOURS * HOUR,
    ]


def _tips_by_hour_and_zone(trips: pl.LazyFrame, total: pl.Expr) -> pl.LazyFrame:
    # Microseconds since 1970-01-01, a Thursday: 72 hours after the start of its week.
    hour_of_week = (pl.col(TIMES[0]).to_physical() // HOUR + 72) % 168
    return trips.group_by(key=hour_of_week * ZONES + pl.col("PULocationID")).agg(trips=pl.len(), total=total)


def _write_back(file: Path, written: Path, total: pl.Expr) -> pl.DataFrame:
    cleaned = pl.scan_parquet(file).filter(*_rules())
    sink = cleaned.sink_parquet(written, compression="snappy", maintain_order=False, lazy=True)
    _, groups = pl.collect_all([sink, _tips_by_hour_and_zone(cleaned.filter(BY_CARD), total)], engine="streaming")
    return groups


def _roll_up(groups: pl.DataFrame, work: Work, unit: int) -> Answer:
    zones = pl.read_csv(work.zones, columns=["LocationID", "Borough"], null_values=[])
    hour_of_week = pl.col("key") // ZONES
    keyed = groups.with_columns(
        weekday=hour_of_week // 24, hour=hour_of_week % 24, LocationID=pl.col("key") % ZONES
    ).join(zones, on="LocationID", how="left")
    mean = pl.col("total").sum() / unit / pl.col("trips").sum()
    by_hour, by_weekday_hour, by_borough = (
        keyed.group_by(*keys).agg(pl.col("trips").sum(), mean=mean).rows()
        for keys in (["hour"], ["weekday", "hour"], ["Borough"])
    )
    return answer(by_hour, by_weekday_hour, by_borough)


if __name__ == "__main__":
    main(compute)
