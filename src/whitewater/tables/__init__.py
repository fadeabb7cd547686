"""Tables by Dask and by Polars: raw files of many eras, quarantine, partitions of Parquet, rules, group statistics."""
