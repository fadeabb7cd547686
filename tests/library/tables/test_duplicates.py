"""Duplicates of a file are found exactly, for any partitioning, in pieces of bounded size."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from whitewater.engines.workers import Workers, thread_workers
from whitewater.tables import with_polars
from whitewater.tables.partitions import Part, Partition, group_parts
from whitewater.tables.with_polars import mark_duplicates

SCHEMA = pa.schema({"time": pa.timestamp("us"), "fare": pa.float64(), "zone": pa.int16(), "flag": pa.int8()})
KEY = ("time", "fare")


@pytest.fixture
def workers() -> Iterator[Workers]:
    with thread_workers(2) as found:
        yield found


def write_parts(folder: Path, *, rows_a_part: int) -> list[Part]:
    """Write two files of trips of which many are equal in their key, and some in all columns; the second lacks one."""
    random = np.random.default_rng(1)
    parts = []
    for file in range(2):
        rows = 300
        time = random.integers(0, 6, rows).astype("datetime64[s]").astype("datetime64[us]")
        columns = {
            "time": pa.array(time, mask=random.random(rows) < 0.1),
            "fare": pa.array(random.choice([1.5, 2.5, -0.0, 0.0], rows), mask=random.random(rows) < 0.1),
            "zone": pa.array(random.integers(1, 4, rows), pa.int16(), mask=random.random(rows) < 0.2),
            "flag": pa.array(random.integers(0, 2, rows), pa.int8()),
        }
        table = pa.table(columns).drop_columns(["flag"] if file else [])
        for start in range(0, rows, rows_a_part):
            path = folder / f"part-{file}-{start:03d}.parquet"
            piece = table.slice(start, rows_a_part)
            pq.write_table(piece, path)
            parts.append(Part(path, file, len(piece)))
    return parts


def expected(parts: Sequence[Part]) -> list[bool]:
    """Return which rows equal an earlier one of their file, by pandas, with the bits of numbers as what is compared."""
    tables = [pq.read_table(part.path).to_pandas().assign(file=part.file) for part in parts]
    rows = pd.concat(tables, ignore_index=True)
    rows["fare"] = rows["fare"].to_numpy().view("int64")
    return list(rows.duplicated())


def found(partitions: Sequence[Partition], folder: Path, workers: Workers) -> list[bool]:
    folder.mkdir()
    marked = mark_duplicates(partitions, SCHEMA, hashed=KEY, folder=folder, workers=workers)
    return list(np.concatenate([partition.duplicates() for partition in marked]))


@pytest.mark.parametrize("rows", [10_000, 250, 40])
def test_they_are_those_of_pandas_for_any_partitioning(
    tmp_path: Path, rows: int, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(with_polars, "HASHES", 100)
    monkeypatch.setattr(with_polars, "ROWS", 16)
    parts = write_parts(tmp_path, rows_a_part=40)
    right = expected(parts)
    assert 100 < sum(right) < 500
    assert found(group_parts(parts, rows=rows), tmp_path / "found", workers) == right


def test_a_task_that_runs_again_as_its_worker_died_finds_the_same(
    tmp_path: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(function: Any, tasks: Sequence[Any], *, label: str) -> Iterator[Any]:
        list(map(function, tasks))
        return map(function, tasks)

    monkeypatch.setattr(workers, "map", twice)
    parts = write_parts(tmp_path, rows_a_part=40)
    assert found(group_parts(parts, rows=250), tmp_path / "found", workers) == expected(parts)


def test_rows_of_one_hash_are_told_apart_by_content(
    tmp_path: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pl.DataFrame, "hash_rows", lambda rows: pl.Series(np.ones(len(rows), np.uint64)))
    parts = write_parts(tmp_path, rows_a_part=100)
    assert found(group_parts(parts, rows=100), tmp_path / "found", workers) == expected(parts)


def test_none_are_found_where_there_are_none(tmp_path: Path, workers: Workers) -> None:
    pq.write_table(pa.table({"time": pa.array([1, 2], pa.timestamp("us")), "fare": [1.0, 1.0]}), tmp_path / "a.parquet")
    partitions = group_parts([Part(tmp_path / "a.parquet", 0, 2)], rows=10)
    assert found(partitions, tmp_path / "found", workers) == [False, False]
    assert mark_duplicates([], SCHEMA, hashed=KEY, folder=tmp_path, workers=workers) == []
