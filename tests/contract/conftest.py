"""Steps run once on each device; where RAPIDS is described: in the recording, or by the packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
from distributed import Client

from tests.contract import record
from tests.contract.device_array import recording
from tests.contract.executed import ROOT, Line, executed_lines
from tests.contract.signatures import Call, Describe, recorded
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from whitewater.engines import Device

NOT_INSTALLED = "RAPIDS is not installed here; `make test-contract-rapids` installs it and asks it"


Results = TypeVar("Results")
# Runs the steps of an application on a device; they write below a folder that does not exist yet.
RunSteps = Callable[[Device, Path, Client], Results]


@dataclass(frozen=True)
class Scenario(Generic[Results]):
    """What the steps made on either device, and what they did on the strict one."""

    cpu: Results
    strict: Results
    calls: Mapping[Call, Sequence[str]]
    lines: set[Line]


def scenario_of(run_steps: RunSteps[Results], directory: Path) -> Scenario[Results]:
    """Run the steps of an application on the strict device, watched, and on the CPU."""
    _forget_what_was_computed_before()
    with stand_in_for_cupy(), recording() as calls, executed_lines() as lines:
        strict = results_on(StrictDevice(), run_steps, directory)
    return Scenario(results_on(Device(), run_steps, directory), strict, calls, lines)


def results_on(device: Device, run_steps: RunSteps[Results], directory: Path) -> Results:
    """Run the steps of an application on a device, in this process; each device writes to a folder of its own."""
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
        return run_steps(device, directory / type(device).__name__, client)


@dataclass(frozen=True)
class Simulated:
    """What the simulated GPU found, and which calls it made of CuPy."""

    found: Mapping[str, npt.NDArray[Any]]
    calls: Mapping[Call, Sequence[str]]


def simulated_by(module: str, directory: Path) -> Simulated:
    """Run a module of this package with Numba's simulator of a GPU, in a process of its own."""
    output = directory / "found.npz"
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": os.pathsep.join(["src", "."])}
    command = [sys.executable, "-m", f"tests.contract.{module}", str(output)]
    subprocess.run(command, check=True, env=environment, cwd=ROOT.parents[1])
    with np.load(output) as results:
        found = dict(results)
    calls = {
        Call(**{**call, "keywords": tuple(call["keywords"])}): places
        for call, places in json.loads(output.with_suffix(".json").read_text())
    }
    return Simulated(found, calls)


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
