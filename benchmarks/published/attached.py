"""Start a Dask scheduler and workers as a user does, and a command beside them; end them with it.

``python -m benchmarks.published.attached --workers 2 --scheduler-file F -- COMMAND...``, whose input and output are
those of this process. What is started is what docs/clusters.md shows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LOOPBACK = "127.0.0.1"
START_SECONDS = 60.0
END_SECONDS = 10.0


def commands(scheduler_file: Path, *, workers: int, device: str) -> dict[str, list[str]]:
    """Return the commands of a cluster on this machine: one process a worker, on the loopback interface only."""
    dask = [sys.executable, "-m", "dask"]
    # With no address given, both would serve HTTP to all interfaces, dashboard or not.
    on_loopback = ["--host", LOOPBACK, "--no-dashboard", "--dashboard-address", f"{LOOPBACK}:0"]
    by_file = ["--scheduler-file", str(scheduler_file)]
    on_gpus = ["cuda", "worker", "--rmm-async", "--enable-cudf-spill"]
    on_cores = ["worker", "--nworkers", str(workers), "--nthreads", "1", "--memory-limit", "0"]
    kind = on_gpus if device == "gpu" else on_cores
    return {
        "scheduler": [*dask, "scheduler", "--port", "0", *on_loopback, *by_file],
        "workers": [*dask, *kind, *on_loopback, *by_file],
    }


@contextmanager
def cluster(scheduler_file: Path, *, workers: int, device: str) -> Iterator[None]:
    """Start a cluster, wait until its workers are there, and end it.

    Raises
    ------
    TimeoutError
        If it has not started in time.
    """
    from distributed import Client

    scheduler_file.unlink(missing_ok=True)
    started = []
    try:
        for command in commands(scheduler_file, workers=workers, device=device).values():
            started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=sys.stderr))
            _wait_for(scheduler_file)
        with Client(scheduler_file=str(scheduler_file)) as client:
            client.wait_for_workers(workers, timeout=START_SECONDS)
        yield
    finally:
        # The workers before the scheduler, which they would look for.
        for process in reversed(started):
            _end(process)
        scheduler_file.unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command beside a cluster; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published.attached", description=__doc__)
    parser.add_argument("--workers", type=int, required=True, help="worker processes")
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"))
    parser.add_argument("--scheduler-file", type=Path, required=True)
    parser.add_argument("command", nargs="+")
    given: Any = parser.parse_args(arguments)
    with cluster(given.scheduler_file, workers=given.workers, device=given.device):
        return subprocess.run(given.command, check=False).returncode


def _wait_for(scheduler_file: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not scheduler_file.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"The Dask scheduler has not written {scheduler_file} within {START_SECONDS:.0f} s.")
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
