"""The guarantees that users of an application have, as tests of whole commands.

In ``tests/test_guarantees.py`` of a project::

    from whitewater.testing.guarantees import Case, guarantees

    RIDES = Case("rides", step="clean", output="kept", tables=("durations.parquet",))
    TestRides = guarantees(RIDES, tiny={"fetch": {"generated": {"rides": 2_000}}})
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from whitewater.testing.running import MINE, Clone, Ended, contents, leftovers, make_clone, sha256, staging

# Worker processes take seconds to start, so a test can kill the step while it runs.
SLOW_START = "cluster={kind: processes}"


def own_files(paths: Sequence[str]) -> dict[str, Any]:
    """Return settings with which the step `fetch` reads the user's own files."""
    return {"fetch": {"files": paths}}


@dataclass(frozen=True)
class Case:
    """An application as the tests run it."""

    application: str
    step: str  # reads the raw files
    output: str  # the first folder that the step writes, below the results
    tables: Sequence[str]  # files below the results that do not depend on the partitioning
    smaller_blocks: Mapping[str, Any] = field(default_factory=dict)  # settings for more partitions; empty: not tested
    # Glob of the generated raw files below ``data/<application>``, which also serve as a user's own files. Empty if
    # they do not hold all of the simulation: then neither their order nor a damaged file is tested.
    files: str = "generated/*"
    section: Callable[[Sequence[str]], dict[str, Any]] = own_files  # makes the settings for reading these files
    tables_alone: bool = False  # other results depend on whether the data were generated
    disk: str = "16k"  # a disk too small for the output; empty if another result is written first: not tested

    @property
    def results(self) -> str:
        """The folder of the results."""
        return f"results/{self.application}/cpu"

    @property
    def first_output(self) -> str:
        """The folder that the step writes."""
        return f"{self.results}/{self.output}"

    def raw_files(self, clone: Clone) -> list[str]:
        """Return the raw files of a run, relative to its clone."""
        if not self.files:
            pytest.skip("the generated files do not hold all of the simulation")
        paths = sorted((clone / f"data/{self.application}").glob(self.files))
        assert paths, f"data/{self.application}/{self.files} matches no file of a run"
        return [str(path.relative_to(clone.folder)) for path in paths]

    def run(self, clone: Clone, section: Mapping[str, Any], *arguments: str) -> Ended:
        """Run the application to its end, with a section over the tiny one."""
        clone.write(MINE[-1], {self.application: section})
        ended = clone.snakemake(*arguments, "--", self.application, files=MINE)
        assert ended.status == 0, ended.terminal
        return ended


def guarantees(case: Case, *, tiny: Mapping[str, Any]) -> type[Guarantees]:
    """Return a class of tests; ``tiny`` is the section with which a run takes seconds."""
    return type(case.application, (Guarantees,), {"case": case, "tiny": {case.application: tiny}})


