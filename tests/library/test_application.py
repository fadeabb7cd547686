"""Applications: declared by entry points, named by a project's folders."""

from pathlib import Path

import pytest

from tests.library.tiny_application import TINY
from whitewater.application import applications, in_project
from whitewater.cli.main import main
from whitewater.config.resolve import resolve
from whitewater.errors import ConfigError

pytestmark = pytest.mark.usefixtures("tiny")


def test_a_project_names_its_applications_by_the_folders_of_their_workflows(tmp_path: Path) -> None:
    for path in ("workflows/tiny/Snakefile", "workflows/aside/notes.md", "workflows/common.smk"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert in_project(tmp_path) == ("tiny",)
    assert applications(["tiny"]) == {"tiny": TINY}


def test_an_application_that_nobody_declares_is_told_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r"declares the application 'bikes'; declared: .*tiny\. Add `bikes = "):
        applications(["tiny", "bikes"])


def test_an_application_that_cannot_be_imported_is_told_without_a_traceback() -> None:
    with pytest.raises(ConfigError, match=r"'broken' is declared as .*, which cannot be imported: No module named"):
        applications(["broken"])


def test_its_section_is_completed_and_checked_as_any_other() -> None:
    assert resolve({"tiny": {}}, ["tiny"])["tiny"] == {"clean": {"largest": 9}}
    with pytest.raises(ConfigError, match=r"tiny\.clean\.bigest = 3: no such key; did you mean 'largest'"):
        resolve({"tiny": {"clean": {"bigest": 3}}}, ["tiny"])
    with pytest.raises(ConfigError, match=r"run\.name = 'tiny': an application has that name"):
        resolve({"run": {"name": "tiny"}}, ["tiny"])


def test_an_unknown_step_is_told_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "workflows/tiny").mkdir(parents=True)
    (tmp_path / "workflows/tiny/Snakefile").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["tiny", "claen"]) == 2
    assert "no step 'claen'; did you mean 'clean'?" in capsys.readouterr().err
