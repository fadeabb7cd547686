"""R1 array_elementwise, R7 array_random, R8 svd_tall and R9 svd_compressed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.published import array_elementwise, array_random, svd_compressed, svd_tall
from benchmarks.published.array_random import Total
from tests.benchmarks.published import answers, disagreements, tiny_work
from whitewater import engines
from whitewater.errors import IntegrityError

CPU = engines.resolve("cpu")
Matrix = npt.NDArray[np.float64]


def edge_scale(edge: int, full: int) -> float:
    return (edge / full) ** 2


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


# R7


def test_array_random_sums_a_quarter_of_the_cells_of_an_odd_number_of_chunks(tmp_path: Path) -> None:
    work = tiny_work(tmp_path, scale=edge_scale(101, 500_000))
    expected = {"cells": 51 * 51, "mean_within_5_standard_errors": True}
    assert array_random.edge(work) == 101
    assert answers("array_random", "", work) == dict.fromkeys(("tuned", "as_published", "numpy"), expected)


def test_array_random_tells_a_sum_that_is_off() -> None:
    cells = 10_000
    for off in (6, -6):
        answer = array_random.answer(Total(11 * cells + off * np.sqrt(cells), cells))
        assert answer == {"cells": cells, "mean_within_5_standard_errors": False}


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
    ("condition", "rows", "columns"), [(1.0, 5001, 20), (99.0, 5001, 20), (9.0, 20, 20), (1.0, 7, 1)]
)
def test_cholesky_is_as_precise_as_lapack(condition: float, rows: int, columns: int) -> None:
    a = of_condition(condition, rows=rows, columns=columns)
    u, s, vt = cholesky(a)
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), rtol=0, atol=1e-14 * s[0])
    np.testing.assert_allclose(u.T @ u, np.eye(columns), rtol=0, atol=1e-14)
    np.testing.assert_allclose((u * s) @ vt, a, rtol=0, atol=1e-14 * s[0])


def test_cholesky_refuses_what_it_would_lose() -> None:
    with pytest.raises(IntegrityError, match="too ill-conditioned"):
        cholesky(of_condition(101.0, rows=5001, columns=20))
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(np.full((100, 5), np.nan))


def cholesky(a: Matrix) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return svd_tall.cholesky_svd(a, device=CPU, pool=pool)


# R9


def test_svd_compressed_is_right_in_every_variant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svd_compressed, "ROW_CHUNKS", 3)
    work = tiny_work(tmp_path, scale=edge_scale(3_500, 1_000_000))
    right = {"shape": [10, 70], "orthogonal": True, "leading": True, "constant": True, "tenth": True}
    found = answers("svd_compressed", "", work)
    assert found == dict.fromkeys(("tuned", "as_published", "scikit_learn"), right)


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
