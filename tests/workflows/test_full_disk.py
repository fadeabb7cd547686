"""A disk that fills, and a limit on the size of files: one message that says which, and no half-written output."""

import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.raw_files import write_parquet, yellow_frame
from tests.workflows.running import Clone, leftovers


def mount(folder: Path, *, size: str) -> None:
    """Put a small disk in memory at a folder, or skip the test where that is not allowed."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs the right to mount a small disk: {error}")


@pytest.fixture
def small_disk(fresh: Clone) -> Iterator[Path]:
    """The folder `results` of a fresh clone, on a disk of 64 kB."""
    folder = fresh / "results"
    mount(folder, size="64k")
    yield folder
    fresh.end()
    subprocess.run(["umount", str(folder)], check=True)


def listing(clone: Clone) -> str:
    """Write a catalogue of one raw file, whose standardised form is larger than 64 kB."""
    path = write_parquet(yellow_frame(20_000), clone / "yellow.parquet")
    return clone.write("inputs.json", {"files": [{"path": str(path), "origin": path.name}]})


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_full_disk_is_named_and_holds_nothing_half_written(fresh: Clone, small_disk: Path, kind: str) -> None:
    ended = fresh.step(
        "standardise", inputs=listing(fresh), standardised="results/standardised", cluster={"kind": kind}
    )
    assert ended.message.startswith("ResourceError: results/standardised")
    assert "the disk is full" in ended.message
    assert "bytes free in results" in ended.message
    assert "Free space" in ended.message
    assert "Traceback" in fresh.log("standardise")
    assert not (small_disk / "standardised").exists()
    assert leftovers(fresh) == []


def test_the_message_reaches_the_terminal_though_the_log_is_on_the_full_disk_too(
    fresh: Clone, small_disk: Path
) -> None:
    (fresh / "logs").symlink_to(small_disk)
    (small_disk / "filling").write_bytes(b"\0" * 60_000)
    ended = fresh.step("standardise", inputs=listing(fresh), standardised="results/standardised")
    assert ended.message.startswith("ResourceError: ")
    assert "the disk is full" in ended.message


def test_simulated_files_that_do_not_fit_are_named(fresh: Clone, small_disk: Path) -> None:
    (fresh / "data").symlink_to(small_disk)
    ended = fresh.step(
        "fetch",
        settings={"generated": {"scale": 0.001, "services": ["yellow"], "months": ["2019-03"]}},
        inputs="data/taxi/inputs.json",
        zones="data/taxi/zones.csv",
    )
    assert ended.message.startswith("ResourceError: ")
    assert "the disk is full" in ended.message
    assert not (small_disk / "taxi/inputs.json").exists()


def test_a_limit_on_the_size_of_files_is_named(fresh: Clone) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64_000, 64_000))

    ended = fresh.step("standardise", inputs=listing(fresh), standardised="results/standardised", limit=limit)
    assert ended.message.startswith("ResourceError: results/standardised")
    assert "the limit on the size of a file is reached" in ended.message
    assert "ulimit -f" in ended.message
    assert not (fresh / "results/standardised").exists()
    assert leftovers(fresh) == []
