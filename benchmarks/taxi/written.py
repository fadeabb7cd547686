"""What the variants wrote, in a form in which right files are equal whatever tool wrote them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pydantic import JsonValue

# Each column as the raw files name it, and as Whitewater's schema does. Not here: store_and_fwd_flag, a text in the raw
# files, RatecodeID, whose 99 Whitewater reads as null, and airport_fee, which is null throughout.
COLUMNS = {
    "VendorID": "vendor_id",
    "tpep_pickup_datetime": "pickup_datetime",
    "tpep_dropoff_datetime": "dropoff_datetime",
    "passenger_count": "passenger_count",
    "trip_distance": "trip_distance",
    "PULocationID": "pickup_location_id",
    "DOLocationID": "dropoff_location_id",
    "payment_type": "payment_type",
    "fare_amount": "fare_amount",
    "extra": "extra",
    "mta_tax": "mta_tax",
    "tip_amount": "tip_amount",
    "tolls_amount": "tolls_amount",
    "improvement_surcharge": "improvement_surcharge",
    "total_amount": "total_amount",
    "congestion_surcharge": "congestion_surcharge",
}


def inspect_written(directory: Path) -> JsonValue:
    """Return the rows, the codecs, and the sum and the nulls of each column of a directory of Parquet files.

    Sums of times are in whole seconds since 1970, as integers, so that they are exact.
    """
    files = sorted(str(file) for file in directory.rglob("*.parquet"))
    if not files:
        return "nothing was written"
    trips = ds.dataset(files)
    names = {raw: raw if raw in trips.schema.names else ours for raw, ours in COLUMNS.items()}
    rows = 0
    sums: dict[str, float] = dict.fromkeys(names, 0)
    nulls = dict.fromkeys(names, 0)
    for batch in trips.to_batches(columns=list(names.values())):
        rows += batch.num_rows
        for raw, name in names.items():
            values = _numbers(batch.column(name))
            sums[raw] += pc.sum(values).as_py() or 0
            nulls[raw] += values.null_count
    return {"rows": rows, "codecs": _codecs(files), "sums": dict(sums), "nulls": dict(nulls)}


def _numbers(values: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us")).cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    return values.cast(pa.float64())


def _codecs(files: list[str]) -> str:
    groups = (pq.read_metadata(file).row_group(0) for file in files)
    codecs = {str(group.column(column).compression) for group in groups for column in range(group.num_columns)}
    return ", ".join(sorted(codecs))
