"""Clones in which the workflow is run; one run is completed once and shared by all tests that only look at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflows.running import Clone, Ended, make_clone


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep these tests in one process, where tests are shared out among several: the first run is made once."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("workflows"))


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Clone, Ended]:
    """A clone and its first, complete run on tiny data."""
    clone = make_clone(tmp_path_factory.mktemp("workflow") / "clone")
    return clone, clone.snakemake()


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
