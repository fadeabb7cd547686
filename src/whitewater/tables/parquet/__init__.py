"""Parquet files, read and written on either device."""
