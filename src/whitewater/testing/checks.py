"""What is promised, each asked by commands in clones of a project; a failure is an AssertionError with the terminal."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from whitewater.testing.running import Clone, Ended, contents, leftovers, staging

# Worker processes start in seconds, so a step is caught in the middle for sure.
SLOW_START = "cluster={kind: processes}"


def check_nothing_to_do(clone: Clone, *targets: str) -> None:
    """Check that a run which is complete has nothing to do when it is started again."""
    ended = clone.snakemake("--", *targets)
    assert ended.status == 0, ended.terminal
    assert "Nothing to be done" in ended.terminal, ended.terminal


def check_killed_step(clone: Clone, undisturbed: Clone, *, rule: str, output: str) -> None:
    """Kill the step of a rule in the middle, and check that it leaves nothing visible and that the next run is right.

    ``clone`` is a copy of ``undisturbed``, in which the run is complete; ``output`` is the first that the step writes,
    a folder.
    """
    run = clone.start_snakemake("--config", SLOW_START, "--forcerun", rule, "--", output)
    begun = staging(clone, output)
    run.step(rule.partition("_")[2]).kill()
    ended = run.ended()
    assert ended.status == 1, ended.terminal
    assert f"Error in rule {rule}" in ended.terminal, ended.terminal
    assert begun.exists()
    assert not (clone / output).exists(), f"{output} of a killed step is visible"

    again = clone.snakemake("--", output)
    assert again.status == 0, again.terminal
    assert contents(clone / output) == contents(undisturbed / output)
    assert leftovers(clone) == []


def check_refused(clone: Clone, ended: Ended, *parts: str, output: str, error: str = "InputError") -> None:
    """Check that a run failed with one message that has these parts, and that nothing half-written is left."""
    assert ended.message.startswith(f"{error}: "), ended.message
    for part in parts:
        assert part in ended.message, ended.message
    assert not (clone / output).exists(), f"{output} of a refused input is visible"
    assert leftovers(clone) == []


def check_full_disk(clone: Clone, ended: Ended, *, output: str) -> None:
    """Check that a run whose ``results`` are on a full disk says so, and leaves nothing half-written."""
    parts = (output, "the disk is full", "bytes free in results", "Free space")
    check_refused(clone, ended, *parts, output=output, error="ResourceError")


def check_same_bytes(one: Clone, other: Clone, results: str, *, of: Sequence[str] = ()) -> None:
    """Check that two clones have the same results, or the same of some files, but for what tells of the run itself."""

    def found(clone: Clone) -> dict[str, bytes]:
        files = contents(clone / results)
        names = of or [name for name in files if name != "manifest.json" and not name.split("/")[-1].startswith(".")]
        return {name: files[name] for name in names}

    first, second = found(one), found(other)
    assert first, f"{results} is empty"
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


@contextmanager
def small_disk(folder: Path, *, size: str) -> Iterator[None]:
    """Put a small disk in memory at a folder, or skip the test where that is not allowed."""
    import pytest

    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs the right to mount a small disk: {error}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def damaged(path: Path, folder: Path) -> Path:
    """Return a copy of a file that no reader may accept: the first half of it, or of text nothing."""
    data = path.read_bytes()
    copy = folder / f"damaged{path.suffix}"
    copy.write_bytes(data[: len(data) // 2] if b"\0" in data else b"")
    return copy
