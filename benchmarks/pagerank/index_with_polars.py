"""Polars: split, explode, group by, sort, on the streaming engine."""

from __future__ import annotations

import polars as pl

from benchmarks.pagerank.index_variant import POSTINGS, TERMS, Work, main


def build(work: Work) -> None:
    """Build the index."""
    postings = (
        pl.scan_parquet(work.files)
        .select(document=pl.col("vertex").cast(pl.Int32), term=pl.col("text").str.split(" "))
        .explode("term")
        .filter(pl.col("term") != "")
        .group_by("term", "document")
        .agg(frequency=pl.len().cast(pl.Int32))
        .sort("term", "document")
        .collect(engine="streaming")
    )
    postings.select("document", "frequency").write_parquet(work.folder / POSTINGS, compression="snappy")
    terms = postings.group_by("term", maintain_order=True).agg(document_frequency=pl.len().cast(pl.Int32))
    terms.write_parquet(work.folder / TERMS, compression="snappy")


if __name__ == "__main__":
    main(build)
