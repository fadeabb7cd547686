"""The GPU, and the steps of an application run on it and on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Generic

import pytest

from tests.contract.conftest import Results, RunSteps, results_on
from whitewater.engines import Device, resolve
from whitewater.errors import DeviceError


@dataclass(frozen=True)
class Both(Generic[Results]):
    """What the steps made on either device."""

    cpu: Results
    gpu: Results


@pytest.fixture(scope="session")
def gpu() -> Device:
    """The GPU; skipped, with the reason, where there is none that can be used."""
    try:
        return resolve("gpu")
    except DeviceError as error:
        pytest.skip(str(error))


def on_both(gpu: Device, run_steps: RunSteps[Results], directory: Path) -> Both[Results]:
    """Run the steps of an application on the CPU and on the GPU."""
    return Both(results_on(resolve("cpu"), run_steps, directory), results_on(gpu, run_steps, directory))
