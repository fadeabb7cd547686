"""The device `gpu` where there is no GPU: its refusals, and its cluster and records with stand-ins for RAPIDS."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster

from benchmarks.published.dask_cluster import COLLECTIONS, dask_client, frames_of
from tests.contract.simulated_gpu import numpy_as_cupy
from whitewater.engines import resolve
from whitewater.engines.config import Cluster
from whitewater.engines.gpu import PACKAGES, GpuDevice
from whitewater.engines.gpu_check import missing_gpu
from whitewater.engines.gpu_cluster import DASK_SETTINGS, gpu_cluster, peak_allocated
from whitewater.errors import ConfigError, DeviceError

without_gpu = pytest.mark.skipif(missing_gpu() is None, reason="there is a GPU here")


class Resource:
    """Stands for a memory resource of RMM."""

    def __init__(self, upstream: Any = None, peak_bytes: int = 0) -> None:
        self.upstream, self.allocation_counts = upstream, SimpleNamespace(peak_bytes=peak_bytes)

    def get_upstream(self) -> Any:
        return self.upstream


class Adaptor(Resource):
    """Stands for a resource on top of another one."""


class Statistics(Adaptor):
    """Stands for the resource that counts."""


def module(name: str, **members: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(members)
    return made


@pytest.fixture
def rmm(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A stand-in for RMM: a list whose last element is the current resource."""
    current: list[Any] = [Resource()]
    mr = module("rmm.mr", StatisticsResourceAdaptor=Statistics, UpstreamResourceAdaptor=Adaptor)
    vars(mr)["get_current_device_resource"] = lambda: current[-1]
    statistics = module("rmm.statistics", enable_statistics=lambda: current.append(Statistics(current[-1], 1_000)))
    for each in (module("rmm", mr=mr, statistics=statistics), mr, statistics):
        monkeypatch.setitem(sys.modules, each.__name__, each)
    return current


@without_gpu
def test_a_gpu_that_is_asked_for_and_absent_is_an_error_that_says_what_was_looked_for_and_found() -> None:
    with pytest.raises(DeviceError) as refusal:
        resolve("gpu")
    for part in (*PACKAGES[:3], "driver", "nvidia-smi", "doctor", "device=cpu"):
        assert part in str(refusal.value)


def test_packages_without_a_gpu_that_they_can_use_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = numpy_as_cupy()
    vars(cupy)["cuda"] = SimpleNamespace(
        is_available=lambda: False, runtime=SimpleNamespace(runtimeGetVersion=lambda: 13020)
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr("whitewater.engines.gpu.find_spec", lambda name: name)
    monkeypatch.setattr("whitewater.engines.gpu.missing_gpu", lambda: None)
    with pytest.raises(
        DeviceError, match=r"built for CUDA 13\.2, finds no GPU.* driver lists a device; packages: cudf"
    ):
        GpuDevice.connect()


def test_devices_are_equal_and_hash_alike() -> None:
    assert {GpuDevice(), GpuDevice()} == {GpuDevice()}
    assert GpuDevice() != resolve("cpu")


def test_threads_are_refused_since_a_gpu_needs_a_process() -> None:
    with pytest.raises(ConfigError, match=r"cluster\.kind"), gpu_cluster(Cluster(kind="threads")):
        pass


def test_threads_are_refused_for_collections_of_dask_too() -> None:
    with (
        pytest.raises(ConfigError, match=r"cluster\.kind"),
        dask_client(GpuDevice(), Cluster(kind="threads"), threads=1),
    ):
        pass


@without_gpu
def test_workers_without_a_gpu_are_refused_by_name() -> None:
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
        workers = client.scheduler_info()
        settings = Cluster(kind="attach", address=workers["address"])
        with pytest.raises(DeviceError) as refusal, gpu_cluster(settings):
            pass
        assert next(iter(workers["workers"])) in str(refusal.value)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stand-in for dask_cuda: a mapping that fills with what is asked of its cluster."""
    settings_asked: dict[str, Any] = {}

    def local_cuda_cluster(**settings: Any) -> LocalCluster:
        settings_asked.update(settings)
        return LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0")

    monkeypatch.setitem(sys.modules, "dask_cuda", module("dask_cuda", LocalCUDACluster=local_cuda_cluster))
    return settings_asked


@pytest.mark.usefixtures("rmm")
def test_the_cluster_listens_on_loopback_counts_allocations_and_shuffles_on_the_device(asked: dict[str, Any]) -> None:
    before = dask.config.get("dataframe.shuffle.method", None)
    with GpuDevice().workers(Cluster(), threads=8, large=True) as client:
        assert asked | {"host": "127.0.0.1", "protocol": "tcp", "rmm_async": True, "enable_cudf_spill": True} == asked
        assert dask.config.get("dataframe.shuffle.method") == "tasks"
        assert client.call_on_each(peak_allocated) == [1_000]
    assert dask.config.get("dataframe.shuffle.method", None) == before


@pytest.mark.usefixtures("rmm")
def test_collections_of_dask_are_of_cupy_and_cudf_and_spill_at_the_limit(asked: dict[str, Any]) -> None:
    # What the strict device sets, too.
    expected = DASK_SETTINGS | COLLECTIONS
    before = {name: dask.config.get(name, None) for name in expected}
    with dask_client(GpuDevice(), Cluster(), threads=8, memory_limit=12_345) as client:
        assert {name: dask.config.get(name) for name in expected} == expected
        assert asked["rmm_maximum_pool_size"] == 12_345
        assert client.submit(peak_allocated).result() == 1_000
    assert {name: dask.config.get(name, None) for name in expected} == before


def test_frames_are_those_of_cudf(monkeypatch: pytest.MonkeyPatch) -> None:
    cudf = module("cudf")
    monkeypatch.setitem(sys.modules, "cudf", cudf)
    assert frames_of(GpuDevice()) is cudf


def test_to_synchronise_is_to_wait_for_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    runtime = SimpleNamespace(deviceSynchronize=lambda: waited.append("for the GPU"))
    monkeypatch.setitem(sys.modules, "cupy", module("cupy", cuda=SimpleNamespace(runtime=runtime)))
    GpuDevice().synchronize()
    assert waited == ["for the GPU"]


def test_what_was_allocated_is_known_below_the_resource_that_cudf_adds_to_spill(rmm: list[Any]) -> None:
    rmm.append(Adaptor(Statistics(Resource(), 4_096)))
    assert GpuDevice().peak_memory() == 4_096


@pytest.mark.usefixtures("rmm")
def test_what_this_process_allocates_is_known_once_it_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cudf", module("cudf"))
    GpuDevice().count_memory()
    assert GpuDevice().peak_memory() == 1_000


def test_what_was_allocated_is_not_known_where_nothing_counts(rmm: list[Any]) -> None:
    assert GpuDevice().peak_memory() is None


def test_the_record_names_gpu_driver_and_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = SimpleNamespace(
        getDeviceProperties=lambda _: {"name": b"NVIDIA H200", "totalGlobalMem": 150_000_000_000},
        getDeviceCount=lambda: 2,
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 13020,
    )
    names = ("nvmlInit", "nvmlShutdown")
    nvml = module("pynvml", nvmlSystemGetDriverVersion=lambda: "580.65.06", **dict.fromkeys(names, lambda: None))
    monkeypatch.setitem(sys.modules, "cupy", module("cupy", cuda=SimpleNamespace(runtime=runtime)))
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
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
