"""A step that does next to nothing, as a process: what each step costs on a device before its work begins."""

from __future__ import annotations

import time

started = time.perf_counter()

import argparse  # noqa: E402
import json  # noqa: E402

from benchmarks.placement import add_options, placement_of  # noqa: E402
from whitewater.config.base import Section  # noqa: E402
from whitewater.engines import Device  # noqa: E402
from whitewater.process import exit_fast  # noqa: E402


def touch(task: int, *, device: Device) -> int:
    """Allocate a number on the device, and wait for it."""
    value = device.xp.full(1, task)
    device.synchronize()
    return int(value[0])


def main() -> None:
    """Find the device, open the workers, touch the device on them, end them; print how long each took."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    parser.add_argument("--threads", type=int, required=True)
    given = parser.parse_args()
    times = [started, time.perf_counter()]
    run = placement_of(given).run("taxi", "tips", Section(), threads=given.threads)
    times.append(time.perf_counter())
    with run.workers() as workers:
        times.append(time.perf_counter())
        answer = sum(workers.map(touch, [1, 2, 3], label="touch", shared={"device": run.device}))
        times.append(time.perf_counter())
    times.append(time.perf_counter())
    names = ("import", "find the device", "open workers", "first tasks", "end workers")
    phases = {name: stop - start for name, start, stop in zip(names, times[:-1], times[1:], strict=True)}
    print(json.dumps({"compute_seconds": sum(phases.values()), "answer": answer, "phases": phases}))


if __name__ == "__main__":
    main()
    exit_fast(0)
