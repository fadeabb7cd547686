"""The taxi steps, run once on each device; where RAPIDS is described: in the recording, or by the packages."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import pytest
from distributed import Client

from tests.contract import record
from tests.contract.device_array import recording
from tests.contract.executed import Line, executed_lines
from tests.contract.raw_trips import write_inputs
from tests.contract.signatures import Call, Describe, recorded
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from tests.contract.taxi_steps import Results, run_steps
from whitewater.devices.cpu import CpuDevice

NOT_INSTALLED = "RAPIDS is not installed here; `make test-contract-rapids` installs it and asks it"


@dataclass(frozen=True)
class Scenario:
    """What the steps made on either device, and what they did on the strict one."""

    cpu: Results
    strict: Results
    calls: Mapping[Call, Sequence[str]]
    lines: set[Line]


@pytest.fixture(scope="session")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    directory = tmp_path_factory.mktemp("taxi")
    inputs, zones = write_inputs(directory)

    def results_on(device: CpuDevice | StrictDevice) -> Results:
        with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
            results = directory / type(device).__name__
            return run_steps(device, inputs=inputs, zones=zones, results=results, client=client)

    _forget_what_was_computed_before()
    with stand_in_for_cupy(), recording() as calls, executed_lines() as lines:
        strict = results_on(StrictDevice())
    return Scenario(results_on(CpuDevice()), strict, calls, lines)


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
