"""Runs a copy of a project as its user would, with Snakemake and single steps as processes.

It imports nothing else of the library: tests see only commands and files.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, TypeVar

import psutil

# Files and folders of the project that tests may change.
COPIED = ("Makefile", "Snakefile", "pyproject.toml", "workflows", "config", "profiles")
# Configuration files of tests: that of a tiny run, and the settings of a single test.
MINE = ("tiny.yaml", "mine.yaml")
DEADLINE = 400.0
POLL = 0.005
OURS = re.compile(
    r"^(?:(?:Config|Input|Device|Package|Integrity|Resource)Error:|[a-z]\w* [a-z]\w* failed:)", re.MULTILINE
)
# Snakemake's output after one of our messages.
AFTERWARDS = re.compile(r"^(?:RuleException:|\[\w{3} \w{3} +\d+ [\d:]+ \d{4}\]|Shutting down, )", re.MULTILINE)
# Hidden files that runs keep: Snakemake's time stamps, and locks.
KEPT = re.compile(r"\.snakemake_timestamp|\.\w+-\w+\.owner|\.fetch\.lock")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Ended:
    """The exit status and terminal output of a command."""

    status: int
    terminal: str

    @property
    def messages(self) -> list[str]:
        """Whitewater's own error messages, with all their lines."""
        bounds = [*(match.start() for match in OURS.finditer(self.terminal)), len(self.terminal)]
        return [AFTERWARDS.split(self.terminal[start:stop])[0].strip() for start, stop in pairwise(bounds)]

    @property
    def message(self) -> str:
        """The message of a failed command; checks that it is the only one and there is no traceback."""
        assert self.status not in (0, -signal.SIGKILL), self.terminal
        assert "Traceback" not in self.terminal, self.terminal
        assert len(self.messages) == 1, self.terminal
        return self.messages[0]

    @property
    def jobs(self) -> set[str]:
        """The rules that a run or dry run of Snakemake lists in its job statistics."""
        table = re.search(r"^Job stats:\njob +count\n[- ]+\n(.*?)^total ", self.terminal, re.MULTILINE | re.DOTALL)
        return {line.split()[0] for line in table[1].splitlines()} if table else set()


@dataclass(frozen=True)
class Running:
    """A running command in its own process group."""

    process: subprocess.Popen[bytes]
    terminal: Path

    def ended(self) -> Ended:
        """Wait until it ends."""
        return Ended(self.process.wait(DEADLINE), self.terminal.read_text())

    def step(self, name: str) -> psutil.Process:
        """Wait until it has started a step, and return the step's process."""
        # Snakemake runs a copy of the script, whose name ends with that of the script.
        script = re.compile(rf"\.snakemake/scripts/.*\.{name}\.py$")

        def look() -> psutil.Process | None:
            children = psutil.Process(self.process.pid).children(recursive=True)
            return next((child for child in children if any(map(script.search, command_of(child)[1:2]))), None)

        return eventually(look, what=f"the process of {name}")

    def kill(self) -> None:
        """Kill the process as `kill -9` does; its children live on."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(DEADLINE)


def command_of(process: psutil.Process) -> list[str]:
    """Return the command line of a process; empty if it is gone."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def eventually(look: Callable[[], Value | None], *, what: str) -> Value:
    """Call a function until it returns a value."""
    limit = time.monotonic() + DEADLINE
    while time.monotonic() < limit:
        if value := look():
            return value
        time.sleep(POLL)
    raise AssertionError(f"{what} did not come within {DEADLINE:.0f} s")


