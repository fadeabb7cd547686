"""Calls are bound to what RAPIDS accepts as recorded, which is what the packages say where they are installed."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.contract import record
from tests.contract.signatures import CALLABLE, NOT_INSTALLED, RECORDED, VALUE, Call, faults, parse, recorded

PAGE = Path(__file__).parents[2] / "docs" / "cudf.md"
ROW = re.compile(r"^\| (`.*?`) \|", re.MULTILINE)


def test_signatures_are_stored_as_python_writes_them() -> None:
    signatures = set(recorded().values()) - {CALLABLE, VALUE}
    assert len(signatures) > 500
    assert [text for text in signatures if str(parse(text)).replace("Ellipsis", "...") != text] == []


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (Call("cupy.where", 3), None),
        (Call("cupy.where", 4), "too many positional arguments"),
        (Call("cupy.unique", 1, ("return_counts",)), None),
        (Call("cupy.unique", 1, ("sorted",)), "unexpected keyword argument 'sorted'"),
        (Call("cupy.isnat", 1), "RAPIDS has no cupy.isnat"),
        (Call("cupy.pi", used=True), None),
        (Call("cupy.pi"), "cannot be called"),
        # It lands in **kwargs, which bind alone would accept.
        (Call("cudf.read_parquet", 1, ("colums", "dataset_kwargs", "use_pandas_metadata")), "no parameter colums"),
        (Call("cudf.DataFrame.merge", 1, ("how", "validate")), "not implemented"),
        (Call("cudf.DataFrame.merge", 1), "without how"),
        (Call("cudf.DataFrame.iterrows"), "goes through rows"),
        (Call("dask_cuda.LocalCUDACluster", 0, ("rmm_async", "host", "dashboard_address")), None),
        (Call("dask_cuda.LocalCUDACluster", 0, ("jit_unspill", "host")), "unexpected keyword argument 'jit_unspill'"),
    ],
)
def test_a_call_is_accepted_or_not(call: Call, fault: str | None) -> None:
    found = faults({call: ["here"]})
    assert len(found) == (fault is not None)
    assert fault is None or fault in found[0]


@pytest.mark.rapids
@pytest.mark.skipif(find_spec("cudf") is None, reason=NOT_INSTALLED)
def test_the_recording_is_what_the_installed_packages_say() -> None:
    stored, installed = json.loads(RECORDED.read_text()), record.recording()
    assert set(stored.pop("calls").items()) ^ set(installed.pop("calls").items()) == set()
    assert stored == installed


def test_the_calls_that_docs_cudf_md_explains_are_those_of_cudf() -> None:
    named: set[str] = set()
    for row in ROW.findall(PAGE.read_text()):
        # Of several in a row the first says of what they are.
        first, *others = re.findall(r"`([\w.]+)`", row)
        owner = first.rpartition(".")[0]
        named |= {f"cudf.{first}", *(f"cudf.{owner}.{other}" for other in others)}
    accessors = {f"cudf.Series.{name}" for name in ("str", "dt", "cat")}
    assert accessors < named
    assert named - accessors <= set(recorded())
