"""Small logs of clicks with what logs have: nulls, long tails, empty texts, a constant column, one of nulls only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.recsys.graph import Node
from whitewater.recsys.log_folder import LogColumn, LogWriter, file_name
from whitewater.recsys.operators import (
    Categorify,
    Clip,
    FillMedian,
    FillMissing,
    HashBucket,
    HashedCross,
    LogOp,
    Normalize,
    Rename,
    TargetEncoding,
)

OWN = (
    LogColumn("I1", "continuous", "int32"),
    LogColumn("I2", "continuous", "float64"),
    LogColumn("I3", "continuous", "int32"),
    LogColumn("C1", "categorical", "string"),
    LogColumn("C2", "categorical", "string"),
    LogColumn("C3", "categorical", "int64"),
    LogColumn("C4", "categorical", "string"),
)


def clicks(rows: int, *, seed: int = 0) -> pa.Table:
    """Return rows of a log; ``row_id`` counts them."""
    generator = np.random.default_rng(seed)
    numbers = np.arange(rows)
    words = np.array(["", "a", "bb", "é", "日本", "x" * 40, *(f"w{number}" for number in range(60))])
    return pa.table(
        {
            "row_id": pa.array(numbers, pa.int64()),
            "day": pa.array(numbers * 3 // max(rows, 1), pa.int32()),
            "time": pa.array(numbers * 100, pa.int64()),
            "label": pa.array(generator.integers(0, 2, rows), pa.int8()),
            "I1": pa.array(generator.geometric(0.05, rows), pa.int32(), mask=generator.random(rows) < 0.2),
            "I2": pa.array(generator.lognormal(0, 2, rows), mask=generator.random(rows) < 0.1),
            "I3": pa.array(np.full(rows, 7), pa.int32()),
            "C1": pa.array(words[np.minimum(generator.zipf(1.3, rows), len(words)) - 1], mask=numbers % 11 == 3),
            "C2": pa.array(words[generator.integers(0, 6, rows)]),
            "C3": pa.array(
                generator.zipf(1.5, rows).clip(max=2**40) - 2, pa.int64(), mask=generator.random(rows) < 0.1
            ),
            "C4": pa.nulls(rows, pa.string()),
        }
    )


def write_log(table: pa.Table, folder: Path, *, row_group_rows: int = 1000) -> Path:
    """Write rows as a log, a file for each day."""
    writer = LogWriter(folder, "files", OWN, "seconds", row_group_rows)
    files = []
    days = table["day"].to_numpy()
    for day in range(int(days.max()) + 1):
        chosen = table.filter(pa.array(days == day))
        if chosen.num_rows:
            with writer.file(file_name(day), day=day) as file:
                file.write(chosen)
            files.append(file.file)
    writer.finish(files)
    return folder


def write_parts(table: pa.Table, folder: Path, sizes: list[int]) -> Path:
    """Write rows as Parquet files of so many rows each."""
    folder.mkdir()
    start = 0
    for number, size in enumerate(sizes):
        pq.write_table(table.slice(start, size), folder / f"{number:03d}.parquet")
        start += size
    return folder


def features() -> Node:
    """Return features of `clicks` by many operators, learnt in two phases."""
    numbers = ["I1", "I2", "I3"] >> FillMedian() >> Clip(min_value=0) >> LogOp() >> Normalize()
    categories = ["C1", "C2", "C3", "C4", ["C1", "C3"]] >> Categorify(freq_threshold=3, encode_type="combo")
    hashed = (["C1", "C3"] >> HashBucket(num_buckets=50) >> Rename(postfix="_hash")) + (
        [["C1", "C2"]] >> HashedCross(num_buckets=1000)
    )
    encoded = ["C1", ["C1", "C2"]] >> TargetEncoding(target="label", kfold=4, p_smooth=5)
    filled = ["I2"] >> FillMissing(fill_val=-1) >> Rename(postfix="_filled")
    return numbers + categories + hashed + encoded + filled
