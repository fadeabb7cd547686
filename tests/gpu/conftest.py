"""The GPU, and the steps of an application run on it and on the CPU.

python -m pytest tests/gpu                # on a GPU
python -m pytest tests/gpu --stand-in     # the same tests on a stand-in, which finds mistakes in them anywhere
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from whitewater.engines import Device, resolve
from whitewater.errors import DeviceError

# Tasks at once on one GPU, as many as `cluster.gpu_tasks` allows by default.
THREADS = 4


@dataclass(frozen=True)
class Both:
    """The folders of what the steps made on either device."""

    cpu: Path
    gpu: Path


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stand-in", action="store_true", help="run the tests in tests/gpu on a stand-in for the GPU")


@pytest.fixture(scope="session")
def gpu(pytestconfig: pytest.Config) -> Iterator[Device]:
    """The GPU, used by this process; skipped, with the reason, where there is none that can be used."""
    if pytestconfig.getoption("--stand-in"):
        with stand_in_for_cupy():
            yield StrictDevice()
        return
    try:
        device = resolve("gpu")
    except DeviceError as error:
        pytest.skip(str(error))
    yield device


@pytest.fixture(scope="session", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    """Each device in turn, the stand-in for the GPU included."""
    found: Device = request.getfixturevalue("gpu") if request.param == "gpu" else resolve("cpu")
    return found


@pytest.fixture(scope="session")
def hardware(gpu: Device) -> Device:
    """The GPU, for what no stand-in has: its memory, libraries whose results are their own, processes."""
    if isinstance(gpu, StrictDevice):
        pytest.skip("asks the hardware itself, which the stand-in has not")
    return gpu


def on_both(site: Site, steps: Any, directory: Path, run_steps: str = "run_steps") -> Both:
    """Run the steps of an application on the CPU and at a site with a GPU; ``steps`` is its module."""
    both = Both(directory / "cpu", directory / "gpu")
    with steps.spread_out():
        inputs = steps.write_inputs(directory)
        for where, results in ((Site(resolve("cpu"), threads=THREADS), both.cpu), (site, both.gpu)):
            getattr(steps, run_steps)(where, inputs=inputs, results=results)
    return both
