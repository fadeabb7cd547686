"""R7 array_random, R8 svd_tall and R9 svd_compressed, and what they draw and decompose with."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from benchmarks.published import array_elementwise, array_random, svd_compressed, svd_tall
from benchmarks.published.array_random import Chunk, Total, chunks, sum_of_chunk, sum_of_kept
from benchmarks.published.dask_spill import spilled_since_last
from benchmarks.published.kept_rows import keep
from benchmarks.published.random_streams import (
    GOLDEN,
    CounterStream,
    LibraryStream,
    fill_normal,
    fill_uniform,
    stream,
)
from benchmarks.published.row import SEED, CallCase, load
from benchmarks.published.sketched_svd import add_block, empty_sketch, leading_svd
from benchmarks.published.tall_svd import TallSvd, largest_condition, tall_svd
from tests.published import answers, disagreements, tiny_work
from whitewater import devices
from whitewater.config.cluster import Cluster
from whitewater.errors import IntegrityError, ResourceError

CPU = devices.resolve("cpu")
Matrix = npt.NDArray[np.float64]
# The first numbers that Java's SplittableRandom makes of the seed 1234567, as its specification is commonly tested.
SPLITMIX64 = (
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
)


def edge_scale(edge: int, full: int) -> float:
    return (edge / full) ** 2


def splitmix64(seed: int, count: int) -> npt.NDArray[np.uint64]:
    z: npt.NDArray[np.uint64] = np.arange(1, count + 1, dtype=np.uint64) * GOLDEN + np.uint64(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    assert tuple(z[:5] ^ (z[:5] >> np.uint64(31))) == SPLITMIX64
    return z ^ (z >> np.uint64(31))


@pytest.fixture
def two_threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def decomposed(a: Matrix, pool: ThreadPoolExecutor) -> TallSvd:
    return tall_svd(a, device=CPU, pool=pool, threads=2)


def of_condition(condition: float, *, rows: int, columns: int) -> Matrix:
    generator = np.random.default_rng(1)
    left, _ = np.linalg.qr(generator.standard_normal((rows, columns)))
    right, _ = np.linalg.qr(generator.standard_normal((columns, columns)))
    a: Matrix = (left * np.geomspace(condition, 1, columns)) @ right
    return a


# R1


def test_array_elementwise_agrees_at_any_size(tmp_path: Path) -> None:
    for edge in (1, 2, 300):
        assert disagreements("array_elementwise", "", tiny_work(tmp_path, scale=edge_scale(edge, 10_000))) == []


def test_array_elementwise_tells_a_last_value_that_is_left_out() -> None:
    def all_but_the_last(x: Matrix) -> bool:
        return bool((np.sin(x) ** 2 + np.cos(x) ** 2 == 1).reshape(-1)[:-1].all())

    answer = array_elementwise.answer(False, of=all_but_the_last, device=CPU)
    assert answer == {"identity": False, "zeros": True, "last_off": True}


# What is drawn


def test_the_uniform_numbers_are_those_of_splitmix64() -> None:
    out = np.empty(len(SPLITMIX64))
    fill_uniform(out, np.uint64(1234567) + GOLDEN)
    assert (out == [(bits >> 11) * 2.0**-53 for bits in SPLITMIX64]).all()


def test_the_normal_numbers_are_pairs_of_box_and_muller() -> None:
    out = np.empty(20_001)
    fill_normal(out, np.uint64(1234567) + GOLDEN)
    bits, angles = splitmix64(1234567, 20_002).reshape(-1, 2).T
    radius = np.sqrt(-2 * np.log(((bits >> 11) + 1) * 2.0**-53))
    pairs = radius * np.exp(2j * np.pi * ((angles >> 13) * 2.0**-51 - 0.5 + (angles & 3)) / 4)
    expected = np.concatenate([pairs.real[:-1], pairs.imag[:-1], pairs.real[-1:]])
    np.testing.assert_allclose(out, expected, rtol=0, atol=4e-15)


@pytest.mark.parametrize("kind", [CounterStream, LibraryStream])
def test_a_stream_has_the_distributions_it_says(kind: type[CounterStream | LibraryStream]) -> None:
    numbers, out = kind(CPU, seed=3, first=5), np.empty((3, 66_667))
    numbers.normal(out)
    assert stats.kstest(out.reshape(-1), "norm").pvalue > 1e-4
    assert abs(stats.kurtosis(out.reshape(-1))) < 5 * np.sqrt(24 / out.size)
    numbers.uniform(out)
    assert stats.kstest(out.reshape(-1), "uniform").pvalue > 1e-4


def test_a_stream_goes_on_where_the_one_before_it_ends_and_repeats_nothing() -> None:
    whole, parts = np.empty(1002), np.empty((3, 334))
    stream(CPU, seed=3, first=0).uniform(whole)
    before, after = stream(CPU, seed=3, first=0), stream(CPU, seed=3, first=668)
    for part, numbers in zip(parts, (before, before, after), strict=True):
        numbers.uniform(part)
    assert (parts.reshape(-1) == whole).all()
    assert len(np.unique(whole)) == len(whole)


def test_what_the_workers_spill_is_told_once() -> None:
    import dask.array as da
    from distributed import wait

    with CPU.dask_client(Cluster(kind="threads"), threads=2, memory_limit=1_000_000) as client:
        spilled = spilled_since_last(client)
        held = da.arange(1_000_000, chunks=100_000).persist()
        wait(held)
        assert spilled()["spilled_bytes"] >= 7_000_000
        assert spilled() == {"spilled_bytes": 0.0}
        assert held.sum().compute() == 499_999_500_000


# R7


def test_array_random_sums_a_quarter_of_the_cells_of_an_odd_number_of_chunks(tmp_path: Path) -> None:
    work = tiny_work(tmp_path, scale=edge_scale(101, 500_000))
    expected = {"cells": 51 * 51, "mean_within_5_standard_errors": True}
    assert array_random.edge(work) == 101
    assert answers("array_random", "", work) == dict.fromkeys(("whitewater", "as_published", "numpy"), expected)


def test_array_random_tells_a_sum_that_is_off() -> None:
    cells = 10_000
    for off in (6, -6):
        answer = array_random.answer(Total(11 * cells + off * np.sqrt(cells), cells))
        assert answer == {"cells": cells, "mean_within_5_standard_errors": False}


@pytest.mark.parametrize(("edge", "chunk"), [(7, 3), (8, 2), (1, 1), (5, 5)])
def test_chunks_hold_each_cell_once_and_share_no_random_number(edge: int, chunk: int) -> None:
    held, end = np.zeros((edge, edge), int), 0
    for each in chunks(edge, chunk):
        held[each.rows.start : each.rows.stop, each.columns.start : each.columns.stop] += 1
        assert each.first >= end
        # A buffer takes at most one number more than it has cells, and has a row at least.
        end = each.first + len(each.rows) * (len(each.columns) + 1)
    assert (held == 1).all()


def test_a_chunk_that_begins_and_ends_anywhere_adds_up_its_even_rows_and_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = np.arange(7 * 9_999.0).reshape(7, 9_999)
    rows = iter(drawn)

    class Given:
        def normal(self, out: Matrix) -> None:
            for row in out:
                row[:] = next(rows)

    monkeypatch.setattr(array_random, "stream", lambda *_, **__: Given())
    total = sum_of_chunk(CPU, Chunk(range(3, 10), range(5, 10_004), 0))
    assert total == ((drawn[1::2, 1::2] + 11).sum(), 3 * 4_999)
    assert next(rows, None) is None


# What is kept below a limit


@pytest.mark.parametrize("limit", [0, 500, 1_700, 10**9])
def test_rows_within_a_limit_and_those_in_the_file_come_back_as_they_were(tmp_path: Path, limit: int) -> None:
    x = np.random.default_rng(1).random((23, 11))
    shape: dict[str, Any] = {"limit": limit, "threads": 2, "block_cells": 33, "file": tmp_path / "kept"}
    matrix = keep(lambda start, rows: x[start : start + rows], (23, 11), **shape)
    assert matrix.held.nbytes + matrix.file_bytes == x.nbytes
    assert matrix.held.nbytes <= limit
    assert (tmp_path / "kept").stat().st_size == matrix.file_bytes
    for rows in (range(23), range(5, 6), range(4, 17)):
        found = {start: block.copy() for start, block in matrix.blocks(rows)}
        np.testing.assert_array_equal(np.concatenate(list(found.values())), x[rows.start : rows.stop])
        assert list(found) == list(range(rows.start, rows.stop, matrix.block_rows))


def test_a_kept_file_that_lost_its_end_is_an_error(tmp_path: Path) -> None:
    shape: dict[str, Any] = {"limit": 0, "threads": 1, "block_cells": 33, "file": tmp_path / "kept"}
    matrix = keep(lambda start, rows: np.ones((rows, 11)), (23, 11), **shape)
    os.truncate(tmp_path / "kept", 23 * 88 - 1)
    with pytest.raises(ResourceError, match="is shorter than"):
        list(matrix.blocks(range(23)))


@pytest.mark.parametrize(
    ("row", "edge", "full"), [("array_random", 300, 500_000), ("svd_compressed", 3_500, 1_000_000)]
)
def test_a_limit_makes_every_variant_spill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, edge: int, full: int
) -> None:
    monkeypatch.setattr(svd_compressed, "ROW_CHUNKS", 3)
    work = tiny_work(tmp_path, scale=edge_scale(edge, full))
    case = load(row).case("limited")
    assert isinstance(case, CallCase)
    right, of_all = {}, case.size(work).bytes
    for variant in case.variants:
        with variant.prepare(work) as timed:
            right[variant.name] = timed.answer(timed.call())
            assert sum(timed.phases().values()) >= 0.9 * of_all, variant.name
    assert set(right) == {"whitewater", "as_published"}
    for answer in right.values():
        assert isinstance(answer, dict)
        assert False not in answer.values()
    assert right["whitewater"] == right["as_published"]


def test_a_kept_sum_is_of_even_rows_and_columns(tmp_path: Path) -> None:
    x = np.random.default_rng(1).random((23, 11))
    shape: dict[str, Any] = {"limit": 1_000, "threads": 1, "block_cells": 33, "file": tmp_path / "kept"}
    matrix = keep(lambda start, rows: x[start : start + rows], (23, 11), **shape)
    total = sum_of_kept(CPU, matrix, range(5, 20))
    assert total.cells == 7 * 6
    np.testing.assert_allclose(total.sum, (x[6:20:2, ::2] + 1).sum())


# R8


def test_svd_tall_is_lapacks_in_every_variant(tmp_path: Path) -> None:
    assert disagreements("svd_tall", "", tiny_work(tmp_path, scale=0.0003)) == []


@pytest.mark.parametrize("wrong", ["rows swapped", "a value too large", "a sign"])
def test_svd_tall_tells_factors_that_are_wrong(tmp_path: Path, wrong: str) -> None:
    x = svd_tall.draw(tiny_work(tmp_path, scale=1e-5))
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    right = svd_tall.of_host(x, 33, (u, s, vt))
    if wrong == "rows swapped":
        u[[3, 70]] = u[[70, 3]]
    elif wrong == "a value too large":
        s[7] *= 1 + 1e-8
    else:
        vt[4] *= -1
    assert isinstance(right, dict)
    assert (right["orthogonal"], right["product_is_x"]) == (True, True)
    assert svd_tall.of_host(x, 33, (u, s, vt)) != right


@pytest.mark.parametrize(
    ("condition", "rows", "columns", "cholesky"),
    [
        (1.0, 5001, 20, True),
        (99.0, 5001, 20, True),
        (9.0, 20, 20, True),
        (1.0, 7, 1, True),
        (101.0, 5001, 20, False),
        (1e9, 5001, 20, False),
        (1e18, 41, 20, False),
    ],
)
def test_a_tall_svd_is_as_precise_as_lapacks_whatever_the_condition(
    two_threads: ThreadPoolExecutor, condition: float, rows: int, columns: int, cholesky: bool
) -> None:
    a = of_condition(condition, rows=rows, columns=columns)
    svd = decomposed(a, two_threads)
    assert svd.cholesky is cholesky
    np.testing.assert_allclose(svd.s, np.linalg.svd(a, compute_uv=False), rtol=0, atol=1e-14 * svd.s[0])
    np.testing.assert_allclose(svd.u.T @ svd.u, np.eye(columns), rtol=0, atol=1e-14)
    np.testing.assert_allclose((svd.u * svd.s) @ svd.vt, a, rtol=0, atol=1e-14 * svd.s[0])


@pytest.mark.parametrize("factor", [0.0, 1e-200])
def test_a_tall_svd_survives_squares_that_vanish(two_threads: ThreadPoolExecutor, factor: float) -> None:
    a = np.random.default_rng(1).random((100, 5)) * factor
    svd = decomposed(a, two_threads)
    np.testing.assert_allclose(svd.s, np.linalg.svd(a, compute_uv=False), rtol=1e-13)
    np.testing.assert_allclose(svd.u.T @ svd.u, np.eye(5), rtol=0, atol=1e-14)


def test_a_tall_svd_refuses_nan(two_threads: ThreadPoolExecutor) -> None:
    a = np.random.default_rng(1).random((100, 5))
    a[50, 2] = np.nan
    with pytest.raises(np.linalg.LinAlgError):
        decomposed(a, two_threads)


def test_very_many_rows_lower_the_condition_up_to_which_cholesky_is_used() -> None:
    assert largest_condition((10_000_000, 20)) == 100.0
    assert 20 < largest_condition((10_000_000_000, 20)) < 30


# R9


def test_svd_compressed_is_right_in_every_variant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svd_compressed, "ROW_CHUNKS", 3)
    work = tiny_work(tmp_path, scale=edge_scale(3_500, 1_000_000))
    right = {"shape": [10, 70], "orthogonal": True, "leading": True, "constant": True, "tenth": True}
    found = answers("svd_compressed", "", work)
    assert found == dict.fromkeys(("whitewater", "as_published", "scikit_learn"), right)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [("rows", "leading"), ("columns", "constant"), ("vectors", "orthogonal"), ("noise", "tenth"), ("count", "shape")],
)
def test_svd_compressed_tells_a_result_that_is_wrong(tmp_path: Path, wrong: str, told: str) -> None:
    work = tiny_work(tmp_path, scale=edge_scale(3_500, 1_000_000))
    x: Any = np.random.default_rng(1).random(svd_compressed.shape(work))
    if wrong == "rows":
        x = x[: len(x) // 5 * 4]
    elif wrong == "columns":
        x[:, :18] = 0
    elif wrong == "noise":
        x = (x + 0.5) / 2
    squares, vectors = np.linalg.eigh(x.T @ x)
    s, v = np.sqrt(squares[::-1]), vectors.T[::-1].copy()
    if wrong == "vectors":
        v[3] += 1e-6 * v[2]
    answer = svd_compressed.answer(work, (s, v[: 9 if wrong == "count" else 10]))
    assert isinstance(answer, dict)
    assert answer[told] != (True if told != "shape" else [10, 70])


def test_one_pass_in_uneven_blocks_gives_what_two_passes_with_householder_give() -> None:
    generator = np.random.default_rng(1)
    a, test_matrix = generator.random((701, 90)), generator.standard_normal((90, 20))
    sketch = empty_sketch(test_matrix, device=CPU)
    for start, stop in ((0, 1), (1, 300), (300, 701)):
        add_block(sketch, a[start:stop], test_matrix)
    s, v = leading_svd(sketch, 10, device=CPU)
    q, _ = np.linalg.qr(a @ test_matrix)
    _, expected_s, expected_v = np.linalg.svd(q.T @ a, full_matrices=False)
    np.testing.assert_allclose(s, expected_s[:10], rtol=1e-12)
    np.testing.assert_allclose(abs((v * expected_v[:10]).sum(axis=1)), 1, rtol=1e-9)


@pytest.mark.parametrize("condition", [1e6, 1e18])
def test_one_pass_refuses_what_it_would_lose(condition: float) -> None:
    identity = np.eye(20)
    sketch = empty_sketch(identity, device=CPU)
    add_block(sketch, of_condition(condition, rows=100, columns=20), identity)
    with pytest.raises(IntegrityError, match="too far apart for one pass"):
        leading_svd(sketch, 10, device=CPU)


def test_the_sketch_is_of_all_rows_that_are_drawn() -> None:
    columns = 1_000
    test_matrix = np.random.default_rng(1).standard_normal((columns, 20))
    x = np.empty((600, columns))
    stream(CPU, seed=SEED, first=2 * 400 * columns).uniform(x)
    sketch = svd_compressed.sketch_of(CPU, test_matrix, range(400, 1_000))
    np.testing.assert_allclose(sketch.ya, (x @ test_matrix).T @ x, rtol=1e-9)
