"""Run a command as a fresh process and measure all that it costs, with every process that it starts.

Linux only: memory and times are read from ``/proc``.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from whitewater.errors import WhitewaterError

SAMPLING_INTERVAL = 0.02  # seconds; one look costs ~0.3 ms of a core that the command does not use
MEMORY_FIELDS = ("VmRSS", "VmHWM", "RssAnon", "RssShmem")


@dataclass(frozen=True)
class Cost:
    """What a command cost, from before it was started until after it ended.

    ``cpu_seconds`` is user and system time of the command and of every descendant that was waited for.
    ``peak_memory_bytes`` is the largest sum over the process tree of resident memory, as seen every 20 ms, and at least
    the exact peak of each single process; a page that processes share counts in each, and so do mapped files.
    ``peak_anonymous_bytes`` is the same sum without mapped files, which the kernel may drop at any time.
    ``other_cpu_seconds`` is what everything else on the machine used meanwhile: a sample with much of it was disturbed.
    """

    exit_status: int
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    peak_anonymous_bytes: int
    other_cpu_seconds: float
    output: str
    errors: str


class MeasurementError(WhitewaterError):
    """A measurement cannot be made; the message says why."""


def run(command: Sequence[str], *, environment: Mapping[str, str], timeout: float, folder: Path | None = None) -> Cost:
    """Run a command to its end and return its cost.

    Parameters
    ----------
    command
        Program and arguments; no shell.
    environment
        Variables set on top of this process's own.
    timeout
        Seconds after which the command and all that it started are killed; the exit status is then -9.
    folder
        Its working directory; by default that of this process.

    Raises
    ------
    MeasurementError
        If the kernel does not list the children of a process.
    """
    require_proc()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        busy_before = machine_busy_seconds()
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            peak = _watch(process.pid, deadline=start + timeout)
        finally:
            kill_session(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)  # Popen must not wait for it a second time
        cpu = usage.ru_utime + usage.ru_stime
        other = max(0.0, machine_busy_seconds() - busy_before - cpu)
        return Cost(process.returncode, wall, cpu, peak.resident, peak.anonymous, other, _text(output), _text(errors))


@dataclass(frozen=True)
class Memory:
    """Bytes that processes hold in memory, and how many of them are not of mapped files."""

    resident: int = 0
    anonymous: int = 0

    def at_least(self, other: Memory) -> Memory:
        """Return the larger of each."""
        return Memory(max(self.resident, other.resident), max(self.anonymous, other.anonymous))


def _watch(pid: int, *, deadline: float) -> Memory:
    """Sample the tree's memory until the process has ended (it is left to be waited for) or the deadline is over."""
    peak = Memory()
    # The descriptor becomes readable the moment that the process ends, so that sampling adds nothing to the wall time.
    process = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(process, select.POLLIN)
        while time.perf_counter() < deadline:
            peak = peak.at_least(tree_memory(pid))
            if poll.poll(SAMPLING_INTERVAL * 1000):
                break
    finally:
        os.close(process)
    return peak


def tree_memory(pid: int) -> Memory:
    """Return the memory of a process and its descendants, at least the peak of each."""
    fields = [_memory_fields(member) for member in tree(pid)]
    largest = max((process["VmHWM"] for process in fields), default=0)
    resident = sum(process["VmRSS"] for process in fields)
    anonymous = sum(process["RssAnon"] + process["RssShmem"] for process in fields)
    return Memory(max(resident, largest), anonymous)


def tree(pid: int) -> Iterator[int]:
    """Yield the process and its descendants; one that ends meanwhile is left out."""
    yield pid
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from tree(int(child))


def _memory_fields(pid: int) -> dict[str, int]:
    """Return the fields of a process in bytes; zeros once it has ended."""
    found = dict.fromkeys(MEMORY_FIELDS, 0)
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name in found:
                found[name] = int(value.split()[0]) * 1024
    return found


def kill_session(pid: int) -> None:
    """Kill what a command left behind, which would disturb the next sample; while it runs, its own sessions, too."""
    for member in list(tree(pid)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(os.getpgid(member), signal.SIGKILL)


def machine_busy_seconds() -> float:
    """Return the CPU seconds that all of the machine's processors have worked since it started."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def require_proc() -> None:
    """Raise MeasurementError where the kernel does not list the children of a process."""
    if not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists():
        raise MeasurementError(
            "This system does not list the children of a process in /proc, so a process tree cannot be measured. "
            "Measure on Linux, with a kernel built with CONFIG_PROC_CHILDREN, as those of the distributions are."
        )


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
