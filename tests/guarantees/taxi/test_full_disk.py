"""A disk that fills, and a limit on the size of files: one message that says which, and no half-written output."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guarantees.running import MINE, Clone, Ended
from tests.helpers.raw_files import write_parquet, yellow_frame
from whitewater.testing import guarantees as checks

STANDARDIZED = "results/taxi/cpu/standardized"


@pytest.fixture
def small_disk(fresh: Clone) -> Iterator[Path]:
    """The folder `results` of a fresh clone, on a disk of 64 kB."""
    folder = fresh / "results"
    with checks.small_disk(folder, size="64k"):
        yield folder
        fresh.end()


def standardize(clone: Clone, *, kind: str = "auto", **variables: str) -> Ended:
    """Bring a raw file to one schema, which gives more than 64 kB."""
    write_parquet(yellow_frame(20_000), clone / "yellow.parquet")
    taxi = {"fetch": {"source": "files", "files": {"paths": ["yellow.parquet"]}}}
    clone.write(MINE[-1], {"taxi": taxi, "cluster": {"kind": kind}})
    return clone.snakemake("--", STANDARDIZED, files=MINE, **variables)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_full_disk_is_named_and_holds_nothing_half_written(fresh: Clone, small_disk: Path, kind: str) -> None:
    ended = standardize(fresh, kind=kind)
    checks.check_full_disk(fresh, ended, output=STANDARDIZED)
    assert "Traceback" in (fresh / "logs/taxi/cpu/standardize.log").read_text()


def test_the_message_reaches_the_terminal_though_the_log_is_on_the_full_disk_too(
    fresh: Clone, small_disk: Path
) -> None:
    (fresh / "logs").symlink_to(small_disk)
    (small_disk / "filling").write_bytes(b"\0" * 50_000)
    ended = standardize(fresh)
    assert ended.message.startswith("ResourceError: ")
    assert "the disk is full" in ended.message


def test_simulated_files_that_do_not_fit_are_named(fresh: Clone, small_disk: Path) -> None:
    (fresh / "data").symlink_to(small_disk)
    ended = fresh.run("taxi", {"fetch": {"generated": {"services": ["yellow"]}}}, "data/taxi/inputs.json")
    assert ended.message.startswith("ResourceError: ")
    assert "the disk is full" in ended.message
    assert not (small_disk / "taxi/inputs.json").exists()


def test_a_limit_on_the_size_of_files_is_named(fresh: Clone) -> None:
    # In blocks of 1024 bytes, for the step alone: Python runs this module as it starts.
    (fresh / "sitecustomize.py").write_text(
        "import resource, sys\n"
        "if any('/.snakemake/scripts/' in word for word in sys.orig_argv):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))\n"
    )
    ended = standardize(fresh, PYTHONPATH=str(fresh.folder))
    parts = (STANDARDIZED, "the limit on the size of a file is reached", "ulimit -f")
    checks.check_refused(fresh, ended, *parts, output=STANDARDIZED, error="ResourceError")
