"""Clones in which the workflow is run; one run is completed once and shared by all tests that only look at it."""

import fcntl
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guarantees.running import Clone, Ended, make_clone


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
