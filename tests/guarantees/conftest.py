"""Clones in which the workflow is run, one run shared by all tests that only look at it; and which tests are slow."""

import fcntl
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guarantees.running import Clone, Ended, make_clone

# Each of these asks for one fault after another by whole commands, a few seconds each. `make test` leaves them out;
# `make test-slow` and CI run them.
SLOW_GUARANTEES = {
    "genomics": ("test_faults_of_a_bucket", "test_few_data", "test_sources"),
    "guarantees": (
        "test_absent_packages",
        "test_bytes_that_are_no_text",
        "test_configuration",
        "test_downloads",
        "test_process_end",
        "test_staleness",
    ),
    "pagerank": ("test_duplicates", "test_edge_files", "test_faults_of_the_web", "test_names", "test_query"),
    "recsys": (
        "test_columns",
        "test_faults_of_a_log",
        "test_headline",
        "test_memory",
        "test_movielens",
        "test_times_and_labels",
    ),
    "taxi": (
        "test_bad_input",
        "test_full_disk",
        "test_input_codes",
        "test_input_columns",
        "test_input_files",
        "test_input_months",
        "test_input_times",
        "test_killed",
        "test_tips",
        "test_zones",
    ),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow guarantees, and those that look at a run of all applications, which takes minutes."""
    for item in items:
        named = item.path.stem in SLOW_GUARANTEES.get(item.path.parent.name, ())
        if "guarantees" in item.path.parts and (named or "first_run" in getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> tuple[Clone, Ended]:
    """A clone and its first, complete run on tiny data.

    Where several processes share the tests out, one of them makes the run and each looks at a copy.
    """
    own, base = tmp_path_factory.mktemp("workflow"), tmp_path_factory.getbasetemp()
    shared = (base.parent if hasattr(request.config, "workerinput") else base) / "first_run"
    shared.mkdir(exist_ok=True)
    ending = shared / "ended.json"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ending.exists():
            ended = make_clone(shared / "clone").snakemake()
            ending.write_text(json.dumps([ended.status, ended.terminal]))
    return Clone(shared / "clone").copy(own / "clone"), Ended(*json.loads(ending.read_text()))


@pytest.fixture(scope="session")
def finished(first_run: tuple[Clone, Ended]) -> Clone:
    """A clone in which a run is complete; nothing may be changed in it."""
    clone, ended = first_run
    assert ended.status == 0, ended.terminal
    return clone


@pytest.fixture
def copied(finished: Clone, tmp_path: Path) -> Iterator[Clone]:
    """A copy of the finished clone, to change at will."""
    clone = finished.copy(tmp_path / "clone")
    yield clone
    clone.end()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Clone]:
    """A clone in which nothing ran yet."""
    clone = make_clone(tmp_path / "clone")
    yield clone
    clone.end()
