"""The device `gpu` where there is no GPU: its refusals; with stand-ins its memory, workers, clusters and records."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster

from benchmarks.published.dask_cluster import COLLECTIONS, dask_client, frames_of
from tests.contract.device_array import install, record, recording
from tests.contract.signatures import faults
from whitewater.engines import resolve
from whitewater.engines.config import Cluster
from whitewater.engines.gpu import DASK_SETTINGS, ENVIRONMENT, GpuDevice, gpu_cluster, prepare_memory
from whitewater.engines.gpu_check import PACKAGES, missing_gpu
from whitewater.engines.start import ClusterRequest, open_cluster
from whitewater.engines.workers import DaskWorkers
from whitewater.errors import ConfigError, DeviceError, ResourceError

without_gpu = pytest.mark.skipif(missing_gpu() is None, reason="there is a GPU here")


class Cuda:
    """Stands for the memory resource that RMM starts with."""


class CudaAsync:
    """Stands for CUDA's asynchronous pool."""

    def __init__(self) -> None:
        record("rmm.mr.CudaAsyncMemoryResource")


class Adaptor:
    """Stands for a resource on top of another one."""

    def __init__(self, upstream: object) -> None:
        self.upstream = upstream

    def get_upstream(self) -> object:
        record("rmm.mr.UpstreamResourceAdaptor.get_upstream")
        return self.upstream


class Statistics(Adaptor):
    """Stands for the resource that counts."""

    def __init__(self, upstream: object) -> None:
        record("rmm.mr.StatisticsResourceAdaptor", 1)
        super().__init__(upstream)

    allocation_counts = SimpleNamespace(peak_bytes=1_000, current_bytes=600)


@pytest.fixture(autouse=True)
def _calls_bind() -> Iterator[None]:
    """Compare what is asked of the stand-ins with what RAPIDS accepts."""
    with recording() as calls:
        yield
    assert faults(calls) == []


