"""Tests of this repository alone: how long one may take, and those of applications that a copy deleted are skipped."""

import os
import re
import sys
import time
import tomllib
from collections.abc import Generator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["whitewater.applications"]
DELETED = {name for name in DECLARED if not (ROOT / "workflows" / name / "Snakefile").exists()}
PACKAGES = {f"{package}{name}" for package in ("whitewater_apps.", "benchmarks.", "") for name in DELETED}
# Where tests run commands and read documents, and name the application in their text.
ASKING = {"guarantees", "workflows", "benchmarks", "cli", "config", "template"}
# Documents tell of all applications.
OF_ALL = {"test_documents.py", "test_site.py"}


class SkipDeleted:
    """Finds no module; a test that imports one of a deleted application is skipped."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Skip what imports a module of a deleted application."""
        if name in PACKAGES:
            pytest.skip(reason(name.rpartition(".")[2]), allow_module_level=True)
        return None


def reason(application: str) -> str:
    """Return why a test is skipped."""
    return f"this copy lacks {application}: workflows/{application} was deleted"


def pytest_configure() -> None:
    """Look for modules there first."""
    sys.meta_path.insert(0, SkipDeleted)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of commands and documents that name a deleted application, and put the longest tests first."""
    # So that no process of xdist waits minutes for the last one.
    items.sort(key=lambda item: item.path.name != "test_projects.py")
    for item in items:
        if DELETED and ASKING & set(item.path.relative_to(ROOT).parts):
            text = item.path.read_text()
            for name in sorted(DELETED):
                if item.path.name in OF_ALL or re.search(rf"[\"'/> ]{name}\b", text, re.IGNORECASE):
                    item.add_marker(pytest.mark.skip(reason=reason(name)))


MOST_SECONDS_UNMARKED = 10
# A machine whose cores are shared with others is at times half as fast, in processor time, too.
SLOWNESS = 2


def seconds_so_far() -> tuple[float, float]:
    """Return seconds of the clock, and processor seconds of this process and of the children it has waited for."""
    used = os.times()
    return time.monotonic(), used.user + used.system + used.children_user + used.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test in CI that takes more than ten seconds and is not marked slow, so that `make test` stays short.

    The lesser of time and processor time counts, for neither a loaded machine nor many cores to matter, and twice as
    much is allowed.
    """
    before = seconds_so_far()
    yield
    seconds = min(after - start for start, after in zip(before, seconds_so_far(), strict=True))
    if "CI" in os.environ and seconds > SLOWNESS * MOST_SECONDS_UNMARKED and not item.get_closest_marker("slow"):
        pytest.fail(
            f"{seconds:.0f} s: mark a test above {MOST_SECONDS_UNMARKED} s with pytest.mark.slow, or shorten it"
        )
