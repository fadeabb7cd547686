"""Calls are bound to what RAPIDS accepts, as recorded and as the installed packages say."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from tests.contract import record
from tests.contract.conftest import NOT_INSTALLED
from tests.contract.signatures import RECORDED, Call, Describe, parse, problem, recorded


@pytest.mark.parametrize(
    "text",
    [
        "()",
        "(a)",
        "(a, b=...)",
        "(a, /, b=..., *, c, d=...)",
        "(*args, **kwargs)",
        "(x1, x2, /, out=..., *, dtype=...)",
    ],
)
def test_signatures_are_stored_as_python_writes_them(text: str) -> None:
    assert str(parse(text)).replace("Ellipsis", "...") == text


@pytest.mark.parametrize(
    ("call", "accepted"),
    [
        (Call("cupy.where", 3), True),
        (Call("cupy.where", 4), False),
        (Call("cupy.unique", 1, ("return_counts",)), True),
        (Call("cupy.unique", 1, ("sorted",)), False),
        (Call("cupy.isnan", 1), True),
        (Call("cupy.isnat", 1), False),
        (Call("cupy.ndarray.astype", 1, ("copy",)), True),
        (Call("cupy.ndarray.reshape", 3), True),
        (Call("cupy.pi", used=True), True),
        (Call("cupy.pi"), False),
        (Call("cudf.DataFrame.fillna", 1), True),
        (Call("cudf.DataFrame.fillna", 0, ("method",)), False),
        (Call("cudf.read_parquet", 1, ("columns",)), True),
        # It lands in **kwargs, which bind alone would accept.
        (Call("cudf.read_parquet", 1, ("colums",)), False),
        (Call("cuml.linear_model.Ridge", 0, ("alpha", "solver")), True),
        (Call("cuml.linear_model.Ridge", 0, ("random_state",)), False),
        (Call("dask_cuda.LocalCUDACluster", 0, ("rmm_async", "host", "dashboard_address")), True),
        (Call("dask_cuda.LocalCUDACluster", 0, ("jit_unspill",)), False),
    ],
)
def test_a_call_is_accepted_or_not(rapids: Describe, call: Call, accepted: bool) -> None:
    assert (problem(call, rapids) is None) == accepted


@pytest.mark.rapids
@pytest.mark.skipif(find_spec("cudf") is None, reason=NOT_INSTALLED)
def test_the_recording_is_what_the_installed_packages_say() -> None:
    stored, installed = json.loads(RECORDED.read_text()), record.recording()
    assert set(stored.pop("calls").items()) ^ set(installed.pop("calls").items()) == set()
    assert stored == installed


def test_the_recording_names_its_version() -> None:
    assert json.loads(RECORDED.read_text())["packages"]["cudf-cu13"].startswith("26.10.")
    assert len(recorded()) > 1000
