"""PageRank by power iteration."""
