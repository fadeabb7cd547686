"""A process that is set up once, with its data in memory, and then answers calls that are measured one by one.

It prints a line ``ready`` when it is set up. For each line ``call`` that it reads it does its work once and prints
``done``; for the line ``answer`` that follows it prints one line, the JSON of `measure.Printed`, and what that takes is
not measured. When there is nothing more to read it ends. `published.serve` is such a process.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from benchmarks.process_tree import (
    SAMPLING_INTERVAL,
    Cost,
    MeasurementError,
    Memory,
    kill_session,
    machine_busy_seconds,
    require_proc,
    tree,
    tree_memory,
)

READY, CALL, DONE, ANSWER = "ready", "call", "done", "answer"
RESET_PEAK = "5"  # what, written to clear_refs, sets a process's peak of memory to what it holds now; see proc(5)
MESSAGE_LENGTH = 2000
END_SECONDS = 10.0


@dataclass(frozen=True)
class _Started:
    """A process with the ends of its pipes."""

    process: subprocess.Popen[bytes]
    input: IO[bytes]
    output: IO[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid


class Served:
    """A process that answers calls; it is started and ended with the context.

    Others may be started meanwhile; `wait` for each before the first call. ``timeout`` bounds the set-up, and each
    call, in seconds.
    """

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], timeout: float) -> None:
        self._command = tuple(command)
        self._environment = dict(environment)
        self._timeout = timeout
        self._failed: MeasurementError | None = None
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115, closed with this context
        self._unread = b""

    def __enter__(self) -> Self:
        require_proc()
        process = subprocess.Popen(
            self._command,
            env={**os.environ, **self._environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        self._started = _Started(process, cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _end(self._started)
        self._errors.close()

    def finish(self) -> None:
        """Tell the process to end; the context waits for it."""
        with contextlib.suppress(OSError):
            self._started.input.close()

    def wait(self) -> None:
        """Wait until the process is set up; that it could not be is the error of its first call."""
        try:
            self._expect(self._started, READY)
        except MeasurementError as error:
            self._failed = error

    def call(self) -> Cost:
        """Let the process do its work once, and return what that cost; its output is the line that it printed.

        ``cpu_seconds`` are those of the process's descendants alone: its own it tells itself, to the microsecond. The
        peaks are of this call, with the data that were in memory before it.

        Raises
        ------
        MeasurementError
            If the process could not be set up, ends, or does not answer in time.
        """
        if self._failed is not None:
            raise self._failed
        process = self._started
        for pid in tree(process.pid):
            # A process that has just ended has no peak to reset.
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text(RESET_PEAK)
        busy, own, descendants = machine_busy_seconds(), *_cpu_seconds(process.pid)
        start = time.perf_counter()
        self._say(process, CALL)
        peak = self._expect(process, DONE)
        wall = time.perf_counter() - start
        own_after, descendants_after = _cpu_seconds(process.pid)
        cpu = max(0.0, descendants_after - descendants)
        other = max(0.0, machine_busy_seconds() - busy - cpu - (own_after - own))
        self._say(process, ANSWER)
        line, _ = self._line(process)
        return Cost(0, wall, cpu, peak.resident, peak.anonymous, other, line, "")

    def _say(self, process: _Started, word: str) -> None:
        try:
            process.input.write(f"{word}\n".encode())
            process.input.flush()
        except BrokenPipeError:
            raise self._failure(process) from None

    def _expect(self, process: _Started, word: str) -> Memory:
        """Wait for a word, and return the most memory that the process's tree held meanwhile."""
        line, peak = self._line(process)
        if line != word:
            raise MeasurementError(f"{' '.join(self._command)} printed {line!r} instead of {word!r}.")
        return peak

    def _line(self, process: _Started) -> tuple[str, Memory]:
        """Return the next line that the process prints, and the most memory that its tree held meanwhile."""
        output = process.output.fileno()
        peak, deadline = Memory(), time.perf_counter() + self._timeout
        poll = select.poll()
        poll.register(output, select.POLLIN)
        while b"\n" not in self._unread:
            if time.perf_counter() > deadline:
                kill_session(process.pid)
                raise MeasurementError(f"{' '.join(self._command)} took more than {self._timeout:g} s and was stopped.")
            if not poll.poll(SAMPLING_INTERVAL * 1000):
                peak = peak.at_least(tree_memory(process.pid))
                continue
            part = os.read(output, 1 << 16)
            if not part:
                raise self._failure(process)
            self._unread += part
        line, self._unread = self._unread.split(b"\n", 1)
        return line.decode(errors="replace"), peak.at_least(tree_memory(process.pid))

    def _failure(self, process: _Started) -> MeasurementError:
        """Return the error of a process that has ended by itself."""
        status = process.process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()[-MESSAGE_LENGTH:]
        return MeasurementError(f"{' '.join(self._command)} ended with status {status}: {said}")


def _end(process: _Started) -> None:
    """Close the input of a process, at which it ends with all that it started; kill what remains."""
    for pipe in (process.input, process.output):
        with contextlib.suppress(OSError):
            pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.process.wait(END_SECONDS)
    kill_session(process.pid)
    process.process.wait()


def _cpu_seconds(pid: int) -> tuple[float, float]:
    """Return user and system time of a process, and that of its descendants, those that it waited for among them."""
    own, waited = _times(pid)
    others = [_times(each) for each in tree(pid) if each != pid]
    return own, waited + sum(sum(each) for each in others)


def _times(pid: int) -> tuple[float, float]:
    """Return user plus system time of a process, and of its children that it waited for; zeros once it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, 0.0
    user, system, waited_user, waited_system = map(int, fields[11:15])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + system) / ticks, (waited_user + waited_system) / ticks
