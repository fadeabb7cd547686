"""The primitives of a device: one body for both, so that the GPU is held to what is proved on the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from sklearn.manifold import trustworthiness
from sklearn.metrics import r2_score

from tests.contract.simulated import of_genotypes, of_graphs
from whitewater.engines import Device
from whitewater.errors import InputError
from whitewater.graphs.build.with_dask import read_group
from whitewater.io.folder import RowGroup
from whitewater.learn.estimators import forest_as_treelite, forest_from_treelite, random_forest, ridge, umap
from whitewater.tables.hashing import hash_int64


@pytest.fixture
def edges(tmp_path: Path) -> RowGroup:
    """Edges below directories that a reader of data sets would take for columns."""
    path = tmp_path / "service=yellow" / "year=0" / "edges.parquet"
    path.parent.mkdir(parents=True)
    ids = pa.array([-(2**63), -1, 2**63 - 1])
    pq.write_table(pa.table({"source": ids, "target": ids, "weight": pa.array([0.5, 1.0, 2.0])}), path)
    return RowGroup(path, 0, 3)


def test_edges_keep_the_whole_range_of_ids(device: Device, edges: RowGroup) -> None:
    frame = read_group(edges, weighted=True, both=False, backend=device.frames)
    assert frame["source"].to_numpy().tolist() == frame["target"].to_numpy().tolist() == [-(2**63), -1, 2**63 - 1]
    assert frame["weight"].to_numpy().tolist() == [0.5, 1.0, 2.0]


def test_edges_that_are_cut_off_or_have_a_null_are_named(device: Device, edges: RowGroup) -> None:
    whole = edges.path.read_bytes()
    edges.path.write_bytes(whole[:-20])
    with pytest.raises(InputError, match=r"edges\.parquet"):
        read_group(edges, weighted=False, both=False, backend=device.frames)
    pq.write_table(pa.table({"source": [1, 2], "target": [1, None]}), edges.path)
    with pytest.raises(InputError, match=r"edges\.parquet .* null"):
        read_group(edges, weighted=False, both=False, backend=device.frames)


def test_hashes_are_those_of_the_reference(device: Device) -> None:
    rows = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, (50, 6))
    hashes = hash_int64(device.xp, *(device.to_device(np.ascontiguousarray(column)) for column in rows.T))
    assert device.to_host(hashes).tolist() == [
        xxhash.xxh64_intdigest(row.astype("<i8").tobytes(), seed=0) for row in rows
    ]


def test_ridge_solves_the_penalized_normal_equations(device: Device) -> None:
    random = np.random.default_rng(4)
    columns = random.normal(3.0, 1.0, (2_000, 5))
    target = columns @ np.arange(5.0) + random.normal(0, 0.1, 2_000)
    centered = columns - columns.mean(axis=0)
    expected = np.linalg.solve(centered.T @ centered + 10 * np.eye(5), centered.T @ (target - target.mean()))
    fitted = ridge(device, alpha=10.0).fit(
        device.to_device(np.asfortranarray(columns)), device.to_device(target.copy())
    )
    np.testing.assert_allclose(device.to_host(fitted.coef_), expected, rtol=1e-6)
    np.testing.assert_allclose(float(fitted.intercept_), target.mean() - columns.mean(axis=0) @ expected, rtol=1e-6)


def test_a_forest_learns_and_predicts_the_same_after_storage(device: Device) -> None:
    random = np.random.default_rng(5)
    rows = random.normal(size=(4_000, 4)).astype(np.float32)
    target = (rows[:, 0] + np.sin(2 * rows[:, 1])).astype(np.float32)
    on_device = device.to_device(rows)
    forest = random_forest(device, trees=30, depth=10, sample_fraction=0.5, seed=1)
    forest.fit(on_device, device.to_device(target))
    predicted = device.to_host(forest.predict(on_device))
    assert r2_score(target, predicted) > 0.8
    stored = forest_from_treelite(forest_as_treelite(forest, device), device)
    np.testing.assert_allclose(device.to_host(stored(on_device)), predicted, rtol=1e-5, atol=1e-6)


def test_genotypes_are_looked_up_counted_and_compared_as_on_the_cpu(device: Device) -> None:
    here = of_genotypes(device)
    for name, expected in of_genotypes(Device()).items():
        np.testing.assert_array_equal(here[name], expected, err_msg=name)


def test_edges_are_pulled_along_as_on_the_cpu(device: Device) -> None:
    here = of_graphs(device)
    for name, expected in of_graphs(Device()).items():
        np.testing.assert_allclose(here[name], expected, rtol=1e-13, atol=0, err_msg=name)


@pytest.mark.slow
def test_a_map_keeps_neighbors_together_and_depends_on_its_seed_alone(device: Device) -> None:
    random = np.random.default_rng(8)
    centers = 6 * random.normal(size=(3, 8)).repeat(60, axis=0)
    points = (centers + random.normal(size=centers.shape)).astype(np.float32)
    first, again, other = (
        device.to_host(
            umap(device, neighbors=10, minimum_distance=0.3, seed=seed).fit_transform(device.to_device(points))
        )
        for seed in (3, 3, 4)
    )
    assert first.shape == (180, 2)
    assert trustworthiness(points, first, n_neighbors=10) > 0.8
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1
