"""Rows of genotypes among the published tables: SVD in memory, SVD from Zarr, and genotypes packed four a byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.genomics import simulated_store, with_scikit_learn, with_whitewater
from benchmarks.genomics.variant import Work as Task
from benchmarks.measure import differences
from benchmarks.process_tree import MeasurementError
from benchmarks.published import dask_spill, packing, svd_genotypes, svd_zarr, svd_zarr_dask, two_bit
from benchmarks.published.row import Work
from benchmarks.report import Size
from tests.benchmarks.published import answers, disagreements, tiny_work
from whitewater import engines
from whitewater.genotypes.genotypes import Genotypes

Reals = npt.NDArray[np.float64]
CPU = engines.resolve("cpu")


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return tiny_work(tmp_path, scale=1e-5)  # 31,623 x 64


def of_values(values: npt.NDArray[Any]) -> Genotypes:
    return two_bit.packed(np.ascontiguousarray(values, np.uint8), CPU)


@pytest.mark.parametrize(("rows", "columns"), [(1, 4), (129, 20), (1000, 448)])
def test_packed_genotypes_come_back_as_they_were(rows: int, columns: int) -> None:
    values = np.random.default_rng(1).integers(0, 4, (rows, columns), dtype=np.uint8)
    genotypes = of_values(values)
    assert genotypes.codes.nbytes == values.nbytes // 4
    slabs = [slab[:, genotypes.sample_columns(np)] for _, slab in two_bit.slabs(genotypes, CPU)]
    np.testing.assert_array_equal(np.concatenate(slabs), values)
    np.testing.assert_array_equal(packing.decompress(packing.compress(values), CPU), values)
    np.testing.assert_array_equal(packing.compress(values), genotypes.codes)


@pytest.mark.parametrize("rows", [1, 127, 5000])
def test_one_pass_gives_the_product_with_the_covariance(rows: int) -> None:
    random = np.random.default_rng(2)
    values, block = random.integers(0, 3, (rows, 44)), random.standard_normal((44, 5))
    genotypes = of_values(values)
    places = genotypes.sample_columns(np)
    placed = block[np.argsort(places)].astype(np.float32)
    found = svd_genotypes.products(genotypes, block=placed, device=CPU).T[places]
    expected = values.T @ (values @ block)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_the_sketch_of_one_pass_gives_the_svd_of_the_projected_matrix() -> None:
    x = np.random.default_rng(3).integers(0, 3, (300, 40)).astype(float)
    sketch = svd_genotypes.orthonormal_sketch(40)
    found = svd_genotypes.svd_of_sketch(sketch, x.T @ (x @ sketch))
    _, values, vectors = np.linalg.svd(np.linalg.qr(x @ sketch)[0].T @ x, full_matrices=False)
    np.testing.assert_allclose(found.values, values[:10], rtol=1e-9)
    np.testing.assert_allclose(np.abs((found.vectors * vectors[:10]).sum(axis=1)), 1, rtol=1e-9)


def test_dask_holds_the_same_genotypes_as_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svd_genotypes, "CHUNK", (400, 7))
    work = tiny_work(tmp_path, scale=1e-8)
    rows, columns = svd_genotypes.shape(work)
    held = svd_genotypes.dask_array(work)
    assert held.numblocks == (3, 3)
    bands = [svd_genotypes.band(*bounds, columns) for bounds in svd_genotypes.bands(work)]
    np.testing.assert_array_equal(held.compute(scheduler="synchronous"), np.concatenate(bands))
    assert held.shape == (rows, columns) == (1000, 20)


def test_dask_that_spills_and_ours_that_need_not_agree_with_scikit_learn(work: Work) -> None:
    found, phases = {}, {}
    prepared = {"tuned": svd_genotypes.in_two_bits, "scikit_learn": svd_genotypes.scikit_learn}
    for name, prepare in {**prepared, "as_published": svd_genotypes.limited}.items():
        with prepare(work) as timed:
            found[name] = timed.answer(timed.call())
            phases[name] = timed.phases()
    for name in ("tuned", "scikit_learn"):
        # What the published method lacks grows as the number of columns falls.
        assert not list(differences(found[name], found["as_published"], tolerance=5e-4)), name
    assert phases["as_published"]["spilled_bytes_of_worker_0"] > 0


def test_a_limit_at_which_nothing_spills_is_an_error() -> None:
    class Client:
        def run(self, function: Any) -> dict[str, int]:
            return {"tcp://a": 0, "tcp://b": 0}

    with pytest.raises(MeasurementError, match="No worker has spilled"):
        dask_spill.spilled(Client())


Svd = svd_genotypes.Svd


def low_first(values: Reals) -> Reals:
    return np.concatenate([values[:1] * 0.9, values[1:]])


@pytest.mark.parametrize(
    ("values_of", "vectors_of", "lost"),
    [
        (lambda values: values * 0.99, np.asarray, 0),
        (low_first, np.asarray, 0),
        (np.asarray, lambda vectors: np.concatenate([vectors[:1], vectors[:0:-1]]), 0),
        (np.asarray, lambda vectors: vectors * 1.001, 0),
        (np.asarray, np.asarray, 1),
    ],
    ids=["rows left out", "low first value", "smallest vectors", "long vectors", "another x"],
)
def test_a_wrong_svd_has_another_answer(
    tmp_path: Path, values_of: Callable[[Reals], Reals], vectors_of: Callable[[Reals], Reals], lost: int
) -> None:
    work = tiny_work(tmp_path, scale=1e-6)  # 10,000 x 20
    x = svd_genotypes.band(0, *svd_genotypes.shape(work))
    values, vectors = np.linalg.svd(x.astype(float), full_matrices=False)[1:]
    total = int(x.sum())
    right = svd_genotypes.Judge(work, total).answer(Svd(values[:10], vectors[:10]))
    assert isinstance(right, dict)
    assert all(right.values())
    wrong = Svd(values_of(values)[:10], vectors_of(vectors)[:10])
    assert list(differences(svd_genotypes.Judge(work, total - lost).answer(wrong), right, tolerance=1e-4))


def test_a_pass_over_packed_genotypes_is_exact_in_every_form(work: Work) -> None:
    found = answers("packing", "use", work)
    rows, columns = svd_genotypes.shape(work)
    values = [packing.draw(*bounds, columns) for bounds in svd_genotypes.bands(work)]
    factor = [packing.draw_factor(*bounds) for bounds in svd_genotypes.bands(work)]
    exact = np.concatenate(factor).astype(np.int64).T @ np.concatenate(values)
    assert set(found) == {"whitewater", "as_published", "blosc", "numpy"}
    assert len(np.concatenate(values)) == rows
    for name, answer in found.items():
        assert answer == packing.checked(exact), name


def test_what_is_kept_is_what_was_there(work: Work) -> None:
    assert not disagreements("packing", "keep", work)


def test_a_swap_or_a_changed_call_has_another_checksum() -> None:
    block = packing.draw(0, 400, 20)
    swapped, changed = block[np.r_[1, 0, 2:400]], block.copy()
    changed[399, 19] ^= 1
    assert (swapped != block).any()
    right = packing.described([block], [0])
    assert packing.described([swapped], [0]) != right
    assert packing.described([changed], [0]) != right
    assert packing.described([block[:300], block[300:]], [0, 300]) == right


@pytest.mark.parametrize("compute", [with_whitewater.compute, with_scikit_learn.compute, svd_zarr_dask.compute])
def test_every_way_from_zarr_to_components_is_accurate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compute: Callable[[Task], int]
) -> None:
    monkeypatch.setattr(svd_zarr, "SAMPLES", 100)
    # Populations that differ so much that so few samples tell them apart.
    monkeypatch.setattr(simulated_store, "F_ST", np.linspace(0.4, 0.2, len(simulated_store.F_ST)))
    work = tiny_work(tmp_path, scale=100 * 2 * 2000 / svd_zarr.DECODED_BYTES, store="")
    exact = svd_zarr.exact(work)
    task = Task(svd_zarr.store(work), Path(), 2, tmp_path / "written" / "components.npy")
    task.output.parent.mkdir()
    assert compute(task) == exact.variants
    judged = svd_zarr.judge(task.output, exact, own=False)
    assert judged == {"captured variance >= 0.99": True, "subspace >= 0.99": True}
    assert task.phases.keys() == {"load_seconds", "preprocess_seconds", "svd_seconds"}
    np.save(task.output, np.random.default_rng(0).standard_normal((100, 10)))
    assert list(differences(svd_zarr.judge(task.output, exact, own=False), judged, tolerance=0))


def test_a_store_of_your_own_is_read_by_all(tmp_path: Path) -> None:
    own = simulated_store.prepare(tmp_path / "own", samples=30, variants=500, seed=1, with_plink=False, threads=1)
    work = tiny_work(tmp_path, scale=1.0, store=str(own.store))
    assert svd_zarr.size(work) == Size(rows=15_000, bytes=30_000, basis="memory")
    for command in svd_zarr.commands(work):
        assert command.command[command.command.index("--store") + 1] == str(own.store)
        assert command.missing is None
