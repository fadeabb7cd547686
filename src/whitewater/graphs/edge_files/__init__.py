"""Files of edges and of vertices: lines of text, plain or gzip, and Parquet."""