@pytest.mark.slow
@pytest.mark.timeout(900)
class Guarantees:
    """Each test runs the application in a copy of the project."""

    case: ClassVar[Case]
    tiny: ClassVar[Mapping[str, Any]]

    @pytest.fixture(scope="class")
    @classmethod
    def finished(cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Clone:
        """Return a clone with a complete run, which tests must not change."""
        clone = make_clone(request.config.rootpath, tmp_path_factory.mktemp("finished") / "clone", cls.tiny)
        cls.case.run(clone, {})
        return clone

    @pytest.fixture
    def copied(self, finished: Clone, tmp_path: Path) -> Iterator[Clone]:
        """Yield a copy of the finished clone that a test may change."""
        clone = finished.copy(tmp_path / "copied")
        yield clone
        clone.end()

    @pytest.fixture
    def fresh(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Clone]:
        """Yield a clone without any run."""
        clone = make_clone(request.config.rootpath, tmp_path / "fresh", self.tiny)
        yield clone
        clone.end()

    def test_a_run_leaves_what_its_manifest_lists_and_nothing_unfinished(self, finished: Clone) -> None:
        outputs = finished.json(f"{self.case.results}/manifest.json")["outputs"]
        assert outputs, "the manifest lists no output"
        for output in outputs:
            assert sha256(finished / output["path"]) == output["sha256"], output["path"]
        assert leftovers(finished) == []

    def test_a_second_run_does_nothing(self, finished: Clone) -> None:
        check_nothing_to_do(finished, self.case.application)

    def test_another_run_on_one_core_leaves_the_same_bytes(self, finished: Clone, fresh: Clone) -> None:
        self.case.run(fresh, {}, "--cores", "1")
        check_same_bytes(fresh, finished, self.case.results)

    def test_the_other_engine_leaves_the_same_bytes(self, finished: Clone, copied: Clone) -> None:
        self.case.run(copied, {}, "--config", "engine=dask")
        steps = copied.json(f"{self.case.results}/manifest.json")["steps"].values()
        assert "dask" in {step["engine"] for step in steps}, "no step computes on the device"
        check_same_bytes(copied, finished, self.case.results)

    def test_neither_the_order_of_files_nor_what_a_run_left_changes_a_byte(
        self, finished: Clone, copied: Clone
    ) -> None:
        ended = self.case.run(copied, self.case.section(self.case.raw_files(finished)[::-1]))
        assert f"{self.case.application}_{self.case.step}" in ended.jobs
        check_same_bytes(copied, finished, self.case.results, files=self.case.tables if self.case.tables_alone else ())

    def test_the_partitioning_changes_no_table(self, finished: Clone, copied: Clone) -> None:
        if not self.case.smaller_blocks:
            pytest.skip("no setting makes more partitions")
        self.case.run(copied, self.case.smaller_blocks)
        first, second = (len(list((clone / self.case.first_output).rglob("*.parquet"))) for clone in (finished, copied))
        assert first < second, "the data is in as many partitions as before"
        check_same_bytes(copied, finished, self.case.results, files=self.case.tables)

    def test_a_killed_step_leaves_nothing_visible_and_the_next_run_is_right(
        self, finished: Clone, copied: Clone
    ) -> None:
        case = self.case
        check_killed_step(copied, finished, application=case.application, step=case.step, output=case.first_output)

    def test_a_full_disk_is_named_and_holds_nothing_half_written(self, fresh: Clone) -> None:
        if not self.case.disk:
            pytest.skip("another result is written before the output")
        output = self.case.first_output
        with small_disk(fresh / "results", size=self.case.disk):
            check_full_disk(fresh, fresh.snakemake("--", output), output=output)
            fresh.end()

    def test_a_damaged_file_is_named_and_nothing_is_made_of_it(self, finished: Clone, fresh: Clone) -> None:
        bad = write_damaged_copy(finished / self.case.raw_files(finished)[-1], fresh.folder)
        ended = fresh.run(self.case.application, self.case.section([bad.name]), self.case.first_output)
        check_refused(fresh, ended, bad.name, output=self.case.first_output)


def check_nothing_to_do(clone: Clone, *targets: str) -> None:
    """Check that a complete run has nothing to do when it is started again."""
    ended = clone.snakemake("--", *targets)
    assert ended.status == 0, ended.terminal
    assert "Nothing to be done" in ended.terminal, ended.terminal


def check_killed_step(clone: Clone, undisturbed: Clone, *, application: str, step: str, output: str) -> None:
    """Kill a step while it runs; check that no output is visible, and that the next run is right.

    ``clone`` is a copy of ``undisturbed``, which has a complete run; ``output`` is the first folder the step writes.
    """
    rule = f"{application}_{step}"
    run = clone.start_snakemake("--config", SLOW_START, "--forcerun", rule, "--", output)
    unfinished = staging(clone, output)
    run.step(step).kill()
    ended = run.ended()
    assert ended.status == 1, ended.terminal
    assert f"Error in rule {rule}" in ended.terminal, ended.terminal
    assert unfinished.exists()
    assert not (clone / output).exists(), f"{output} of a killed step is visible"

    again = clone.snakemake("--", output)
    assert again.status == 0, again.terminal
    assert contents(clone / output) == contents(undisturbed / output)
    assert leftovers(clone) == []


def check_refused(clone: Clone, ended: Ended, *parts: str, output: str, error: str = "InputError") -> None:
    """Check that a run failed with one message that contains these parts, and left nothing half-written."""
    assert ended.message.startswith(f"{error}: "), ended.message
    for part in parts:
        assert part in ended.message, ended.message
    assert not (clone / output).exists(), f"{output} of a refused input is visible"
    assert leftovers(clone) == []


def check_full_disk(clone: Clone, ended: Ended, *, output: str) -> None:
    """Check that a run with ``results`` on a full disk says so and left nothing half-written."""
    parts = (output, "the disk is full", "bytes free in results", "Free space")
    check_refused(clone, ended, *parts, output=output, error="ResourceError")


def check_same_bytes(one: Clone, other: Clone, results: str, *, files: Sequence[str] = ()) -> None:
    """Check that two clones have the same bytes in ``files``, or in all results but the manifest and hidden files."""
    first, second = contents(one / results), contents(other / results)
    visible = [name for name in {**first, **second} if not name.split("/")[-1].startswith(".")]
    names = files or [name for name in visible if name != "manifest.json"]
    assert names, f"{results} is empty"
    assert [name for name in names if name not in first or first[name] != second.get(name)] == []


@contextmanager
def small_disk(folder: Path, *, size: str) -> Iterator[None]:
    """Mount a small tmpfs at a folder, or skip the test if that is not allowed."""
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


def write_damaged_copy(path: Path, folder: Path) -> Path:
    """Write an invalid copy of a file into a folder: the first half of a binary file, or an empty text file."""
    data = path.read_bytes()
    copy = folder / f"damaged{path.suffix}"
    copy.write_bytes(data[: len(data) // 2] if b"\0" in data else b"")
    return copy
