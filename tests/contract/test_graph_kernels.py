"""The kernels on graphs that we write for the GPU, run by Numba's simulator."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tests.contract.conftest import NOT_INSTALLED
from tests.contract.executed import ROOT
from tests.contract.simulated_graph import CASES, VERTICES, example, pulled_and_joined
from whitewater.devices.cpu import CpuDevice

H200 = (9, 0)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the simulated GPU found."""
    output = tmp_path_factory.mktemp("simulated") / "graph.npz"
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": os.pathsep.join(["src", "."])}
    command = [sys.executable, "-m", "tests.contract.simulated_graph", str(output)]
    subprocess.run(command, check=True, env=environment, cwd=ROOT.parents[1])
    with np.load(output) as results:
        return dict(results)


@pytest.mark.parametrize("name", CASES)
def test_the_simulated_gpu_does_with_edges_what_the_cpu_does(simulated: Any, name: str) -> None:
    on_cpu = pulled_and_joined(CpuDevice(), example(weighted=CASES[name]))
    for kind, values in on_cpu.items():
        assert simulated[f"{name}_{kind}"].dtype == values.dtype
        np.testing.assert_allclose(simulated[f"{name}_{kind}"], values, rtol=1e-13)
    np.testing.assert_array_equal(simulated[f"{name}_components"], on_cpu["components"])
    assert len(set(on_cpu["components"].tolist())) > 20


@pytest.mark.parametrize("name", CASES)
def test_ranges_have_the_same_bits_on_the_simulated_gpu(simulated: Any, name: str) -> None:
    parts = np.concatenate([simulated[f"{name}_first"], simulated[f"{name}_rest"]])
    assert parts.tobytes() == simulated[f"{name}_all"].tobytes()


@pytest.mark.parametrize("name", CASES)
def test_the_sums_are_those_of_scipy(simulated: Any, name: str) -> None:
    edges = example(weighted=CASES[name])
    weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
    matrix = sparse.csr_array((weights, edges.sources, edges.offsets), shape=(VERTICES, VERTICES))
    expected = matrix @ np.random.default_rng(2).random(VERTICES)
    np.testing.assert_allclose(simulated[f"{name}_all"], expected, rtol=1e-12)


@pytest.mark.rapids
@pytest.mark.skipif(find_spec("cudf") is None, reason=NOT_INSTALLED)
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_the_kernels_compile_for_a_gpu(monkeypatch: pytest.MonkeyPatch, index: str) -> None:
    from numba import cuda, types

    from whitewater.devices import gpu_graph_kernels

    def array(dtype: Any, dimensions: int = 1) -> Any:
        return types.Array(dtype, dimensions, "C")

    numbers, wide, values = array(getattr(types, index)), array(types.int64), array(types.float64)
    signatures = {
        gpu_graph_kernels.gpu_add_up: [array(types.int64, 2), numbers, values, values, values],
        gpu_graph_kernels.gpu_add_segments: [wide, values, values],
        gpu_graph_kernels.gpu_unite: [wide, numbers, types.int64, wide],
        gpu_graph_kernels.gpu_flatten: [wide, wide],
    }
    # Functions that a kernel calls are compiled for the GPU that is there: here, one that is not.
    absent = SimpleNamespace(compute_capability=H200)
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: absent)
    for kernel, arguments in signatures.items():
        code, _ = cuda.compile_ptx(kernel.py_func, types.void(*arguments), cc=H200)
        assert ".visible .entry" in code
