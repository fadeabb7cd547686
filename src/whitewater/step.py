"""A step as it runs: its device, settings, workers, outputs and record.

A step is a function whose keyword parameters are the paths that it reads (`pathlib.Path`) and writes (`Output`)::

    def clean(run: Run[Clean], *, standardized: Path, zones: Path, trips: Output) -> None: ...

or groups of files, `Inputs` and `Outputs`, which map file names to paths. Its module has its name and ends with
``if __name__ == "__main__": main(clean)``, see `whitewater.script`. Snakemake inserts lines at the top of a script, so
there is no ``from __future__`` import. The step writes to temporary paths beside the final ones; when it returns, all
outputs are checked, synchronized to disk and renamed together.
"""

import os
import platform
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NewType, TypeVar

import whitewater
from whitewater.config.base import Section
from whitewater.engines import Device, memory
from whitewater.engines.config import Cluster, Engine
from whitewater.engines.device import versions
from whitewater.engines.workers import DaskWorkers, Workers, thread_workers
from whitewater.errors import without_secrets
from whitewater.io.store import digests, size_of, stage_outputs, write_json

Output = NewType("Output", Path)
Inputs = NewType("Inputs", dict[str, Path])
Outputs = NewType("Outputs", dict[str, Path])
RECORD_FORMAT = 1
Paths = Mapping[str, Path | dict[str, Path]]
Settings_co = TypeVar("Settings_co", bound=Section, covariant=True)


@dataclass(frozen=True)
class Run(Generic[Settings_co]):
    """What a step gets besides its paths; with ``refresh`` it downloads its sources again."""

    application: str
    step: str
    device: Device
    settings: Settings_co
    threads: int = 1
    cluster_settings: Cluster = field(default_factory=Cluster)
    report: Path | None = None
    refresh: bool = False
    engine: Engine = "local"
    facts: dict[str, Any] = field(default_factory=dict)

    def note(self, **facts: Any) -> None:
        """Add facts, such as row counts, to the record of the step."""
        self.facts.update(facts)

    @property
    def local_device(self) -> Device:
        """The device of this process: the CPU if the GPUs are those of an attached cluster."""
        return Device() if self.cluster_settings.attached else self.device

    @property
    def downloads(self) -> Path:
        """Folder of the application's downloads, shared by all runs."""
        return Path("data", self.application)

    @contextmanager
    def workers(self, *, large: bool = False, small: bool = False) -> Iterator[Workers]:
        """Open the workers of the step: ``with run.workers() as workers: workers.map(...)``.

        ``large``: the input is worth starting processes. ``small``: it is not, so tasks run on threads of this process
        whatever the settings say, unless their GPUs are elsewhere.
        """
        with ExitStack() as stack:
            workers: Workers = stack.enter_context(
                thread_workers(self.threads)
                if small and self.local_device == self.device
                else self.device.workers(self.cluster_settings, engine=self.engine, threads=self.threads, large=large)
            )
            if self.engine == "dask":
                import dask

                stack.enter_context(dask.config.set({"dataframe.backend": self.device.frames}))
            if self.report and self.cluster_settings.performance_report and isinstance(workers, DaskWorkers):
                from distributed import performance_report

                self.note(performance_report=str(self.report))
                # mode="inline" puts Bokeh's scripts into the page, which then opens without a network.
                stack.enter_context(performance_report(filename=str(self.report), mode="inline"))
            yield workers
            self.note(workers=_describe_workers(workers, self.device))
            if self.cluster_settings.attached:
                self.note(device=workers.call_on_each(self.device.describe)[0])


def execute(
    run: Run[Any], function: Callable[..., None], *, inputs: Paths, outputs: Paths, record: Path | None
) -> None:
    """Run a step: stage its outputs, call it, check and rename them, and write its record."""
    started, clock, cpu_clock = time.time(), time.perf_counter(), time.process_time()
    final = _flatten(outputs)
    targets = {**final, "record": record} if record else final
    owner = next(iter(targets.values())).parent / f".{run.application}-{run.step}.owner"
    # Polars reads these when it is first imported.
    os.environ["POLARS_MAX_THREADS"] = str(run.threads)
    os.environ.setdefault(*memory.KEPT_BY_POLARS)
    with stage_outputs(targets, owner=owner) as paths:
        staged_outputs = {
            name: {key: paths[f"{name}/{key}"] for key in path} if isinstance(path, dict) else paths[name]
            for name, path in outputs.items()
        }
        function(run, **inputs, **staged_outputs)
        if record:
            times = {
                "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
                "seconds": round(time.perf_counter() - clock, 3),
                "cpu_seconds": round(time.process_time() - cpu_clock, 3),
            }
            hashes = digests([paths[name] for name in final], threads=run.threads)
            files = {
                name: {"path": str(path), "bytes": size_of(paths[name]), "sha256": hashes[paths[name]]}
                for name, path in final.items()
            }
            write_json(paths["record"], {**_describe_run(run, inputs), **times, "outputs": files})


def _flatten(paths: Paths) -> dict[str, Path]:
    """Return one flat mapping, with the files of a group under ``<group>/<file name>``."""
    flat: dict[str, Path] = {}
    for name, path in paths.items():
        flat |= {f"{name}/{key}": file for key, file in path.items()} if isinstance(path, dict) else {name: path}
    return flat


def _describe_run(run: Run[Any], inputs: Paths) -> dict[str, Any]:
    facts = dict(run.facts)
    return {
        "format": RECORD_FORMAT,
        "application": run.application,
        "step": run.step,
        "engine": run.engine,
        # Workers of an attached cluster have reported their own device.
        "device": facts.pop("device", None) or run.local_device.describe(),
        "settings": without_secrets(run.settings.model_dump(mode="json")),
        "inputs": {name: str(path) for name, path in _flatten(inputs).items()},
        "facts": facts,
        "peak_memory_bytes": max(memory.peak(), run.facts.get("workers", {}).get("peak_memory_bytes", 0)),
        "host": socket.gethostname(),
        "threads": run.threads,
        "python": platform.python_version(),
        "versions": {"whitewater": whitewater.__version__, **versions("dask", "pandas", "snakemake")},
    }


def _describe_workers(workers: Workers, device: Device) -> dict[str, Any]:
    """Return the hosts of the workers and their peak memory, summed over processes."""
    hosts, peaks = zip(*workers.call_on_each(lambda: (socket.gethostname(), (os.getpid(), memory.peak()))), strict=True)
    on_device = [peak for peak in workers.call_on_each(device.peak_memory) if peak is not None]
    return {
        "count": len(workers.threads),
        "threads": sum(workers.threads),
        "hosts": sorted(set(hosts)),
        "peak_memory_bytes": sum(dict(peaks).values()),
        "peak_device_memory_bytes": sum(on_device) if on_device else None,
    }
