"""What users of an application are promised, as tests of whole commands that a project calls in five lines.

In ``tests/test_guarantees.py`` of a project::

    from whitewater.testing.guarantees import Case, guarantees

    RIDES = Case("rides", step="clean", output="kept", tables=("durations.parquet",))
    TestRides = guarantees(RIDES, tiny={"fetch": {"generated": {"rides": 2_000}}})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from whitewater.testing import checks
from whitewater.testing.running import MINE, Clone, Ended, leftovers, make_clone, sha256


def own_files(paths: Sequence[str]) -> dict[str, Any]:
    """Return the settings that make a step `fetch` read files of the user."""
    return {"fetch": {"files": paths}}


@dataclass(frozen=True)
class Case:
    """An application as the tests run it.

    Parameters
    ----------
    application
        Its name.
    step, output
        The step that reads the raw files, and the first folder that it writes below the results.
    tables
        Files below the results that are the same for any partitioning.
    smaller_blocks
        Settings that cut the same data into more partitions; empty: there are none, and this is not tested.
    files
        Glob of the raw files that a run generates below ``data/<application>``: they serve as a user's own. Empty:
        what is generated says more than the files do, and neither their order nor a damaged one is tested.
    section
        Gives the settings by which the application reads files of the user.
    tables_alone
        Whether all but the tables tell if data were generated or a user's own.
    disk
        Size of a disk that is too small for the output; empty: another result comes before it, and this is not tested.
    """

    application: str
    step: str
    output: str
    tables: Sequence[str]
    smaller_blocks: Mapping[str, Any] = field(default_factory=dict)
    files: str = "generated/*"
    section: Callable[[Sequence[str]], dict[str, Any]] = own_files
    tables_alone: bool = False
    disk: str = "16k"

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
            pytest.skip("no files are named that say all that is generated")
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
    """Return a class of tests; ``tiny`` is the section of the configuration that makes a run take seconds."""
    return type(case.application, (Guarantees,), {"case": case, "tiny": {case.application: tiny}})


@pytest.mark.slow
@pytest.mark.timeout(900)
class Guarantees:
    """Each test runs the application in a copy of the project, or goes on from where a fault left it."""

    case: ClassVar[Case]
    tiny: ClassVar[Mapping[str, Any]]

    @pytest.fixture(scope="class")
    @classmethod
    def finished(cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Clone:
        """Return a clone in which a run is complete; nothing may be changed in it."""
        clone = make_clone(request.config.rootpath, tmp_path_factory.mktemp("finished") / "clone", cls.tiny)
        cls.case.run(clone, {})
        return clone

    @pytest.fixture
    def copied(self, finished: Clone, tmp_path: Path) -> Iterator[Clone]:
        """Give a copy of the finished clone, to change at will."""
        clone = finished.copy(tmp_path / "copied")
        yield clone
        clone.end()

    @pytest.fixture
    def fresh(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Clone]:
        """Give a clone in which nothing ran yet."""
        clone = make_clone(request.config.rootpath, tmp_path / "fresh", self.tiny)
        yield clone
        clone.end()

    def test_a_run_leaves_what_its_manifest_lists_and_nothing_unfinished(self, finished: Clone) -> None:
        listed = {
            each["path"]: each["sha256"] for each in finished.json(f"{self.case.results}/manifest.json")["outputs"]
        }
        assert listed, "the manifest lists no output"
        assert {path: sha256(finished / path) for path in listed} == listed
        assert leftovers(finished) == []

    def test_a_second_run_does_nothing(self, finished: Clone) -> None:
        checks.check_nothing_to_do(finished, self.case.application)

    def test_another_run_on_one_core_leaves_the_same_bytes(self, finished: Clone, fresh: Clone) -> None:
        self.case.run(fresh, {}, "--cores", "1")
        checks.check_same_bytes(fresh, finished, self.case.results)

    def test_the_other_engine_leaves_the_same_bytes(self, finished: Clone, copied: Clone) -> None:
        self.case.run(copied, {}, "--config", "engine=dask")
        steps = copied.json(f"{self.case.results}/manifest.json")["steps"].values()
        assert "dask" in {step["engine"] for step in steps}, "no step computes on the device"
        checks.check_same_bytes(copied, finished, self.case.results)

    def test_neither_the_order_of_files_nor_what_a_run_left_changes_a_byte(
        self, finished: Clone, copied: Clone
    ) -> None:
        ended = self.case.run(copied, self.case.section(self.case.raw_files(finished)[::-1]))
        assert f"{self.case.application}_{self.case.step}" in ended.jobs
        of = self.case.tables if self.case.tables_alone else ()
        checks.check_same_bytes(copied, finished, self.case.results, of=of)

    def test_the_partitioning_changes_no_table(self, finished: Clone, copied: Clone) -> None:
        if not self.case.smaller_blocks:
            pytest.skip("no setting is named that cuts the data into more partitions")
        self.case.run(copied, self.case.smaller_blocks)
        first, second = (len(list((clone / self.case.first_output).rglob("*.parquet"))) for clone in (finished, copied))
        assert first < second, "the data is in as many partitions as before"
        checks.check_same_bytes(copied, finished, self.case.results, of=self.case.tables)

    def test_a_killed_step_leaves_nothing_visible_and_the_next_run_is_right(
        self, finished: Clone, copied: Clone
    ) -> None:
        rule = f"{self.case.application}_{self.case.step}"
        checks.check_killed_step(copied, finished, rule=rule, output=self.case.first_output)

    def test_a_full_disk_is_named_and_holds_nothing_half_written(self, fresh: Clone) -> None:
        if not self.case.disk:
            pytest.skip("the output that is named is not the first")
        output = self.case.first_output
        with checks.small_disk(fresh / "results", size=self.case.disk):
            checks.check_full_disk(fresh, fresh.snakemake("--", output), output=output)
            fresh.end()

    def test_a_damaged_file_is_named_and_nothing_is_made_of_it(self, finished: Clone, fresh: Clone) -> None:
        bad = checks.damaged(finished / self.case.raw_files(finished)[-1], fresh.folder)
        ended = fresh.run(self.case.application, self.case.section([bad.name]), self.case.first_output)
        checks.check_refused(fresh, ended, bad.name, output=self.case.first_output)
