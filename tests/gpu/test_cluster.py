"""The steps give the CPU's results on the workers of `whitewater cluster start --device gpu`, one for each GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.gpu_proof.same import compare
from tests.contract import genomics_steps, pagerank_steps, recsys_steps, taxi_steps
from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice, cluster_of
from tests.gpu.conftest import on_both
from tests.gpu.test_genomics import OF_LIBRARIES
from tests.gpu.test_parity import assert_same_tables
from tests.gpu.test_recsys import OF_LIBRARIES as OF_LIBRARIES_OF_RECSYS
from whitewater.engines import Device, resolve
from whitewater.engines.config import Cluster

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(
    filter(None, [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH")])
)}  # fmt: skip
COMMAND = [sys.executable, "-m", "whitewater", "cluster"]
# In a process that computes nothing itself, whose tasks run at workers; asks the driver whether it has a context.
NO_CONTEXT = """
import ctypes, sys
from whitewater.engines import resolve
from whitewater.engines.config import Cluster

device, driver, made = resolve("gpu", attached=True), ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
with device.workers(Cluster(scheduler_file=sys.argv[1]), threads=1) as workers:
    assert all(peak is not None for peak in workers.call_on_each(device.peak_memory))
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(ctypes.c_uint()), ctypes.byref(made)) == 0
assert not made.value, "the step's own process has a context, too"
"""


@pytest.fixture(scope="module", params=[1, 2], ids=["one_worker", "two_workers"])
def site(gpu: Device, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The workers of a cluster that the command started, in processes of their own."""
    workers: int = request.param
    if isinstance(gpu, StrictDevice):
        with cluster_of(workers) as cluster:
            yield Site(gpu, cluster)
        return
    if workers > (count := gpu.describe()["count"]):
        pytest.skip(f"{workers} workers need as many GPUs, and there is {count}")
    file = tmp_path_factory.mktemp("cluster") / "cluster.json"
    of_file = ["--file", str(file)]
    subprocess.run(
        [*COMMAND, "start", "--device", "gpu", "--workers", str(workers), *of_file], check=True, env=ENVIRONMENT
    )
    try:
        yield Site(resolve("gpu", attached=True), Cluster(scheduler_file=str(file)))
    finally:
        subprocess.run([*COMMAND, "stop", *of_file], check=True, env=ENVIRONMENT)


def test_each_worker_is_a_process_of_its_own_that_counts_its_memory(hardware: Device, site: Site) -> None:
    with site.device.workers(site.cluster, threads=1) as workers:
        processes = workers.call_on_each(os.getpid)
        assert len({*processes, os.getpid()}) == len(workers.threads) + 1
        assert len(set(workers.call_on_each(site.device.memory_place))) == len(workers.threads)
        assert None not in workers.call_on_each(site.device.peak_memory)


def test_a_process_whose_tasks_run_at_workers_makes_no_context(hardware: Device, site: Site) -> None:
    command = [sys.executable, "-c", NO_CONTEXT, site.cluster.scheduler_file]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert ended.returncode == 0, ended.stderr


def test_taxi(site: Site, tmp_path: Path) -> None:
    assert_same_tables(on_both(site, taxi_steps, tmp_path))


def test_genomics(site: Site, tmp_path: Path) -> None:
    both = on_both(site, genomics_steps, tmp_path)
    assert set(compare(both.gpu, both.cpu, OF_LIBRARIES).values()) == {""}
    for name in genomics_steps.REPRODUCED:
        genomics_steps.assert_same_components(both.gpu / name, both.cpu / name)


def test_pagerank(site: Site, tmp_path: Path) -> None:
    both = on_both(site, pagerank_steps, tmp_path)
    assert set(compare(both.gpu, both.cpu, pagerank_steps.RULES).values()) == {""}


def test_recsys(site: Site, tmp_path: Path) -> None:
    both = on_both(site, recsys_steps, tmp_path, "run_application")
    assert set(compare(both.gpu, both.cpu, OF_LIBRARIES_OF_RECSYS).values()) == {""}
