"""The primitives of a device: one body for both, so that the GPU is held to what is proved on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from sklearn.manifold import trustworthiness
from sklearn.metrics import r2_score

from tests.contract.simulated_gpu import genotypes, looked_up_counted_and_compared
from tests.contract.simulated_graph import PULLED, found
from whitewater.engines import Array, Device
from whitewater.errors import InputError
from whitewater.learn.estimators import forest_as_treelite, forest_from_treelite, random_forest, ridge, umap
from whitewater.tables.blocks import BAD_INTEGER, NULL_INTEGER, NULL_TIMESTAMP, Encoded, Kind
from whitewater.tables.hashing import hash_int64
from whitewater.tables.parquet.blocks import row_group_blocks, write_parquet

MOMENT = 1_551_398_400_000_000
COLUMNS: dict[str, Kind] = {"pickup": "timestamp", "fare": "float64", "passengers": "int16", "flag": "text"}


def host(device: Device, column: Array | Encoded) -> list[Any]:
    """Return a column as a list, text as its words."""
    if isinstance(column, Encoded):
        return [column.vocabulary[code] if code >= 0 else None for code in device.to_host(column.codes)]
    values: list[Any] = device.to_host(column).tolist()
    return values


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three rows, the last one null, below directories that a reader of data sets would take for columns."""
    path = tmp_path / "service=yellow" / "year=0" / "trips.parquet"
    path.parent.mkdir(parents=True)
    table = {
        "pickup": pa.array([MOMENT * 1000, MOMENT * 1000 + 1999, None], pa.timestamp("ns")),
        "fare": pa.array([2.5, float("nan"), None]),
        "passengers": pa.array([1.0, 70_000.0, None]),
        "flag": pa.array(["Y", "", None]),
    }
    pq.write_table(pa.table(table), path)
    return path


def test_a_row_group_is_read_with_nulls_as_the_kinds_say(device: Device, path: Path) -> None:
    [block] = row_group_blocks(device, path, 0, COLUMNS, block_rows=10)
    assert host(device, block["pickup"]) == [MOMENT, MOMENT + 1, NULL_TIMESTAMP]
    np.testing.assert_array_equal(host(device, block["fare"]), [2.5, np.nan, np.nan])
    assert host(device, block["passengers"]) == [1, BAD_INTEGER, NULL_INTEGER]
    assert host(device, block["flag"]) == ["Y", None, None]


def test_an_index_of_pandas_is_a_column_like_any_other(device: Device, tmp_path: Path) -> None:
    table = pd.DataFrame({"trip": [30, 10, 20], "fare": [2.5, 3.5, 4.5]}).set_index("trip")
    table.to_parquet(tmp_path / "trips.parquet")
    [block] = row_group_blocks(device, tmp_path / "trips.parquet", 0, {"trip": "id", "fare": "float64"}, block_rows=10)
    assert {name: host(device, column) for name, column in block.items()} == {
        "trip": [30, 10, 20],
        "fare": [2.5, 3.5, 4.5],
    }


def test_blocks_have_the_rows_asked_for(device: Device, path: Path) -> None:
    blocks = list(row_group_blocks(device, path, 0, COLUMNS, block_rows=2))
    assert [len(block["fare"]) for block in blocks if not isinstance(block["fare"], Encoded)] == [2, 1]


def test_a_cut_off_file_and_an_absent_column_are_named(device: Device, path: Path) -> None:
    with pytest.raises(InputError, match="tip_amount"):
        list(row_group_blocks(device, path, 0, {"tip_amount": "float64"}, block_rows=10))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"trips\.parquet"):
        list(row_group_blocks(device, path, 0, COLUMNS, block_rows=10))


def test_a_block_is_written_with_nulls(device: Device, tmp_path: Path) -> None:
    block = {
        "pickup": device.to_device(np.array([MOMENT, NULL_TIMESTAMP])),
        "fare": device.to_device(np.array([2.5, np.nan])),
        "passengers": device.to_device(np.array([3, NULL_INTEGER], np.int16)),
    }
    kinds: dict[str, Kind] = {name: COLUMNS[name] for name in block}
    write_parquet(device, block, tmp_path / "block.parquet", kinds)
    table = pq.read_table(tmp_path / "block.parquet")
    assert table.schema.types == [pa.timestamp("us"), pa.float64(), pa.int16()]
    assert all(field.nullable for field in table.schema)
    assert table["pickup"].cast(pa.int64()).to_pylist() == [MOMENT, None]
    assert table["fare"].to_pylist() == [2.5, None]
    assert table["passengers"].to_pylist() == [3, None]
    assert pq.read_metadata(tmp_path / "block.parquet").num_row_groups == 1


