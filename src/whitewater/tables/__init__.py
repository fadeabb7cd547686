"""Tables: columns and blocks of rows on either device, Parquet and text in and out, categories, group statistics."""