@pytest.fixture
def rmm(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A stand-in for RMM: a list of the resources that were current."""
    current: list[Any] = [Cuda()]
    resources = {
        "CudaMemoryResource": Cuda, "CudaAsyncMemoryResource": CudaAsync, "StatisticsResourceAdaptor": Statistics,
        "UpstreamResourceAdaptor": Adaptor, "get_current_device_resource": lambda: current[-1],
        "set_current_device_resource": current.append,
    }  # fmt: skip
    install(monkeypatch, {"rmm.mr": resources, "rmm.allocators.cupy": {"rmm_cupy_allocator": "RMM"}})
    for name in ENVIRONMENT:
        monkeypatch.setenv(name, "")  # is restored afterwards
        del os.environ[name]
    return current


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A stand-in for CuPy on two GPUs that its driver sees: a list of the allocators that it got, and of its waits."""
    told: list[str] = []
    runtime = {
        "getDevice": lambda: 0,
        "getDeviceCount": lambda: 2,
        "deviceGetPCIBusId": lambda number: f"0000:0{number}:00.0",
        "memGetInfo": lambda: (5_000, 9_000),
        "deviceSynchronize": lambda: told.append("waited for the GPU"),
        "getDeviceProperties": lambda _: {"name": b"NVIDIA H200", "totalGlobalMem": 150_000_000_000},
        "driverGetVersion": lambda: 13000,
        "runtimeGetVersion": lambda: 13020,
    }
    cuda = {"is_available": lambda: True, "set_allocator": told.append}
    install(monkeypatch, {"cupy.cuda": cuda, "cupy.cuda.runtime": runtime})
    monkeypatch.setattr("whitewater.engines.gpu_check.find_spec", lambda name: name)
    return told


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stand-in for dask_cuda: a mapping that fills with what is asked of its cluster."""
    settings_asked: dict[str, Any] = {}

    def local_cuda_cluster(**settings: Any) -> LocalCluster:
        settings_asked.update(settings)
        return LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0")

    install(monkeypatch, {"dask_cuda": {"LocalCUDACluster": local_cuda_cluster}})
    for name in ENVIRONMENT:
        monkeypatch.setenv(name, "")
    return settings_asked


@without_gpu
def test_a_gpu_that_is_asked_for_and_absent_is_an_error_that_says_what_was_looked_for_and_found() -> None:
    with pytest.raises(DeviceError) as refusal:
        resolve("gpu")
    for part in (*PACKAGES[:3], "driver", "nvidia-smi", "doctor", "device=cpu"):
        assert part in str(refusal.value)


@pytest.mark.usefixtures("given")
def test_packages_without_a_gpu_that_they_can_use_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["cupy.cuda"], "is_available", lambda: False)
    monkeypatch.setattr("whitewater.engines.gpu_check.missing_gpu", lambda: None)
    with pytest.raises(
        DeviceError, match=r"built for CUDA 13\.2, finds no GPU.* driver lists a device; packages: cudf"
    ):
        GpuDevice.connect()


def test_the_memory_is_prepared_once_and_what_the_pool_keeps_for_later_is_free_too(
    rmm: list[Any], given: list[str]
) -> None:
    assert GpuDevice().free_memory() == 5_000
    assert GpuDevice().peak_memory() is None
    assert len({resolve("gpu"), resolve("gpu"), GpuDevice()}) == 1
    assert [type(each) for each in rmm] == [Cuda, Statistics]
    assert type(rmm[-1].upstream) is CudaAsync
    assert given == ["RMM"]
    assert {name: os.environ[name] for name in ENVIRONMENT} == ENVIRONMENT
    assert GpuDevice().free_memory() == 5_400
    # cuDF puts a resource above it, to spill.
    rmm.append(Adaptor(rmm[-1]))
    assert GpuDevice().peak_memory() == 1_000


@pytest.mark.usefixtures("given")
def test_a_pool_that_was_there_before_stays(rmm: list[Any]) -> None:
    rmm.append(own := Adaptor(CudaAsync()))
    prepare_memory()
    assert rmm[-1].upstream is own


def test_where_the_workers_are_elsewhere_this_process_leaves_the_gpu_alone(rmm: list[Any], given: list[str]) -> None:
    assert resolve("gpu", attached=True) == GpuDevice() != resolve("cpu")
    assert len(rmm) == 1
    assert not given


@pytest.mark.usefixtures("rmm", "given")
@pytest.mark.parametrize(
    ("threads", "settings", "at_once"),
    [
        (8, Cluster(gpu_tasks=4), 4),
        (2, Cluster(gpu_tasks=4), 2),
        (8, Cluster(gpu_tasks=1), 1),
        (8, Cluster(gpu_tasks=2, performance_report=True), 2),
    ],
)
def test_one_gpu_is_used_by_threads_of_this_process(
    threads: int, settings: Cluster, at_once: int, caplog: pytest.LogCaptureFixture
) -> None:
    device = resolve("gpu")
    with caplog.at_level("INFO"), device.workers(settings, threads=threads, large=True) as workers:
        assert isinstance(workers, DaskWorkers) == settings.performance_report
        assert list(workers.threads) == [at_once]
        assert workers.call_on_each(device.peak_memory) == [1_000]
        assert workers.call_on_each(os.getpid) == [os.getpid()]
    assert "one of the 2 GPUs" in caplog.text
    assert "whitewater cluster start --device gpu" in caplog.text


@pytest.mark.usefixtures("rmm", "given")
def test_tasks_are_refused_that_do_not_fit_the_memory_of_the_gpu() -> None:
    device = resolve("gpu")
    with device.workers(Cluster(), threads=4) as workers:
        workers.forecast(device, a_task=1_000, tasks=8, shared=1_400, what="a sum", remedy="")
        workers.forecast(device, a_task=1_800, tasks=2, shared=1_400, what="two sums", remedy="")
        with pytest.raises(ResourceError, match=r"a sum needs .* of memory of GPU 0000:00:00\.0 of .*Wait\."):
            workers.forecast(device, a_task=1_001, tasks=8, shared=1_400, what="a sum", remedy="Wait.")


def test_processes_are_refused_on_a_gpu() -> None:
    with (
        pytest.raises(ConfigError, match=r"cluster\.kind.*whitewater cluster start --device gpu"),
        GpuDevice().workers(Cluster(kind="processes"), threads=1),
    ):
        pass


@without_gpu
def test_workers_without_a_gpu_are_refused_by_name() -> None:
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as client:
        workers = client.scheduler_info()
        settings = Cluster(kind="attach", address=workers["address"])
        with pytest.raises(DeviceError) as refusal, gpu_cluster(settings):
            pass
        assert next(iter(workers["workers"])) in str(refusal.value)


@pytest.mark.usefixtures("rmm", "given")
def test_collections_of_dask_are_of_cupy_and_cudf_and_spill_at_the_limit(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the strict device sets, too.
    expected = DASK_SETTINGS | COLLECTIONS
    before = {name: dask.config.get(name, None) for name in expected}
    with dask_client(GpuDevice(), Cluster(), threads=8, memory_limit=12_345) as client:
        assert {name: dask.config.get(name) for name in expected} == expected
        assert asked["rmm_maximum_pool_size"] == 12_345
        assert client.submit(GpuDevice().peak_memory).result() == 1_000
    assert {name: dask.config.get(name, None) for name in expected} == before
    install(monkeypatch, {"cudf": {}})
    assert frames_of(GpuDevice()) is sys.modules["cudf"]


def test_to_synchronize_is_to_wait_for_the_gpu_and_the_record_names_it_its_driver_and_versions(
    given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    GpuDevice().synchronize()
    assert given == ["waited for the GPU"]
    nothing = dict.fromkeys(("nvmlInit", "nvmlShutdown"), lambda: None)
    install(monkeypatch, {"pynvml": {"nvmlSystemGetDriverVersion": lambda: "580.65.06", **nothing}})
    found = GpuDevice().describe()
    assert found.pop("versions").keys() >= {"cudf-cu13", "cupy-cuda13x"}
    assert found == {
        "name": "gpu",
        "processor": "NVIDIA H200",
        "count": 2,
        "memory_bytes": 150_000_000_000,
        "driver": "580.65.06",
        "driver_cuda": "13.0",
        "cuda": "13.2",
    }


def test_workers_take_memory_from_one_pool_spill_at_the_limit_and_listen_on_loopback(asked: dict[str, Any]) -> None:
    settings = ClusterRequest(file=Path("x.json"), device="gpu", workers=2, device_memory_limit="40GB")
    with open_cluster(settings):
        pass
    expected = {
        "n_workers": 2,
        "protocol": "tcp",
        "host": "127.0.0.1",
        "security": None,
        "rmm_async": True,
        "rmm_allocator_external_lib_list": ["cupy"],
        "enable_cudf_spill": True,
        "device_memory_limit": "40GB",
        "memory_limit": "0",
    }
    assert {name: asked[name] for name in expected} == expected
    assert {name: os.environ[name] for name in ENVIRONMENT} == ENVIRONMENT


def test_a_worker_says_how_many_tasks_may_use_its_gpu_and_has_threads_for_others(asked: dict[str, Any]) -> None:
    settings = ClusterRequest(file=Path("x.json"), device="gpu", workers=1, threads_per_worker=9, gpu_tasks=3)
    with open_cluster(settings) as cluster, Client(cluster) as client:
        assert [each["resources"] for each in client.scheduler_info()["workers"].values()] == [{"GPU": 3}]
    assert asked["threads_per_worker"] == 9
