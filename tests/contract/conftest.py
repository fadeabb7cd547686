"""Steps run once on each device; where RAPIDS is described: in the recording, or by the packages."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from distributed import LocalCluster

from tests.contract import record
from tests.contract.device_array import record as record_call
from tests.contract.device_array import recording
from tests.contract.executed import Line, executed_lines
from tests.contract.signatures import Call, Describe, recorded
from tests.contract.site import RunSteps, Site
from tests.contract.strict_device import StrictDevice, cluster_of, stand_in_for_cupy
from tests.contract.traffic import Traffic
from whitewater.engines import Device
from whitewater.engines.gpu_memory import ENVIRONMENT

NOT_INSTALLED = "RAPIDS is not installed here; `make test-contract-rapids` installs it and asks it"


@dataclass(frozen=True)
class Scenario:
    """What steps wrote on the CPU, and on the strict device in their process and on workers; what they did there."""

    cpu: Path
    strict: Path
    on_workers: Path
    calls: Mapping[Call, Sequence[str]]
    lines: set[Line]
    traffic: Mapping[str, Traffic]
    traffic_on_workers: Mapping[str, Traffic]


def scenario_of(run_steps: RunSteps, directory: Path) -> Scenario:
    """Run the steps of an application on the strict device, watched, on workers that have it, and on the CPU."""
    _forget_what_was_computed_before()
    here, cpu, strict, on_workers = Site(StrictDevice()), *(directory / name for name in ("cpu", "strict", "workers"))
    with stand_in_for_cupy(), cluster_of(2) as cluster:
        elsewhere = Site(StrictDevice(), cluster)
        with recording() as calls, executed_lines() as lines:
            run_steps(here, strict)
        run_steps(elsewhere, on_workers)
    run_steps(Site(Device()), cpu)
    return Scenario(cpu, strict, on_workers, calls, lines, here.traffic, elsewhere.traffic)


def _forget_what_was_computed_before() -> None:
    """Empty the caches of our functions, so that their lines run."""
    for name, module in list(sys.modules.items()):
        if name.startswith("whitewater."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


@pytest.fixture(params=["recorded", pytest.param("installed", marks=pytest.mark.rapids)])
def rapids(request: pytest.FixtureRequest) -> Describe:
    """What RAPIDS accepts: as recorded, and as the packages say where they are installed."""
    if request.param == "recorded":
        return recorded().get
    if find_spec("cudf") is None:
        pytest.skip(NOT_INSTALLED)
    return record.describe


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stand-in for dask_cuda: a mapping that fills with what is asked of its cluster."""
    settings_asked: dict[str, Any] = {}

    def local_cuda_cluster(**settings: Any) -> LocalCluster:
        record_call("dask_cuda.LocalCUDACluster", 0, tuple(settings))
        settings_asked.update(settings)
        return LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0")

    stand_in = ModuleType("dask_cuda")
    vars(stand_in)["LocalCUDACluster"] = local_cuda_cluster
    monkeypatch.setitem(sys.modules, "dask_cuda", stand_in)
    for name in ENVIRONMENT:
        monkeypatch.setenv(name, "")
    return settings_asked
