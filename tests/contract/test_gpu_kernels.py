"""The kernels that we write for the GPU: run by Numba's simulator, and compiled for a GPU where RAPIDS is installed."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.contract.conftest import NOT_INSTALLED, Simulated, simulated_by
from tests.contract.signatures import Describe, problems
from tests.contract.simulated_gpu import genotypes, looked_up_counted_and_compared
from whitewater.engines import Device

H200 = (9, 0)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    return simulated_by("simulated_gpu", tmp_path_factory.mktemp("simulated"))


@pytest.fixture(scope="module")
def simulated(results: Simulated) -> Any:
    """What the simulated GPU found."""
    return results.found


def test_every_call_around_the_kernels_is_one_that_rapids_accepts(results: Simulated, rapids: Describe) -> None:
    assert problems(results.calls, rapids) == []
    assert {"cupy.asarray", "cupy.asnumpy", "cupy.empty"} <= {call.name for call in results.calls}


@pytest.mark.parametrize("name", ["haploid", "packed", "triploid"])
def test_the_simulated_gpu_does_with_genotypes_what_the_cpu_does_bit_by_bit(simulated: Any, name: str) -> None:
    on_cpu = looked_up_counted_and_compared(Device(), genotypes()[name])
    assert len(on_cpu["correlated"]) > 0
    for found, values in on_cpu.items():
        assert simulated[f"{name}_{found}"].dtype == values.dtype
        np.testing.assert_array_equal(simulated[f"{name}_{found}"], values)


def signatures() -> dict[Any, list[Any]]:
    """Return the types of what each kernel is given."""
    from numba import types

    from whitewater.genotypes import decode_gpu
    from whitewater.genotypes.linkage import pairs_gpu

    def array(dtype: Any, dimensions: int) -> Any:
        return types.Array(dtype, dimensions, "C")

    wide = array(types.int64, 2)
    codes, dosages, table = array(types.uint8, 2), array(types.int8, 2), array(types.float32, 2)
    planes, stops, band = array(types.uint64, 3), array(types.int32, 1), array(types.boolean, 2)
    return {
        decode_gpu.gpu_expand_packed: [codes, table, table],
        decode_gpu.gpu_expand_dosages: [dosages, table, table],
        decode_gpu.gpu_count_packed: [codes, array(types.uint8, 1), array(types.int32, 2)],
        pairs_gpu.gpu_fill_planes: [array(types.uint64, 2), planes, wide],
        pairs_gpu.gpu_mark_packed: [planes, wide, stops, types.float64, band],
        pairs_gpu.gpu_mark_dosages: [dosages, stops, types.float64, band],
    }  # fmt: skip


@pytest.mark.rapids
@pytest.mark.skipif(find_spec("cudf") is None, reason=NOT_INSTALLED)
def test_the_kernels_compile_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import cuda, types

    # Functions that a kernel calls are compiled for the GPU that is there: here, one that is not.
    absent = SimpleNamespace(compute_capability=H200)
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: absent)
    for kernel, arguments in signatures().items():
        code, _ = cuda.compile_ptx(kernel.py_func, types.void(*arguments), cc=H200)
        assert ".visible .entry" in code
