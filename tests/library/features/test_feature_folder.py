"""Files of a folder of features: Parquet of plain pages, and arrays of which each is checked before it is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from whitewater.engines import Device
from whitewater.errors import InputError
from whitewater.features.columns.column import Categories, Column, Lists, Numbers
from whitewater.features.dataset import as_table
from whitewater.features.feature_folder import FeatureFile, open_features, write_features, write_file
from whitewater.features.schema import Field, Schema

CPU = Device()


def written(path: Path, block: dict[str, Column], types: dict[str, pa.DataType], row_group_rows: int) -> FeatureFile:
    schema = Schema(tuple(Field(name, type_) for name, type_ in types.items()))
    return write_file(path, 0, as_table(block, types), schema, row_group_rows=row_group_rows)


def without_nan(values: list[Any]) -> list[Any]:
    return [None if value != value else value for value in values]  # noqa: PLR0124 (NaN)


def test_a_file_that_is_written_again_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    block: dict[str, Column] = {"x": Numbers(np.array([1.0, 2.0]))}
    written(tmp_path, block, {"x": pa.float32()}, 2)
    files = {path: path.open("rb") for path in tmp_path.iterdir()}
    expected = {path: path.read_bytes() for path in files}
    written(tmp_path, block, {"x": pa.float32()}, 2)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == expected
    assert all(path.stat().st_ino != os.fstat(file.fileno()).st_ino for path, file in files.items())
    assert {path: file.read() for path, file in files.items()} == expected


def test_what_was_written_is_plain_uncompressed_and_in_row_groups_and_pyarrow_reads_it(tmp_path: Path) -> None:
    block: dict[str, Column] = {
        "id": Numbers(np.array([3, 1, 2], np.int64)),
        "f": Numbers(np.array([0.5, 7, np.nan]), np.array([True, False, True])),
        "n": Numbers(np.array([1.0, np.nan, 3.0])),
        "b": Numbers(np.array([True, True, False]), np.array([True, False, True])),
        "s": Categories(np.array([1, -1, 0], np.int32), pa.array(["a", "b"])),
        "c": Categories(np.array([1, 1, 0], np.int32), pa.array([5, 6])),
        "l": Lists(np.array([0, 2, 2, 3]), Numbers(np.array([1, 2, 3]), np.array([True, False, True]))),
        "left out": Numbers(np.zeros(3)),
    }
    types = {
        "s": pa.string(), "id": pa.int32(), "f": pa.float32(), "n": pa.int64(), "b": pa.bool_(), "c": pa.int64(),
        "l": pa.list_(pa.int64()),
    }  # fmt: skip
    written(tmp_path, block, types, 2)
    table = pq.read_table(tmp_path / "part-00000.parquet")
    assert {name: without_nan(column.to_pylist()) for name, column in zip(table.column_names, table, strict=True)} == {
        "s": ["b", None, "a"],
        "id": [3, 1, 2],
        "f": [0.5, None, None],
        "n": [1, None, 3],
        "b": [True, None, False],
        "c": [6, 6, 5],
        "l": [[1, None], [], [3]],
    }
    assert (table["f"].null_count, table.schema.types[1:3]) == (0, [pa.int32(), pa.float32()])
    metadata = pq.read_metadata(tmp_path / "part-00000.parquet")
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [2, 1]
    chunks = [metadata.row_group(0).column(place) for place in range(metadata.num_columns)]
    assert {chunk.compression for chunk in chunks} == {"UNCOMPRESSED"}
    assert {encoding for chunk in chunks for encoding in chunk.encodings} <= {"PLAIN", "RLE"}


def test_a_column_without_nulls_is_its_bytes_in_the_file(tmp_path: Path) -> None:
    values = np.arange(100_000, dtype=np.int32)
    written(tmp_path, {"n": Numbers(values)}, {"n": pa.int32()}, 10**6)
    assert values.tobytes() in (tmp_path / "part-00000.parquet").read_bytes()


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        (Categories(np.array([0], np.int32), pa.array(["a"])), pa.int32()),
        (Numbers(np.array([300])), pa.int8()),
        (Numbers(np.array([0.5])), pa.int8()),
    ],
)
def test_values_that_cannot_be_of_their_type_are_named(column: Column, type_: pa.DataType) -> None:
    with pytest.raises(InputError, match="column 'TE_C1' cannot be of type int"):
        as_table({"TE_C1": column}, {"TE_C1": type_})


def test_arrays_are_what_numpy_loads_in_the_types_of_models(tmp_path: Path) -> None:
    fields = (
        Field("f", pa.float64()),
        Field("id", pa.int32(), (), {"cardinality": 9}),
        Field("b", pa.bool_()),
        Field("text", pa.string()),
        Field("ragged", pa.list_(pa.int64())),
        Field("label", pa.int8(), ("label",)),
        Field("row_id", pa.int64(), ("key",)),
        Field("list", pa.list_(pa.int32()), (), {"cardinality": 9, "length": 2}),
    )
    # More rows than are put together at once.
    numbers = np.arange(10_000)
    data = {
        "f": numbers / 7, "id": numbers % 9, "b": numbers % 2 == 0, "text": numbers.astype(str),
        "ragged": [[1]] * 10_000, "label": numbers % 2, "row_id": numbers + 2**40,
        "list": list(np.stack([numbers] * 2, axis=1)),
    }  # fmt: skip
    table = pa.table({each.name: pa.array(data[each.name], each.type) for each in fields})
    write_features(
        tmp_path, Schema(fields), [write_file(tmp_path, 0, table, Schema(fields), row_group_rows=999)], seed=None
    )
    folder = open_features(tmp_path)
    expected: dict[str, np.ndarray] = {
        "continuous": np.stack([numbers / 7, numbers % 2 == 0], axis=1).astype(np.float32),
        "categorical": (numbers % 9).astype(np.int32)[:, None],
        "label": (numbers % 2).astype(np.float32),
        "row_id": numbers + 2**40,
        "list": np.stack([numbers] * 2, axis=1).astype(np.int32),
    }
    assert [matrix.name for matrix in folder.matrices] == list(expected)
    for number, matrix in enumerate(folder.matrices):
        found = np.load(tmp_path / f"part-00000-{number:02d}.npy", mmap_mode="r", allow_pickle=False)
        assert (found.dtype, matrix.dtype) == (expected[matrix.name].dtype,) * 2
        assert np.array_equal(found, expected[matrix.name])


def test_a_file_without_rows_is_not_written(tmp_path: Path) -> None:
    assert written(tmp_path, {"n": Numbers(np.zeros(0))}, {"n": pa.float64()}, 10).rows == 0
    assert list(tmp_path.iterdir()) == []
