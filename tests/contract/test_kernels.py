"""The kernels that we write for the GPU: run by Numba's simulator, and compiled for a GPU where RAPIDS is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.contract.executed import ROOT
from tests.contract.signatures import NOT_INSTALLED
from tests.contract.simulated import WEIGHTED, of_genotypes, of_graphs
from whitewater.engines import Device
from whitewater.io.store import read_json

pytestmark = pytest.mark.slow  # it compiles, or runs steps twice

H200 = (9, 0)
Found = Mapping[str, npt.NDArray[Any]]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the kernels with the simulator, which is chosen when Numba is imported, in a process of its own."""
    output = tmp_path_factory.mktemp("simulated") / "found.npz"
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": os.pathsep.join(["src", "."])}
    command = [sys.executable, "-m", "tests.contract.simulated", str(output)]
    subprocess.run(command, check=True, env=environment, cwd=ROOT.parents[1])
    return output


@pytest.fixture(scope="module")
def simulated(output: Path) -> Found:
    """What the simulated GPU found."""
    with np.load(output) as results:
        return dict(results)


def test_every_call_around_the_kernels_is_one_that_rapids_accepts(output: Path) -> None:
    made = read_json(output.with_suffix(".json"))
    assert made["faults"] == []
    assert {f"cupy.{name}" for name in ("asarray", "asnumpy", "empty", "stack", "searchsorted")} <= {*made["called"]}


def test_the_simulated_gpu_does_with_genotypes_what_the_cpu_does_bit_by_bit(
    simulated: Found,
) -> None:
    for name, values in of_genotypes(Device()).items():
        assert simulated[name].dtype == values.dtype
        assert len(values) or "none" in name
        np.testing.assert_array_equal(simulated[name], values, err_msg=name)


def test_the_simulated_gpu_does_with_edges_what_the_cpu_does(simulated: Found) -> None:
    for name, values in of_graphs(Device()).items():
        assert simulated[name].dtype == values.dtype
        np.testing.assert_allclose(simulated[name], values, rtol=1e-13, atol=0, err_msg=name)


@pytest.mark.parametrize("name", WEIGHTED)
def test_ranges_have_the_same_bits_on_the_simulated_gpu(simulated: Found, name: str) -> None:
    parts = np.concatenate([simulated[f"{name}_first"], simulated[f"{name}_rest"]])
    assert parts.tobytes() == simulated[f"{name}_all"].tobytes()


def signatures() -> list[tuple[Any, list[Any]]]:
    """Return the kernels with the types of what they are given."""
    from numba import types

    from whitewater.genotypes import kernels_gpu
    from whitewater.graphs.pagerank import in_edges_gpu

    def array(dtype: Any, dimensions: int = 1) -> Any:
        return types.Array(dtype, dimensions, "C")

    wide = array(types.int64, 2)
    codes, dosages, table = array(types.uint8, 2), array(types.int8, 2), array(types.float32, 2)
    planes, stops, band = array(types.uint64, 3), array(types.int32, 1), array(types.boolean, 2)
    values, numbers = array(types.float64), (array(types.int32), array(types.int64))
    return [
        (kernels_gpu.gpu_expand_packed, [codes, table, table]),
        (kernels_gpu.gpu_expand_dosages, [dosages, table, table]),
        (kernels_gpu.gpu_fill_planes, [array(types.uint64, 2), planes, wide]),
        (kernels_gpu.gpu_mark_packed, [planes, wide, stops, types.float64, band]),
        *((in_edges_gpu.gpu_add_up, [wide, values, each, values, values]) for each in numbers),
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
