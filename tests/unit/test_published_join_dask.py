from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.published import join_dask, limited_join
from benchmarks.published.join_dask import dask_join, join_spilling, join_within_limit, memory_limit
from benchmarks.published.join_dask_kernels import index
from benchmarks.published.limited_join import Left, join, join_within
from tests.published import disagreements, tiny_work
from whitewater.config.cluster import Cluster
from whitewater.errors import ResourceError

SCALE = 2e-5
RIGHT_KEYS = {
    "one": [4],
    "dense, with gaps, below 0": [-3, 4, -3, 0, 4, 4, -1],
    "far apart": [-(2**62), 2**62, 0, 2**62, -(2**63), 2**63 - 1],
}


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_join, "SLICE_ROWS", 1000)
    monkeypatch.setattr(limited_join, "BUFFER_SHARE", 1.0)


@pytest.mark.parametrize("case", ["join", "spill", "sum"])
def test_every_variant_gives_the_answer_of_the_oracle(case: str, tmp_path: Path, small_slices: None) -> None:
    assert disagreements("join_dask", case, tiny_work(tmp_path, scale=SCALE)) == []


@pytest.mark.parametrize("keys", RIGHT_KEYS.values(), ids=RIGHT_KEYS.keys())
def test_join_has_the_rows_of_pandas_in_the_order_of_the_left(
    keys: list[int], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited_join, "SLICE_ROWS", 7)
    rng = np.random.default_rng(0)
    right = pd.DataFrame({"id": keys, "y": rng.random(len(keys))})
    # Keys that the right does not have are below, between and above those that it has.
    left = pd.DataFrame({"x": rng.random(50), "id": rng.choice(np.array([*keys, -(2**63), -4, 2, 5, 2**63 - 1]), 50)})
    expected = left.merge(right, on="id", how="inner")

    columns = join(Left(array(left.x), array(left.id)), (array(right.id), array(right.y)), pool=pool)

    pd.testing.assert_frame_equal(pd.DataFrame(dict(zip(("x", "id", "y"), columns, strict=True))), expected)


def array(column: Any) -> Any:
    return column.to_numpy()


def test_a_join_of_no_left_rows_is_empty(pool: ThreadPoolExecutor) -> None:
    columns = join(Left(np.zeros(0), np.zeros(0, np.int64)), (np.array([1]), np.array([0.5])), pool=pool)

    assert [len(column) for column in columns] == [0, 0, 0]


def limited(limit: int, pool: ThreadPoolExecutor, file: Path) -> limited_join.Joined:
    keys = np.arange(5000) % 10
    left = Left(np.arange(5000.0), keys)
    return join_within(left, (np.arange(10), np.arange(10.0)), pool=pool, threads=2, limit=limit, file=file)


def test_what_is_above_the_limit_is_in_the_file_and_nothing_is_lost(
    tmp_path: Path, pool: ThreadPoolExecutor, small_slices: None
) -> None:
    limit = 16 * 5000 + 2 * 24 * 1000 + 24 * 2500 + 1000

    joined = limited(limit, pool, tmp_path / "result")

    assert [len(key) for _, key, _ in joined.parts()] == [2000, 1000, 1000, 1000]
    assert limit - 24 * 1000 < joined.held_bytes <= limit
    assert (tmp_path / "result").stat().st_size == joined.file_bytes == 24 * 3000
    x, ids, y = (np.concatenate(column) for column in zip(*joined.parts(), strict=True))
    np.testing.assert_array_equal(x, np.arange(5000.0))
    np.testing.assert_array_equal(ids, np.arange(5000) % 10)
    np.testing.assert_array_equal(y, ids)


def test_buffers_of_many_threads_are_small_beside_a_small_limit(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    left, right = Left(np.arange(5000.0), np.arange(5000) % 10), (np.arange(10), np.arange(10.0))
    limit = 16 * 5000 + 30_000

    joined = join_within(left, right, pool=pool, threads=64, limit=limit, file=tmp_path / "result")

    assert sum(len(key) for _, key, _ in joined.parts()) == 5000
    assert 0 < joined.file_bytes < 24 * 5000
    assert limit - 24 * 10 < joined.held_bytes <= limit


def test_a_limit_below_the_tables_is_refused(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    with pytest.raises(ResourceError, match="above the limit of 80,000"):
        limited(80_000, pool, tmp_path / "result")


def test_bytes_of_an_index_are_those_of_all_its_arrays() -> None:
    dense, sparse = index(np.array([3, 5]), np.zeros(2)), index(np.array([3, 2**40]), np.zeros(2))

    assert (dense.nbytes, sparse.nbytes) == (8 * (4 + 2), 8 * (3 + 2 + 2))


def test_under_the_limit_part_of_the_result_is_on_disk(tmp_path: Path, small_slices: None) -> None:
    work = tiny_work(tmp_path, scale=SCALE)
    with join_within_limit(work) as timed:
        timed.answer(timed.call())

    assert timed.phases()["spilled_bytes"] > 0
    assert timed.phases()["held_bytes"] <= memory_limit(work)


@pytest.fixture
def calls_of_persisted_joins(tmp_path: Path) -> Iterator[tuple[Any, Callable[[], Any]]]:
    with dask_join(tiny_work(tmp_path, scale=SCALE)) as opened:
        yield opened


def test_a_result_that_is_still_held_is_computed_again(
    calls_of_persisted_joins: tuple[Any, Callable[[], Any]],
) -> None:
    from distributed import futures_of

    _, call = calls_of_persisted_joins
    first, second = call(), call()

    assert {future.key for future in futures_of(first)}.isdisjoint(future.key for future in futures_of(second))


def test_workers_that_spill_nothing_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_dask, "MEMORY_SHARE", 100.0)
    work = replace(tiny_work(tmp_path, scale=SCALE), cluster=Cluster(kind="threads"))

    with join_spilling(work) as timed, pytest.raises(ResourceError, match="no worker wrote to disk"):
        timed.answer(timed.call())
