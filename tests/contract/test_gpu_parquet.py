"""What is asked of cuDF about Parquet files, with a stand-in that reads as its source says that it does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.contract.strict_device import cupy_of_devices, on_device, on_host
from whitewater.engines import Array
from whitewater.features.columns.column import Numbers

GPU_MODULES = ["whitewater.features.columns.parquet_gpu"]


class Series:
    """A column of numbers of cuDF."""

    def __init__(self, values: Any) -> None:
        is_host = isinstance(values, pd.Series)
        self.of_pandas = values if is_host else pd.Series(on_host(values, "float64", "int32", "int64", "bool"))

    def isna(self) -> Series:
        return Series(self.of_pandas.isna())

    def fillna(self, value: float) -> Series:
        return Series(self.of_pandas.fillna(value))

    @property
    def has_nulls(self) -> bool:
        return bool(self.of_pandas.isna().any())

    def to_cupy(self) -> Array:
        return on_device(self.of_pandas.to_numpy())


class DataFrame:
    """A table of cuDF, whose index is not among its columns."""

    def __init__(self, columns: Mapping[str, Series]) -> None:
        self.columns = dict(columns)

    def __getitem__(self, name: str) -> Series:
        return self.columns[name]


def read_parquet(
    path: Path,
    *,
    columns: Sequence[str],
    row_groups: Sequence[int],
    dataset_kwargs: Any,
    use_pandas_metadata: bool = True,
) -> DataFrame:
    """Read columns; those that pandas wrote as an index become the index, whatever ``use_pandas_metadata`` says."""
    assert dataset_kwargs == {"partitioning": None}
    table = pq.ParquetFile(path).read_row_groups(list(row_groups), columns=list(columns)).to_pandas()
    return DataFrame({name: Series(table[name]) for name in table.columns})


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The modules that use cuDF, with the stand-in in its place."""
    cudf = ModuleType("cudf")
    vars(cudf).update(DataFrame=DataFrame, Series=Series, read_parquet=read_parquet)
    for each in (cudf, cupy_of_devices()):
        monkeypatch.setitem(sys.modules, each.__name__, each)
    yield {name.rpartition(".")[2]: import_module(name) for name in GPU_MODULES}
    for name in GPU_MODULES:
        del sys.modules[name]


@pytest.fixture(params=["trip", None, ["trip", "leg"]], ids=["named", "unnamed", "of two levels"])
def indexed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file that pandas wrote with an index, that is not a range."""
    table = pd.DataFrame({"fare": [2.5, 3.5, 4.5], "trip": [30, 10, 20], "leg": [1, 2, 3]})
    names = request.param
    frame = table.set_index(names) if names else table.set_axis([7, 5, 3])
    frame.to_parquet(tmp_path / "trips.parquet")
    return tmp_path / "trips.parquet"


def test_an_index_of_pandas_is_a_column_like_any_other(modules: dict[str, Any], indexed: Path) -> None:
    columns = modules["parquet_gpu"].read_columns(indexed, 0, ["trip", "fare"])
    assert {name: on_host(column.values, "int64", "float64").tolist() for name, column in columns.items()} == {
        "trip": [30, 10, 20],
        "fare": [2.5, 3.5, 4.5],
    }
    assert all(isinstance(column, Numbers) for column in columns.values())
