"""The taxi benchmark in DuckDB: one SQL query, after a COPY where the trips are written.

Of the forms tried, these were the fastest: one group-by of hour of week and zone, rolled up after that; durations as
integers; CSV columns with their types, not sniffed; one output file a thread, in no order.
"""

from __future__ import annotations

import duckdb

from benchmarks.taxi.variant import Answer, Work, answer, main

READ_PARQUET = "CREATE TEMP VIEW trips AS SELECT * FROM read_parquet(getvariable('files'))"
READ_CSV = """
    CREATE TEMP VIEW trips AS SELECT * FROM read_csv(
        getvariable('files'), header = true, auto_detect = false, delim = ',', columns = {
            'VendorID': 'INTEGER', 'tpep_pickup_datetime': 'TIMESTAMP', 'tpep_dropoff_datetime': 'TIMESTAMP',
            'passenger_count': 'INTEGER', 'trip_distance': 'DOUBLE', 'RatecodeID': 'INTEGER',
            'store_and_fwd_flag': 'VARCHAR', 'PULocationID': 'INTEGER', 'DOLocationID': 'INTEGER',
            'payment_type': 'INTEGER', 'fare_amount': 'DOUBLE', 'extra': 'DOUBLE', 'mta_tax': 'DOUBLE',
            'tip_amount': 'DOUBLE', 'tolls_amount': 'DOUBLE', 'improvement_surcharge': 'DOUBLE',
            'total_amount': 'DOUBLE', 'congestion_surcharge': 'DOUBLE'
        }
    )
"""
CLEANED = """
    CREATE TEMP VIEW cleaned AS
    SELECT * FROM trips
    WHERE fare_amount > 0 AND fare_amount <= 1000 AND tip_amount >= 0 AND trip_distance BETWEEN 0 AND 200
        AND tpep_dropoff_datetime > tpep_pickup_datetime
        AND epoch_us(tpep_dropoff_datetime) - epoch_us(tpep_pickup_datetime) <= 6 * 3600000000
"""
WRITE = """
    COPY cleaned TO $output (FORMAT parquet, COMPRESSION snappy, PER_THREAD_OUTPUT true)
"""
# 1970-01-01 was a Thursday: 72 hours after the start of its week.
GROUP = """
    CREATE TEMP TABLE groups AS
    SELECT (epoch_us(tpep_pickup_datetime) // 3600000000 + 72) % 168 AS hour_of_week, PULocationID AS location,
        count(*) AS trips, sum(tip_amount / fare_amount) AS total
    FROM cleaned WHERE payment_type = 1 GROUP BY ALL
"""
BY_HOUR = "SELECT hour_of_week % 24, sum(trips)::BIGINT, sum(total) / sum(trips) FROM groups GROUP BY ALL"
BY_WEEKDAY_HOUR = """
    SELECT hour_of_week // 24, hour_of_week % 24, sum(trips)::BIGINT, sum(total) / sum(trips) FROM groups GROUP BY ALL
"""
BY_BOROUGH = """
    SELECT Borough, sum(trips)::BIGINT, sum(total) / sum(trips)
    FROM groups LEFT JOIN read_csv($zones, all_varchar = true) ON location = LocationID::INTEGER GROUP BY ALL
"""


def compute(work: Work) -> Answer:
    """Aggregate, and write the cleaned trips where that is asked for."""
    connection = duckdb.connect(config={"threads": work.threads, "preserve_insertion_order": False})
    connection.execute("SET VARIABLE files = $files", {"files": [str(file) for file in work.files]})
    connection.execute(READ_CSV if work.csv else READ_PARQUET)
    connection.execute(CLEANED)
    if work.output is not None:
        connection.execute(WRITE, {"output": str(work.output)})
    connection.execute(GROUP)
    return answer(
        connection.execute(BY_HOUR).fetchall(),
        connection.execute(BY_WEEKDAY_HOUR).fetchall(),
        connection.execute(BY_BOROUGH, {"zones": str(work.zones)}).fetchall(),
    )


if __name__ == "__main__":
    main(compute)
