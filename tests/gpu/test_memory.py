"""What the hardware has to show first: one pool, one context, memory that comes back, and tasks at once on one GPU."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.gpu.conftest import THREADS
from whitewater.engines import Device
from whitewater.engines.config import Cluster
from whitewater.learn.estimators import ridge
from whitewater.tables.hashing import hash_int64

pytestmark = pytest.mark.gpu
ROWS = 1_000_000
# In a process of its own, so that nothing was allocated before.
FIRST_ALLOCATIONS = """
import numpy
from whitewater.engines import resolve

device = resolve("gpu")
import cudf, cupy
assert cudf.get_option("spill"), "cuDF does not spill"
start = device.peak_memory()
array = cupy.zeros(2**20)
assert device.peak_memory() >= start + 2**23, "CuPy does not allocate from RMM's pool"
assert cupy.get_default_memory_pool().total_bytes() == 0, "CuPy has a pool of its own"
start = device.peak_memory()
series = cudf.Series(numpy.zeros(2**20))
assert device.peak_memory() >= start + 2**23, "cuDF does not allocate from RMM's pool"
"""


def test_one_pool_is_there_before_the_first_allocation_counts_those_of_all_libraries_and_spills(
    hardware: Device,
) -> None:
    ended = subprocess.run([sys.executable, "-c", FIRST_ALLOCATIONS], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_what_is_given_back_to_the_pool_is_free(hardware: Device) -> None:
    before = hardware.free_memory()
    array = hardware.xp.zeros(before // 2, "uint8")
    hardware.synchronize()
    assert hardware.free_memory() < 0.55 * before
    del array
    assert hardware.free_memory() > 0.95 * before


def test_tasks_make_no_context_beside_that_of_the_process(hardware: Device) -> None:
    assert len(hardware.xp.zeros(ROWS)) == ROWS
    before = _contexts()
    with hardware.workers(Cluster(), threads=THREADS) as workers:
        assert list(workers.threads) == [THREADS]
        list(workers.map(_hashes_sorted, range(2 * THREADS), label="hashes", shared={"device": hardware}))
    assert _contexts() == before


def _contexts() -> int:
    """Return the number of contexts on the first GPU, of this process and others."""
    import pynvml

    pynvml.nvmlInit()
    try:
        return len(pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0)))
    finally:
        pynvml.nvmlShutdown()


def test_tasks_at_once_on_one_gpu_give_the_bytes_of_one_after_the_other(gpu: Device) -> None:
    def found(tasks_at_once: int) -> list[Any]:
        with gpu.workers(Cluster(gpu_tasks=tasks_at_once), threads=THREADS) as workers:
            return list(workers.map(_hashes_sorted, range(12), label="h", ordered=True, shared={"device": gpu}))

    at_once, alone = found(THREADS), found(1)
    assert len({each.tobytes() for each in alone}) == 12
    for one, other in zip(at_once, alone, strict=True):
        np.testing.assert_array_equal(one, other)


def _hashes_sorted(seed: int, *, device: Device) -> Any:
    xp = device.xp
    numbers = xp.arange(ROWS // 10, dtype=xp.int64) + seed * ROWS
    hashes = hash_int64(xp, numbers)
    return device.to_host(hashes[xp.argsort(hashes, kind="stable")])


def test_fits_at_once_on_one_gpu_are_those_of_one_after_the_other(gpu: Device) -> None:
    def coefficients(tasks_at_once: int) -> list[Any]:
        with gpu.workers(Cluster(gpu_tasks=tasks_at_once), threads=2) as workers:
            return list(workers.map(_fitted, range(6), label="fits", ordered=True, shared={"device": gpu}))

    at_once, alone = coefficients(2), coefficients(1)
    for seed, (one, other) in enumerate(zip(at_once, alone, strict=True)):
        np.testing.assert_allclose(one, other, rtol=1e-9)
        np.testing.assert_allclose(one, np.arange(8.0) + seed, atol=1e-3)


def _fitted(seed: int, *, device: Device) -> Any:
    random = np.random.default_rng(seed)
    columns = random.normal(size=(20_000, 8))
    target = columns @ (np.arange(8.0) + seed)
    fitted = ridge(device, alpha=1e-6).fit(device.to_device(np.asfortranarray(columns)), device.to_device(target))
    return device.to_host(fitted.coef_)