@dataclass(frozen=True)
class Clone:
    """A copy of the project, and the commands started in it."""

    folder: Path
    started: list[Running] = field(default_factory=list)

    def __truediv__(self, path: str) -> Path:
        return self.folder / path

    def write(self, name: str, values: Mapping[str, Any]) -> str:
        """Write a configuration file (JSON is YAML) and return its name."""
        (self.folder / name).write_text(json.dumps(values))
        return name

    def start(self, *command: str, **variables: str) -> Running:
        """Start a command in the activated environment; unless V is empty, Snakemake shows all of its output."""
        own = {"PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}  # variables that `make test` sets for its own commands
        here = {name: value for name, value in os.environ.items() if name not in own}
        path = f"{Path(sys.executable).parent}{os.pathsep}{here['PATH']}"
        terminal = self.folder / f"terminal-{len(self.started)}.txt"
        # Tests in the background of a script ignore Ctrl-C, and their child processes would inherit that.
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        with terminal.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, env={**here, "PATH": path, "V": "1", **variables}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        signal.signal(signal.SIGINT, handler)
        running = Running(process, terminal)
        self.started.append(running)
        return running

    def start_snakemake(self, *arguments: str, files: Sequence[str] = ("tiny.yaml",), **variables: str) -> Running:
        """Start Snakemake with configuration files besides the repository's own."""
        command = (sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", *files)
        return self.start(*command, *arguments, **variables)

    def snakemake(self, *arguments: str, files: Sequence[str] = ("tiny.yaml",), **variables: str) -> Ended:
        """Run Snakemake to its end."""
        return self.start_snakemake(*arguments, files=files, **variables).ended()

    def run(self, application: str, settings: Mapping[str, Any], *targets: str, **variables: str) -> Ended:
        """Run an application or ``targets``, with a section in ``mine.yaml`` that overrides the tiny configuration."""
        self.write(MINE[-1], {application: settings})
        return self.snakemake("--", *(targets or (application,)), files=MINE, **variables)

    def json(self, path: str) -> Any:
        """Read a JSON file of the clone."""
        return json.loads((self.folder / path).read_text())

    def copy(self, folder: Path) -> Self:
        """Return a copy with the same results and time stamps."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return type(self)(folder)

    def end(self) -> None:
        """Kill all processes that run in its folder, including orphans."""
        # Processes are found by their folder, because the system soon reuses process ids.
        folder, own = self.folder.resolve(), os.getpid()
        while processes := [
            process
            for process in psutil.process_iter(["cwd"])
            if process.pid != own and Path(process.info["cwd"] or "").is_relative_to(folder)
        ]:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(processes)


def make_clone(project: Path, folder: Path, tiny: Mapping[str, Any]) -> Clone:
    """Copy a project; ``tiny`` is a configuration with which its runs are small."""
    folder.mkdir()
    for name in COPIED:
        source = project / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        elif source.exists():
            shutil.copy2(source, folder / name)
    for name in ("src", "envs", "benchmarks"):  # linked, so that caches of compiled kernels are shared
        if (project / name).exists():
            (folder / name).symlink_to(project / name)
    clone = Clone(folder)
    clone.write(MINE[0], tiny)
    return clone


def staging(clone: Clone, output: str) -> Path:
    """Wait until a step starts to write an output, and return the temporary path."""
    final = clone / output
    return eventually(lambda: next(iter(final.parent.glob(f".{final.name}.*.part")), None), what=f"work on {output}")


def leftovers(clone: Clone) -> list[str]:
    """Return the hidden files and directories that a run should have removed."""
    hidden = [path for top in ("data", "logs", "results") for path in (clone / top).rglob(".*")]
    return sorted(str(path.relative_to(clone.folder)) for path in hidden if not KEPT.fullmatch(path.name))


def contents(directory: Path) -> dict[str, bytes]:
    """Return the bytes of each file in a directory by relative path, without Snakemake's time stamp."""
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != ".snakemake_timestamp")
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, or of the sorted listing of a directory, as the manifest defines it."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = {f"./{name}": hashlib.sha256(data).hexdigest() for name, data in contents(path).items()}
    listing = "".join(f"{files[name]}  {name}\n" for name in sorted(files))
    return hashlib.sha256(listing.encode()).hexdigest()
