"""Code of the library that imports RAPIDS: each module's calls are recorded by some contract; tables are read here."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.contract.device_array import watched
from tests.contract.executed import ROOT
from tests.contract.frame_calls import Backend, frames_as_cudf
from tests.contract.signatures import Call, faults
from tests.contract.strict_device import StrictDevice, cupy_of_devices
from whitewater.engines import Device
from whitewater.engines.gpu_check import PACKAGES
from whitewater.features import with_dask as features
from whitewater.features.dataset import Dataset
from whitewater.tables import with_dask

IMPORT = re.compile(r"^ *(?:from|import) (\w+)", re.MULTILINE)
RAPIDS = frozenset(
    {"cudf", "cugraph", "cuml", "cupy", "cupyx", "dask_cuda", "nvforest", "pylibcudf", "pylibcugraph", "pynvml", "rmm"}
)
# By module, the test in this folder that runs its calls and compares them with what RAPIDS accepts.
RECORDED_BY = {
    **dict.fromkeys(("engines.gpu", "engines.gpu_check", "engines.start"), "test_gpu_device"),
    **dict.fromkeys(("features.with_dask", "tables.with_dask"), "test_gpu_source"),
    **dict.fromkeys(("genotypes.kernels_gpu", "graphs.pagerank.in_edges_gpu"), "test_kernels"),
    "graphs.library_gpu": "test_graph_library",
    "learn.estimators_gpu": "test_steps",
}
TABLE = pa.table(
    {
        "many": pa.array([3, None, 5, 7], pa.int64()),
        "small": pa.array([1, 2, 3, 4], pa.int32()),
        "fare": pa.array([2.5, None, float("nan"), 4.0]),
        "word": pa.array(["b", None, "a", "b"]),
    }
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Parquet file of two row groups."""
    path = tmp_path_factory.mktemp("tables") / "rows.parquet"
    pq.write_table(pa.concat_tables([TABLE, TABLE.slice(1)]), path, row_group_size=4)
    return path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[Call, list[str]]]:
    """Let pandas stand for cuDF, with what that has beside it, and compare what is asked with what RAPIDS accepts."""
    cudf = Backend("cudf")
    vars(cudf)["read_parquet"] = watched("cudf.read_parquet", _read_parquet)
    with frames_as_cudf(arrays=True) as found:
        for owner, members in MEMBERS.items():
            for name, member in members.items():
                monkeypatch.setattr(owner, name, member, raising=False)
        for stand_in in (cudf, cupy_of_devices()):
            monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
        yield found
        monkeypatch.undo()
    assert found
    assert faults(found) == []


def _from_arrow(table: pa.Table) -> Any:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _read_parquet(path: Path, *, columns: Any, row_groups: Any, dataset_kwargs: Any, **_: object) -> Any:
    """Read row groups of a file."""
    assert dataset_kwargs == {"partitioning": None}
    file = pq.ParquetFile(path)
    groups = range(file.num_row_groups) if row_groups is None else np.ravel(row_groups).tolist()
    return _from_arrow(file.read_row_groups(groups, columns))


def _to_parquet(self: pd.DataFrame, path: Path, *, index: bool, compression: str, **_: object) -> None:
    pq.write_table(pa.Table.from_pandas(self, preserve_index=index), path, compression=compression)


MEMBERS: dict[Any, dict[str, Any]] = {
    pd.DataFrame: {
        "from_arrow": staticmethod(watched("cudf.DataFrame.from_arrow", _from_arrow)),
        "to_arrow": lambda self, preserve_index: pa.Table.from_pandas(self, preserve_index=preserve_index),
        "to_pandas": lambda self: self,
        "nans_to_nulls": lambda self: self,
        "to_parquet": _to_parquet,
    },
    pd.Series: {"to_pandas": lambda self: self},
    pd.Index: {"to_pandas": lambda self: self},
}


def test_each_module_that_imports_rapids_is_recorded_by_a_contract() -> None:
    imports = {path: {*IMPORT.findall(path.read_text())} & {*RAPIDS, "xgboost"} for path in ROOT.rglob("*.py")}
    found = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path, names in imports.items() if names & RAPIDS
    }
    assert found == set(RECORDED_BY)
    assert all(Path(__file__).with_name(f"{test}.py").exists() for test in RECORDED_BY.values())
    # What is imported is looked for before a step begins. CuPy brings cupyx; only a cluster's process needs dask_cuda.
    assert set().union(*imports.values()) - {"cupyx", "dask_cuda"} <= {*PACKAGES}


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("nulls_in", ["no file", "the first file", "the last file"])
def test_frames_of_a_log_are_read_without_the_host_and_a_column_without_values_in_a_file_has_the_type_of_the_others(
    file: Path, tmp_path: Path, nulls_in: str
) -> None:
    (tmp_path / "b.parquet").write_bytes(file.read_bytes())
    if nulls_in != "no file":
        nulls = pa.table({name: pa.nulls(2) for name in TABLE.column_names})
        pq.write_table(nulls, tmp_path / f"{'a' if nulls_in == 'the first file' else 'c'}.parquet")
    dataset = Dataset(tmp_path)
    types = {name: TABLE.schema.field(name).type for name in TABLE.column_names}
    assert dataset.schema.types == types
    (whole,) = dataset.parts
    groups = [replace(whole, groups=(group,), rows=group.rows) for group in whole.groups]
    some = replace(groups[-1], start=1, rows=groups[-1].rows - 1)
    for part in (whole, *groups, some):
        on_gpu, on_cpu = (
            features.read_span((part,), dataset=dataset, types=types, device=device)
            for device in (StrictDevice(frames="cudf"), Device())
        )
        pd.testing.assert_frame_equal(on_gpu, on_cpu, check_dtype=False)


def test_tables_cross_to_cudf_and_back_and_are_written_as_on_the_cpu(
    calls: dict[Call, list[str]], file: Path, tmp_path: Path
) -> None:
    names = ["many", "small", "word"]
    schema = pa.schema([*(TABLE.schema.field(name) for name in names), ("absent", pa.float64())])
    frame = with_dask.read_parquet(file, names, row_groups=range(1), backend="cudf")
    again = with_dask.from_arrow(with_dask.to_arrow(frame, schema), "cudf")
    expected = TABLE.select(names).append_column("absent", pa.nulls(4, pa.float64()))
    for each in (frame, again, with_dask.to_pandas(frame)):
        assert with_dask.to_arrow(each, schema).to_pylist() == expected.to_pylist()
    with_dask.write_frame(frame[["small", "word"]], tmp_path / "rows.parquet", schema.remove(0))
    assert pq.read_table(tmp_path / "rows.parquet").column_names == ["small", "word", "absent"]
    used = {call.name for call in calls}
    assert {"cudf.DataFrame.from_arrow", "cudf.DataFrame.to_arrow", "cudf.DataFrame.to_parquet"} <= used
    assert {"cudf.DataFrame.nans_to_nulls", "cudf.DataFrame.to_pandas"} <= used
