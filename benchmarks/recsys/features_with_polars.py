"""Polars: one lazy query for the statistics, one group-by and one join for each column of categories."""

from __future__ import annotations

import polars as pl

from benchmarks.recsys.features_variant import CATEGORICAL, CONTINUOUS, KEY, NULL, RARE, THRESHOLD, Work, main


def make(work: Work) -> None:
    """Make the features."""
    frame = pl.read_parquet(work.files, columns=[KEY, *CONTINUOUS, *CATEGORICAL])
    numbers = [pl.col(name).cast(pl.Float64).fill_null(0).clip(lower_bound=0).log1p() for name in CONTINUOUS]
    scaled = [((each - each.mean()) / each.std(ddof=0)).cast(pl.Float32) for each in numbers]
    ids = pl.collect_all([vocabulary(frame.lazy(), name) for name in CATEGORICAL])
    lookups = [
        pl.when(pl.col(name).is_null())
        .then(NULL)
        .otherwise(pl.col(name).replace_strict(table[name], table["id"], default=RARE, return_dtype=pl.Int32))
        .cast(pl.Int32)
        .alias(name)
        for name, table in zip(CATEGORICAL, ids, strict=True)
    ]
    frame.select(KEY, *scaled, *lookups).write_parquet(work.folder / "features.parquet", compression="uncompressed")


def vocabulary(frame: pl.LazyFrame, name: str) -> pl.LazyFrame:
    """Return the categories that are frequent enough, with their ids."""
    counts = frame.select(name).drop_nulls().group_by(name).len().filter(pl.col("len") >= THRESHOLD)
    ordered = counts.sort(["len", name], descending=[True, False]).with_row_index("id", offset=RARE + 1)
    return ordered.select(name, pl.col("id").cast(pl.Int32))


if __name__ == "__main__":
    main(make)