def test_ids_are_read_whole_whatever_their_width_and_written(device: Device, tmp_path: Path) -> None:
    wide, narrow = [-(2**63), -1, 2**63 - 1], [-(2**31), -1, 2**31 - 1]
    columns = {"source": pa.array(wide), "target": pa.array(narrow, pa.int32()), "third": pa.array([0, 1, 2**63 - 1],
               pa.uint64())}  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "edges.parquet")
    kinds: dict[str, Kind] = dict.fromkeys(columns, "id")
    [block] = row_group_blocks(device, tmp_path / "edges.parquet", 0, kinds, block_rows=10)
    arrays = [column for column in block.values() if not isinstance(column, Encoded)]
    assert [host(device, column) for column in arrays] == [wide, narrow, [0, 1, 2**63 - 1]]
    assert {column.dtype.name for column in arrays} == {"int64"}
    written = {"source": device.to_device(np.array(wide))}
    write_parquet(device, written, tmp_path / "written.parquet", {"source": "id"})
    assert pq.read_table(tmp_path / "written.parquet")["source"].to_pylist() == wide


@pytest.mark.parametrize(
    ("column", "fault"),
    [
        (pa.array([1, None]), "has a null"),
        (pa.array([1, None], pa.uint64()), "has a null"),
        (pa.array([1.0, 2.0]), "ids are integers"),
        (pa.array([1, 2**63], pa.uint64()), r"at most 2\*\*63 - 1"),
    ],
)
def test_what_is_no_id_is_refused_with_its_column(device: Device, tmp_path: Path, column: pa.Array, fault: str) -> None:
    pq.write_table(pa.table({"target": column}), tmp_path / "edges.parquet")
    with pytest.raises(InputError, match=rf"'target'.*{fault}"):
        list(row_group_blocks(device, tmp_path / "edges.parquet", 0, {"target": "id"}, block_rows=10))


def test_hashes_are_those_of_the_reference(device: Device) -> None:
    rows = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, (50, 6))
    hashes = hash_int64(device.xp, *(device.to_device(np.ascontiguousarray(column)) for column in rows.T))
    assert host(device, hashes) == [xxhash.xxh64_intdigest(row.astype("<i8").tobytes(), seed=0) for row in rows]


def test_ridge_solves_the_penalised_normal_equations(device: Device) -> None:
    random = np.random.default_rng(4)
    columns = random.normal(3.0, 1.0, (2_000, 5))
    target = columns @ np.arange(5.0) + random.normal(0, 0.1, 2_000)
    centred = columns - columns.mean(axis=0)
    expected = np.linalg.solve(centred.T @ centred + 10 * np.eye(5), centred.T @ (target - target.mean()))
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


@pytest.mark.parametrize("name", ["haploid", "packed", "triploid"])
def test_genotypes_are_looked_up_counted_and_compared_as_on_the_cpu(device: Device, name: str) -> None:
    found = looked_up_counted_and_compared(device, genotypes()[name])
    for what, expected in looked_up_counted_and_compared(Device(), genotypes()[name]).items():
        np.testing.assert_array_equal(found[what], expected)


def test_edges_are_pulled_along_joined_and_merged_as_on_the_cpu(device: Device) -> None:
    here = found(device)
    for name, expected in found(Device()).items():
        rtol = 1e-13 if name.endswith(PULLED) else 0
        np.testing.assert_allclose(here[name], expected, rtol=rtol, atol=0, err_msg=name)


@pytest.mark.slow
def test_a_map_keeps_neighbours_together_and_depends_on_its_seed_alone(device: Device) -> None:
    random = np.random.default_rng(8)
    centres = 6 * random.normal(size=(3, 8)).repeat(60, axis=0)
    points = (centres + random.normal(size=centres.shape)).astype(np.float32)
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
