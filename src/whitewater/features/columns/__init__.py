"""Columns of a block of rows, and the Parquet files that they are read from and written to."""
