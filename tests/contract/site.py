"""Where the steps of an application run in these tests, and what crossed to the device and back while they did.

As in an application, steps run by Dask on a GPU, and without it on the CPU. On the stand-in for a GPU, frames are those
of pandas, watched, with arrays of the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.contract.frame_calls import frames_as_cudf
from tests.contract.strict_device import StrictDevice
from tests.contract.traffic import Traffic, bytes_of_arrays, counted
from whitewater.config.base import Section
from whitewater.engines import Device
from whitewater.engines.config import Cluster, Engine
from whitewater.step import Run


@dataclass(frozen=True)
class Site:
    """A device, and the cluster that steps use it on: by default none, so that tasks run on threads of this process."""

    device: Device
    cluster: Cluster = field(default_factory=Cluster)
    threads: int = 1
    # Of the first run of each step, or of each case of a step that has several.
    traffic: dict[str, Traffic] = field(default_factory=dict)

    def run(
        self, application: str, function: Callable[..., None], *, settings: Section, case: str = "", **paths: Any
    ) -> None:  # fmt: skip
        """Run a step, and count what crosses meanwhile."""
        step = function.__name__
        engine: Engine = "dask" if self.device.name == "gpu" else "local"
        run = Run(application, step, self.device, settings, self.threads, self.cluster, engine=engine)
        inputs, outputs = ([path for path in _flat(paths) if path.exists() == old] for old in (True, False))
        traffic = Traffic()
        with frames_of(self.device), counted(traffic):
            function(run, **paths)
        traffic.input, traffic.output = (sum(map(bytes_of_arrays, each)) for each in (inputs, outputs))
        self.traffic.setdefault(" ".join(filter(None, (step, case))), traffic)


def frames_of(device: Device) -> AbstractContextManager[object]:
    """Let frames have arrays of the device, where that is the stand-in."""
    return frames_as_cudf(arrays=True) if isinstance(device, StrictDevice) else nullcontext()


def _flat(paths: Mapping[str, Path | Mapping[str, Path]]) -> Iterator[Path]:
    for path in paths.values():
        yield from path.values() if isinstance(path, Mapping) else [path]
