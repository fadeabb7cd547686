"""The kernels that we write for the GPU: run by Numba's simulator, and compiled for a GPU where RAPIDS is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.contract.executed import ROOT
from tests.contract.gaps import faults
from tests.contract.signatures import NOT_INSTALLED, Call
from tests.contract.simulated import WEIGHTED, of_genotypes, of_graphs
from whitewater.engines import Device

pytestmark = pytest.mark.slow  # it compiles, or runs steps twice

H200 = (9, 0)


@dataclass(frozen=True)
class Simulated:
    """What the simulated GPU found, and which calls were made of CuPy."""

    found: Mapping[str, npt.NDArray[Any]]
    calls: Mapping[Call, Sequence[str]]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """Run the kernels with the simulator, which is chosen when Numba is imported, in a process of its own."""
    output = tmp_path_factory.mktemp("simulated") / "found.npz"
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": os.pathsep.join(["src", "."])}
    command = [sys.executable, "-m", "tests.contract.simulated", str(output)]
    subprocess.run(command, check=True, env=environment, cwd=ROOT.parents[1])
    with np.load(output) as results:
        found = dict(results)
    made = json.loads(output.with_suffix(".json").read_text())
    return Simulated(found, {Call(**{**call, "keywords": tuple(call["keywords"])}): places for call, places in made})


def test_every_call_around_the_kernels_is_one_that_rapids_accepts(simulated: Simulated) -> None:
    assert faults(simulated.calls) == []
    called = {call.name for call in simulated.calls}
    assert {f"cupy.{name}" for name in ("asarray", "asnumpy", "empty", "stack", "searchsorted")} <= called


def test_the_simulated_gpu_does_with_genotypes_what_the_cpu_does_bit_by_bit(simulated: Simulated) -> None:
    for name, values in of_genotypes(Device()).items():
        assert simulated.found[name].dtype == values.dtype
        assert len(values) or "none" in name
        np.testing.assert_array_equal(simulated.found[name], values, err_msg=name)


def test_the_simulated_gpu_does_with_edges_what_the_cpu_does(simulated: Simulated) -> None:
    for name, values in of_graphs(Device()).items():
        assert simulated.found[name].dtype == values.dtype
        np.testing.assert_allclose(simulated.found[name], values, rtol=1e-13, atol=0, err_msg=name)


@pytest.mark.parametrize("name", WEIGHTED)
def test_ranges_have_the_same_bits_on_the_simulated_gpu(simulated: Simulated, name: str) -> None:
    parts = np.concatenate([simulated.found[f"{name}_first"], simulated.found[f"{name}_rest"]])
    assert parts.tobytes() == simulated.found[f"{name}_all"].tobytes()


def signatures() -> list[tuple[Any, list[Any]]]:
    """Return the kernels with the types of what they are given."""
    from numba import types

    from whitewater.genotypes import decode_gpu
    from whitewater.genotypes.linkage import pairs_gpu
    from whitewater.graphs.pagerank import in_edges_gpu

    def array(dtype: Any, dimensions: int = 1) -> Any:
        return types.Array(dtype, dimensions, "C")

    wide = array(types.int64, 2)
    codes, dosages, table = array(types.uint8, 2), array(types.int8, 2), array(types.float32, 2)
    planes, stops, band = array(types.uint64, 3), array(types.int32, 1), array(types.boolean, 2)
    values, numbers = array(types.float64), (array(types.int32), array(types.int64))
    return [
        (decode_gpu.gpu_expand_packed, [codes, table, table]),
        (decode_gpu.gpu_expand_dosages, [dosages, table, table]),
        (decode_gpu.gpu_count_packed, [codes, array(types.uint8), array(types.int32, 2)]),
        (pairs_gpu.gpu_fill_planes, [array(types.uint64, 2), planes, wide]),
        (pairs_gpu.gpu_mark_packed, [planes, wide, stops, types.float64, band]),
        (pairs_gpu.gpu_mark_dosages, [dosages, stops, types.float64, band]),
        *((in_edges_gpu.gpu_add_up, [wide, each, values, values, values]) for each in numbers),
        (in_edges_gpu.gpu_add_segments, [array(types.int64), values, values]),
    ]


@pytest.mark.rapids
@pytest.mark.skipif(find_spec("cudf") is None, reason=NOT_INSTALLED)
def test_the_kernels_compile_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import cuda, types

    # Functions that a kernel calls are compiled for the GPU that is there: here, one that is not.
    absent = SimpleNamespace(compute_capability=H200)
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: absent)
    for kernel, arguments in signatures():
        code, _ = cuda.compile_ptx(kernel.py_func, types.void(*arguments), cc=H200)
        assert ".visible .entry" in code
