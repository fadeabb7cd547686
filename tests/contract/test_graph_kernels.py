"""The kernels on graphs that we write for the GPU, run by Numba's simulator."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tests.contract.conftest import NOT_INSTALLED, Simulated, simulated_by
from tests.contract.signatures import Describe, problems
from tests.contract.simulated_graph import CASES, VERTICES, example, found
from whitewater.engines import Device

H200 = (9, 0)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    return simulated_by("simulated_graph", tmp_path_factory.mktemp("simulated"))


def test_the_simulated_gpu_does_with_edges_what_the_cpu_does(simulated: Simulated) -> None:
    on_cpu = found(Device())
    assert simulated.found.keys() == on_cpu.keys()
    for name, values in on_cpu.items():
        assert simulated.found[name].dtype == values.dtype
        np.testing.assert_allclose(simulated.found[name], values, rtol=1e-13, atol=0, err_msg=name)


def test_every_call_around_the_kernels_is_one_that_rapids_accepts(simulated: Simulated, rapids: Describe) -> None:
    assert problems(simulated.calls, rapids) == []
    assert {"cupy.stack", "cupy.searchsorted", "cupy.asnumpy"} <= {call.name for call in simulated.calls}


@pytest.mark.parametrize("name", CASES)
def test_ranges_have_the_same_bits_on_the_simulated_gpu(simulated: Simulated, name: str) -> None:
    parts = np.concatenate([simulated.found[f"{name}_first"], simulated.found[f"{name}_rest"]])
    assert parts.tobytes() == simulated.found[f"{name}_all"].tobytes()


@pytest.mark.parametrize("name", CASES)
def test_the_sums_are_those_of_scipy(simulated: Simulated, name: str) -> None:
    edges = example(weighted=CASES[name])
    weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
    matrix = sparse.csr_array((weights, edges.sources, edges.offsets), shape=(VERTICES, VERTICES))
    expected = matrix @ np.random.default_rng(2).random(VERTICES)
    np.testing.assert_allclose(simulated.found[f"{name}_all"], expected, rtol=1e-12)


@pytest.mark.rapids
@pytest.mark.skipif(find_spec("cudf") is None, reason=NOT_INSTALLED)
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_the_kernels_compile_for_a_gpu(monkeypatch: pytest.MonkeyPatch, index: str) -> None:
    from numba import cuda, types

    from whitewater.graphs.pagerank import in_edges_gpu

    def array(dtype: Any, dimensions: int = 1) -> Any:
        return types.Array(dtype, dimensions, "C")

    numbers, wide, values = array(getattr(types, index)), array(types.int64), array(types.float64)
    signatures = {
        in_edges_gpu.gpu_add_up: [array(types.int64, 2), numbers, values, values, values],
        in_edges_gpu.gpu_add_segments: [wide, values, values],
    }
    # Functions that a kernel calls are compiled for the GPU that is there: here, one that is not.
    absent = SimpleNamespace(compute_capability=H200)
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: absent)
    for kernel, arguments in signatures.items():
        code, _ = cuda.compile_ptx(kernel.py_func, types.void(*arguments), cc=H200)
        assert ".visible .entry" in code
