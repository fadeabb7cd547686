"""The taxi benchmark in DuckDB: one SQL query, after a COPY where the trips are written.

Of the forms tried, these were the fastest: one group-by of hour of week and zone, rolled up after that; durations as
integers; CSV columns with their types, not sniffed; one output file a thread, in no order.
"""

from __future__ import annotations

import duckdb

from benchmarks.taxi.variant import CARD, CSV_COLUMNS, MAXIMUM_FARE, MAXIMUM_HOURS, MAXIMUM_MILES, Answer, Work, answer, main

TYPES = {"integer": "INTEGER", "real": "DOUBLE", "text": "VARCHAR", "timestamp": "TIMESTAMP"}
CLEAN = f"""
    fare_amount > 0 AND fare_amount <= {MAXIMUM_FARE} AND tip_amount >= 0
    AND trip_distance BETWEEN 0 AND {MAXIMUM_MILES}
    AND tpep_dropoff_datetime > tpep_pickup_datetime
    AND epoch_us(tpep_dropoff_datetime) - epoch_us(tpep_pickup_datetime) <= {MAXIMUM_HOURS} * 3600000000"""
# 1970-01-01 was a Thursday: 72 hours after the start of its week.
TIPS_BY_HOUR_AND_ZONE = f"""
    CREATE TEMP TABLE groups AS
    SELECT (epoch_us(tpep_pickup_datetime) // 3600000000 + 72) % 168 AS hour_of_week, PULocationID AS location,
        count(*) AS trips, sum(tip_amount / fare_amount) AS total
    FROM {{source}} WHERE payment_type = {CARD} AND {CLEAN} GROUP BY ALL"""  # noqa: S608


def compute(work: Work) -> Answer:
    """Aggregate, and write the cleaned trips where that is asked for."""
    connection = duckdb.connect(config={"threads": work.threads, "preserve_insertion_order": False})
    source = _source(work)
    if work.output is not None:
        connection.execute(
            f"COPY (FROM {source} WHERE {CLEAN}) TO '{work.output}' "
            "(FORMAT parquet, COMPRESSION snappy, PER_THREAD_OUTPUT true)"
        )
    connection.execute(TIPS_BY_HOUR_AND_ZONE.format(source=source))
    keyed = f"(SELECT * FROM groups LEFT JOIN read_csv('{work.zones}', all_varchar = true) ON location = LocationID::INTEGER)"
    by_hour, by_weekday_hour, by_borough = (
        connection.execute(f"SELECT {keys}, sum(trips)::BIGINT, sum(total) / sum(trips) FROM {keyed} GROUP BY ALL").fetchall()
        for keys in ("hour_of_week % 24", "hour_of_week // 24, hour_of_week % 24", "Borough")
    )
    return answer(by_hour, by_weekday_hour, by_borough)


def _source(work: Work) -> str:
    files = [str(file) for file in work.files]
    if not work.csv:
        return f"read_parquet({files})"
    columns = {name: TYPES[kind] for name, kind in CSV_COLUMNS.items()}
    return f"read_csv({files}, columns = {columns}, header = true, auto_detect = false, delim = ',')"


if __name__ == "__main__":
    main(compute)
