"""The device `gpu` where there is no GPU: its refusals, and its memory, workers and records with stand-ins."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import dask
import pytest
from distributed import Client

from benchmarks.published.dask_cluster import COLLECTIONS, dask_client, frames_of
from tests.contract.device_array import module, record, recording
from tests.contract.gaps import known_gaps
from tests.contract.signatures import problems, recorded
from tests.contract.simulated import numpy_as_cupy
from whitewater.engines import resolve
from whitewater.engines.config import Cluster
from whitewater.engines.gpu import PACKAGES, GpuDevice, problem_of_gpu
from whitewater.engines.gpu_check import missing_gpu
from whitewater.engines.gpu_cluster import DASK_SETTINGS, gpu_cluster
from whitewater.engines.gpu_memory import ENVIRONMENT, peak_memory, prepare_memory
from whitewater.engines.workers import DaskWorkers, Threads
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
    assert problems(calls, recorded().get) == []
    assert known_gaps(calls) == []


@pytest.fixture
def rmm(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A stand-in for RMM: a list of the resources that were current."""
    current: list[Any] = [Cuda()]
    mr = module(
        "rmm.mr",
        CudaMemoryResource=Cuda,
        CudaAsyncMemoryResource=CudaAsync,
        StatisticsResourceAdaptor=Statistics,
        UpstreamResourceAdaptor=Adaptor,
        get_current_device_resource=lambda: current[-1],
        set_current_device_resource=current.append,
    )
    allocators = module("rmm.allocators.cupy", rmm_cupy_allocator="RMM")
    for each in (module("rmm", mr=mr), mr, module("rmm.allocators", cupy=allocators), allocators):
        monkeypatch.setitem(sys.modules, each.__name__, each)
    for name in ENVIRONMENT:
        monkeypatch.setenv(name, "")  # is restored afterwards
        del os.environ[name]
    return current


@pytest.fixture
def allocators(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A stand-in for CuPy on two GPUs that its driver sees: a list of the allocators that CuPy was given."""
    given: list[str] = []
    runtime = SimpleNamespace(
        getDevice=lambda: 0,
        getDeviceCount=lambda: 2,
        deviceGetPCIBusId=lambda number: f"0000:0{number}:00.0",
        memGetInfo=lambda: (5_000, 9_000),
    )
    cuda = SimpleNamespace(is_available=lambda: True, runtime=runtime, set_allocator=given.append)
    monkeypatch.setitem(sys.modules, "cupy", module("cupy", cuda=cuda))
    monkeypatch.setattr("whitewater.engines.gpu.find_spec", lambda name: name)
    return given


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


def test_the_memory_is_prepared_once(rmm: list[Any], allocators: list[str]) -> None:
    assert resolve("gpu") == resolve("gpu")
    assert [type(each) for each in rmm] == [Cuda, Statistics]
    assert type(rmm[-1].upstream) is CudaAsync
    assert allocators == ["RMM"]
    assert {name: os.environ[name] for name in ENVIRONMENT} == ENVIRONMENT


@pytest.mark.usefixtures("allocators")
def test_a_pool_that_was_there_before_stays(rmm: list[Any]) -> None:
    rmm.append(own := Adaptor(CudaAsync()))
    prepare_memory()
    assert rmm[-1].upstream is own


def test_where_the_workers_are_elsewhere_this_process_leaves_the_gpu_alone(
    rmm: list[Any], allocators: list[str]
) -> None:
    assert resolve("gpu", attached=True) == GpuDevice()
    assert len(rmm) == 1
    assert not allocators


@pytest.mark.usefixtures("rmm", "allocators")
def test_what_the_pool_keeps_for_later_is_free_too() -> None:
    assert GpuDevice().free_memory() == 5_000
    prepare_memory()
    assert GpuDevice().free_memory() == 5_400


@pytest.mark.usefixtures("rmm", "allocators")
@pytest.mark.parametrize(("threads", "gpu_tasks", "at_once"), [(8, 4, 4), (2, 4, 2), (8, 1, 1)])
def test_one_gpu_is_used_by_threads_of_this_process(
    threads: int, gpu_tasks: int, at_once: int, caplog: pytest.LogCaptureFixture
) -> None:
    device = resolve("gpu")
    with caplog.at_level("INFO"), device.workers(Cluster(gpu_tasks=gpu_tasks), threads=threads, large=True) as workers:
        assert isinstance(workers, Threads)
        assert list(workers.threads) == [at_once]
        assert workers.call_on_each(device.peak_memory) == [1_000]
        assert workers.call_on_each(os.getpid) == [os.getpid()]
    assert "one of the 2 GPUs" in caplog.text
    assert "whitewater cluster start --device gpu" in caplog.text


@pytest.mark.usefixtures("rmm", "allocators")
def test_dasks_report_is_of_threads_of_this_process_too() -> None:
    with resolve("gpu").workers(Cluster(performance_report=True, gpu_tasks=2), threads=8) as workers:
        assert isinstance(workers, DaskWorkers)
        assert list(workers.threads) == [2]
        assert workers.call_on_each(os.getpid) == [os.getpid()]


@pytest.mark.usefixtures("rmm", "allocators")
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
        with pytest.raises(DeviceError) as refusal, gpu_cluster(settings, problem_of_gpu=problem_of_gpu):
            pass
        assert next(iter(workers["workers"])) in str(refusal.value)


@pytest.mark.usefixtures("rmm", "allocators")
def test_collections_of_dask_are_of_cupy_and_cudf_and_spill_at_the_limit(asked: dict[str, Any]) -> None:
    # What the strict device sets, too.
    expected = DASK_SETTINGS | COLLECTIONS
    before = {name: dask.config.get(name, None) for name in expected}
    with dask_client(GpuDevice(), Cluster(), threads=8, memory_limit=12_345) as client:
        assert {name: dask.config.get(name) for name in expected} == expected
        assert asked["rmm_maximum_pool_size"] == 12_345
        assert client.submit(peak_memory).result() == 1_000
    assert {name: dask.config.get(name, None) for name in expected} == before


def test_frames_are_those_of_cudf(monkeypatch: pytest.MonkeyPatch) -> None:
    cudf = module("cudf")
    monkeypatch.setitem(sys.modules, "cudf", cudf)
    assert frames_of(GpuDevice()) is cudf


def test_to_synchronize_is_to_wait_for_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    runtime = SimpleNamespace(deviceSynchronize=lambda: waited.append("for the GPU"))
    monkeypatch.setitem(sys.modules, "cupy", module("cupy", cuda=SimpleNamespace(runtime=runtime)))
    GpuDevice().synchronize()
    assert waited == ["for the GPU"]


@pytest.mark.usefixtures("allocators")
def test_what_was_allocated_is_known_below_the_resource_that_cudf_adds_to_spill(rmm: list[Any]) -> None:
    prepare_memory()
    rmm.append(Adaptor(rmm[-1]))
    assert GpuDevice().peak_memory() == 1_000


@pytest.mark.usefixtures("rmm")
def test_what_was_allocated_is_not_known_where_nothing_counts() -> None:
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
