"""The GPU code of the library, which no GPU runs here: its calls into RAPIDS, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.contract.executed import ROOT
from tests.contract.gaps import known_gaps
from tests.contract.signatures import Describe, problems
from tests.contract.source_calls import Findings, find_calls, uses_rapids

MODULES = sorted(path for path in ROOT.rglob("*.py") if uses_rapids(ast.parse(path.read_text())))


def findings(body: str) -> Findings:
    """Follow a GPU function with the given body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return find_calls(
        Path("written.py"), f"def gpu_function(block: Block, values: Array, data: Any) -> Array:\n{lines}\n"
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_every_call_into_rapids_binds(path: Path, rapids: Describe) -> None:
    assert problems(find_calls(path).calls, rapids) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_objects_are_known_no_call_runs_into_a_gap_and_the_host_is_given_no_array(path: Path) -> None:
    found = find_calls(path)
    assert (found.unresolved, known_gaps(found.calls), found.faults) == ([], [], [])


def test_gpu_code_was_found() -> None:
    every = [find_calls(path) for path in MODULES]
    functions = {function for each in every for function in each.functions}
    assert {"connect", "prepare_memory", "ridge", "_read_files"} <= functions
    called = {call.name for each in every for call in each.calls}
    assert {"rmm.mr.CudaAsyncMemoryResource", "cudf.read_parquet", "cupy.asnumpy", "cuml.linear_model.Ridge"} <= called


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("import cudf\nreturn cudf.read_parquet('x', colums=['a'])", "no parameter colums"),
        ("import cudf\nreturn cudf.read_parquet('x')['a'].to_csv('y')", "RAPIDS has no cudf.Series.to_csv"),
        ("import cudf\nreturn cudf.Series(values).str.casefold()", "RAPIDS has no cudf.Series.str.casefold"),
        ("import cudf\nfor name, each in block.items():\n    cudf.Series(each).fillna(0, method='ffill')", "'method'"),
        ("import cupy\nreturn cupy.isnat(values)", "RAPIDS has no cupy.isnat"),
        ("import cupy as cp\nreturn cp.take(values, values, mode='clip')", "'mode'"),
        ("return [each.setflags(write=False) for each in block.values()]", "RAPIDS has no cupy.ndarray.setflags"),
        ("return (block['a'] * 2 > values).sum(where=values > 0)", "'where'"),
        ("from cuml.linear_model import Ridge\nreturn Ridge(random_state=1).fit(values, values)", "'random_state'"),
        ("from cuml.fil import ForestInference\nreturn ForestInference()", "RAPIDS has no cuml.fil.ForestInference"),
        ("from dask_cuda import LocalCUDACluster\nwith LocalCUDACluster(jit_unspill=True): pass", "'jit_unspill'"),
    ],
)
def test_calls_that_rapids_refuses_are_found(rapids: Describe, body: str, fault: str) -> None:
    assert any(fault in each for each in problems(findings(body).calls, rapids))


@pytest.mark.parametrize(
    "body",
    [
        "import cudf\nreturn cudf.to_datetime(values, errors='coerce')",
        "import cudf\nreturn cudf.read_parquet('x')",
        "import cudf\nreturn cudf.read_parquet('x', dataset_kwargs={}).groupby('a').sum()",
    ],
)
def test_calls_that_bind_and_fail_are_found(body: str) -> None:
    assert known_gaps(findings(body).calls)


def test_arrays_given_to_the_host_and_unknown_objects_are_found() -> None:
    assert findings("import numpy as np\nreturn np.sum(values)").faults
    assert findings("import pyarrow as pa\nreturn pa.array(block['a'])").faults
    assert findings("from whitewater.features.columns.parquet import reed\nreturn reed(values)").faults
    assert findings("return data.sort()").unresolved
    assert findings("import cupy\nreturn cupy.zeros(*data)").unresolved
