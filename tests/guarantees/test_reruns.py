"""What is edited runs the steps again that use it, and what these make is used by; nothing else runs."""

import json
import re
from collections.abc import Callable, Iterator

import pytest

from tests.guarantees.running import Clone, make_clone, own_source

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # its fixture runs an application first
ALL = {"fetch", "standardize", "clean", "tips", "model", "plot", "manifest"}
Edit = Callable[[str], str]


def code(text: str) -> str:
    return f"{text}\nEDITED = True\n"


def comments(text: str) -> str:
    return "# A comment.\n" + re.sub(
        r'^( *)"""(?=\w)', r'\1"""Edited. ', f"{text}\n\n\n# Another.\n", flags=re.MULTILINE
    )


def descriptions(text: str) -> str:
    assert "description=" in text
    return text.replace('description="', 'description="Edited: ')


def default(text: str) -> str:
    assert "dpi" not in text
    return text.replace("class Plot(Section):\n", "class Plot(Section):\n    dpi: int = 100\n")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """A clone with the source in it, and a finished run of taxi."""
    clone = make_clone(tmp_path_factory.mktemp("reruns") / "clone")
    own_source(clone)
    ended = clone.run("taxi", {})
    assert ended.status == 0, ended.terminal
    yield clone
    clone.end()


def again(clone: Clone) -> set[str]:
    """Return the steps that would run."""
    jobs = clone.dry_run(json.loads((clone / "mine.yaml").read_text()), "--", "taxi").jobs
    return {job.removeprefix("taxi_") for job in jobs} - {"taxi"}


@pytest.mark.parametrize(
    ("file", "edit", "expected"),
    [
        ("whitewater_apps/taxi/steps/tips.py", code, {"tips", "plot", "manifest"}),
        ("whitewater_apps/taxi/steps/plot.py", code, {"plot", "manifest"}),
        ("whitewater/learn/trained.py", code, {"model", "plot", "manifest"}),
        ("whitewater/learn/estimators.py", code, {"model", "plot", "manifest"}),
        ("whitewater_apps/taxi/headline.py", code, set()),
        ("whitewater_apps/genomics/steps/pca.py", code, set()),
        ("whitewater/figures/style.py", code, {"plot", "manifest"}),
        ("whitewater/step.py", code, ALL),
        ("whitewater/cli/doctor.py", code, set()),
        ("whitewater_apps/taxi/steps/tips.py", comments, set()),
        ("whitewater/step.py", comments, set()),
        ("whitewater_apps/taxi/config.py", descriptions, set()),
        ("whitewater_apps/taxi/config.py", default, {"plot", "manifest"}),
    ],
)
def test_an_edit_of_code_runs_what_uses_it(clone: Clone, file: str, edit: Edit, expected: set[str]) -> None:
    path = clone / f"src/{file}"
    before = path.read_text()
    path.write_text(edit(before))
    try:
        assert again(clone) == expected
    finally:
        path.write_text(before)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, set()),
        ({"plot": {"zones": 7}}, {"plot", "manifest"}),
        ({"model": {"folds": 3}}, {"model", "plot", "manifest"}),
    ],
)
def test_a_changed_key_runs_the_steps_of_its_section(
    clone: Clone, settings: dict[str, dict[str, int]], expected: set[str]
) -> None:
    clone.write("mine.yaml", {"taxi": settings})
    try:
        assert again(clone) == expected
    finally:
        clone.write("mine.yaml", {"taxi": {}})
