"""A project run as its user runs it: Snakemake and single steps, as processes, in a copy of its own.

Nothing here imports the rest of the library: what is tested is asked from outside, a command in, files out.
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

# What a run reads is copied, so that it may be changed; the packages are linked, so that compiled kernels are shared.
COPIED = ("Makefile", "Snakefile", "pyproject.toml", "workflows", "config", "profiles")
LINKED = ("src", "envs", "benchmarks")
# The configuration of tests over that of the project: a tiny run, and what a test sets besides.
MINE = ("tiny.yaml", "mine.yaml")
DEADLINE = 400.0
# What `make test` sets for its own commands: its packages, and that a make which is started is not the first.
NOT_PASSED_ON = ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
POLL = 0.005
OURS = re.compile(
    r"^(?:(?:Config|Input|Device|Package|Integrity|Resource)Error:|[a-z]\w* [a-z]\w* failed:)", re.MULTILINE
)
# What Snakemake says after a message of ours.
AFTERWARDS = re.compile(r"^(?:RuleException:|\[\w{3} \w{3} +\d+ [\d:]+ \d{4}\]|Shutting down, )", re.MULTILINE)
# Files that runs keep on purpose: Snakemake's time stamps, and the locks that keep runs apart.
KEPT = re.compile(r"\.snakemake_timestamp|\.\w+-\w+\.owner|\.fetch\.lock")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Ended:
    """What a command left on the terminal, and its exit status."""

    status: int
    terminal: str

    @property
    def messages(self) -> list[str]:
        """Whitewater's own messages about what went wrong, each with the lines that follow it."""
        bounds = [*(match.start() for match in OURS.finditer(self.terminal)), len(self.terminal)]
        return [AFTERWARDS.split(self.terminal[start:stop])[0].strip() for start, stop in pairwise(bounds)]

    @property
    def message(self) -> str:
        """The one message of a command that failed as it should: no traceback on the terminal, nothing said twice."""
        assert self.status not in (0, -signal.SIGKILL), self.terminal
        assert "Traceback" not in self.terminal, self.terminal
        assert len(self.messages) == 1, self.terminal
        return self.messages[0]

    @property
    def jobs(self) -> set[str]:
        """The rules that a Snakemake run, or a dry run, lists as having to run."""
        table = re.search(r"^Job stats:\njob +count\n[- ]+\n(.*?)^total ", self.terminal, re.MULTILINE | re.DOTALL)
        return {line.split()[0] for line in table[1].splitlines()} if table else set()


@dataclass(frozen=True)
class Running:
    """A command that was started, in a process group of its own."""

    process: subprocess.Popen[bytes]
    terminal: Path

    def ended(self) -> Ended:
        """Wait for its end."""
        return Ended(self.process.wait(DEADLINE), self.terminal.read_text())

    def step(self, name: str) -> psutil.Process:
        """Wait for the process of a step that it started."""
        # Snakemake runs a copy of a step's script, whose name ends with that of the script.
        script = re.compile(rf"\.snakemake/scripts/.*\.{name}\.py$")

        def look() -> psutil.Process | None:
            below = psutil.Process(self.process.pid).children(recursive=True)
            return next((each for each in below if any(map(script.search, command_of(each)[1:2]))), None)

        return eventually(look, what=f"the process of {name}")

    def kill(self) -> None:
        """Kill the process alone, as `kill -9` does; what it started lives on."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(DEADLINE)


def command_of(process: psutil.Process) -> list[str]:
    """Return the command line of a process; empty if it is gone."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def eventually(look: Callable[[], Value | None], *, what: str) -> Value:
    """Look again and again until something is there."""
    limit = time.monotonic() + DEADLINE
    while time.monotonic() < limit:
        if value := look():
            return value
        time.sleep(POLL)
    raise AssertionError(f"{what} did not come within {DEADLINE:.0f} s")


@dataclass(frozen=True)
class Clone:
    """A clone of the repository, and the commands started in it."""

    folder: Path
    started: list[Running] = field(default_factory=list)

    def __truediv__(self, path: str) -> Path:
        return self.folder / path

    def write(self, name: str, values: Mapping[str, Any]) -> str:
        """Write a configuration file (JSON is YAML) and return its name."""
        (self.folder / name).write_text(json.dumps(values))
        return name

    def start(self, *command: str, **variables: str) -> Running:
        """Start a command with the environment's programs first on the PATH, as after `source .venv/bin/activate`.

        Snakemake shows all it has to say, unless V is empty.
        """
        here = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
        path = f"{Path(sys.executable).parent}{os.pathsep}{here['PATH']}"
        terminal = self.folder / f"terminal-{len(self.started)}.txt"
        # Where the tests run in the background of a script they ignore Ctrl-C, and so would what they start.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        with terminal.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, env={**here, "PATH": path, "V": "1", **variables}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        signal.signal(signal.SIGINT, before)
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
        """Run an application, or only what its ``targets`` need, with a section over the tiny configuration.

        The configuration stays in ``mine.yaml``, for `snakemake(..., files=MINE)`.
        """
        self.write(MINE[-1], {application: settings})
        return self.snakemake("--", *(targets or (application,)), files=MINE, **variables)

    def json(self, path: str) -> Any:
        """Read a JSON file of the clone."""
        return json.loads((self.folder / path).read_text())

    def copy(self, folder: Path) -> Self:
        """Return a copy that has the same results, which Snakemake takes for its own."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return type(self)(folder)

    def end(self) -> None:
        """End whatever is still running in its folder, orphans included."""
        # Found by the folder, because numbers of processes and of their groups are soon those of others.
        folder, own = self.folder.resolve(), os.getpid()
        while left := [
            each
            for each in psutil.process_iter(["cwd"])
            if each.pid != own and Path(each.info["cwd"] or "").is_relative_to(folder)
        ]:
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left)


def make_clone(project: Path, folder: Path, tiny: Mapping[str, Any]) -> Clone:
    """Copy a project as it stands; ``tiny`` is the configuration that makes its runs small."""
    folder.mkdir()
    for name in COPIED:
        source = project / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        elif source.exists():
            shutil.copy2(source, folder / name)
    for name in LINKED:
        if (project / name).exists():
            (folder / name).symlink_to(project / name)
    clone = Clone(folder)
    clone.write(MINE[0], tiny)
    return clone


def staging(clone: Clone, output: str) -> Path:
    """Wait until a step has begun to write an output; return where it writes."""
    final = clone / output
    return eventually(lambda: next(iter(final.parent.glob(f".{final.name}.*.part")), None), what=f"work on {output}")


def leftovers(clone: Clone) -> list[str]:
    """Return the hidden files and directories that a run should have removed: unfinished outputs, signs of life."""
    hidden = [path for top in ("data", "logs", "results") for path in (clone / top).rglob(".*")]
    return sorted(str(path.relative_to(clone.folder)) for path in hidden if not KEPT.fullmatch(path.name))


def contents(directory: Path) -> dict[str, bytes]:
    """Return the bytes of each file in a directory, by its path there; Snakemake's time stamp left out."""
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != ".snakemake_timestamp")
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def sha256(path: Path) -> str:
    """As the manifest's documentation says: of a file, or of the sorted listing of a directory."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = {f"./{name}": hashlib.sha256(data).hexdigest() for name, data in contents(path).items()}
    listing = "".join(f"{files[name]}  {name}\n" for name in sorted(files))
    return hashlib.sha256(listing.encode()).hexdigest()
