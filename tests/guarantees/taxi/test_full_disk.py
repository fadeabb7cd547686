"""A disk that fills, and a limit on the size of files: one message that says which, and no half-written output."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guarantees.running import Clone, leftovers, listed
from tests.raw_files import write_parquet, yellow_frame


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


def paths(clone: Clone) -> dict[str, str]:
    """Return the paths to standardise one raw file, which gives more than 64 kB."""
    raw = write_parquet(yellow_frame(20_000), clone / "yellow.parquet")
    inputs = clone.write("inputs.json", listed(raw))
    return {"inputs": inputs, "standardised": "results/standardised"}


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_full_disk_is_named_and_holds_nothing_half_written(fresh: Clone, small_disk: Path, kind: str) -> None:
    ended = fresh.step("standardise", paths(fresh), cluster={"kind": kind})
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
    ended = fresh.step("standardise", paths(fresh))
    assert ended.message.startswith("ResourceError: ")
    assert "the disk is full" in ended.message


def test_simulated_files_that_do_not_fit_are_named(fresh: Clone, small_disk: Path) -> None:
    (fresh / "data").symlink_to(small_disk)
    ended = fresh.step(
        "fetch",
        {"inputs": "data/taxi/inputs.json", "zones": "data/taxi/zones.csv"},
        settings={"generated": {"scale": 0.001, "services": ["yellow"], "months": ["2019-03"]}},
    )
    assert ended.message.startswith("ResourceError: ")
    assert "the disk is full" in ended.message
    assert not (small_disk / "taxi/inputs.json").exists()


def test_a_limit_on_the_size_of_files_is_named(fresh: Clone) -> None:
    limited = ("bash", "-c", 'ulimit -f 64; exec "$@"', "limited")  # in blocks of 1024 bytes
    ended = fresh.step("standardise", paths(fresh), through=limited)
    assert ended.message.startswith("ResourceError: results/standardised")
    assert "the limit on the size of a file is reached" in ended.message
    assert "ulimit -f" in ended.message
    assert not (fresh / "results/standardised").exists()
    assert leftovers(fresh) == []
