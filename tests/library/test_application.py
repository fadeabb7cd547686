"""Applications: declared by entry points, named by a project's folders."""

import re
from pathlib import Path

import pytest

from tests.library.tiny_application import TINY
from whitewater.application import GROUP, applications, find_entry_points, in_project
from whitewater.cli.main import main
from whitewater.config.resolve import resolve
from whitewater.errors import ConfigError
from whitewater.template.names import check_free

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


def test_what_the_project_declares_counts_at_once_and_before_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, place in (("one", "a.first:TINY"), ("two", "tests.library.tiny_application:TINY")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pyproject.toml").write_text(f'[project.entry-points."{GROUP}"]\nbroken = "{place}"\n')
        monkeypatch.chdir(tmp_path / folder)
        known = find_entry_points(Path.cwd())
        assert known["broken"].value == place
        assert list(known) == sorted(known)
    assert applications(["broken"]) == {"broken": TINY}
    with pytest.raises(ConfigError, match=r"'broken' is declared already by pyproject\.toml \(tests\.library\."):
        check_free("broken", "broken")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f'[project.entry-points."{GROUP}"]\nbikes = "bikes.application:BIKES\n', "at line 2"),
        ('[project]\nentry-points = "x"\n', "string indices"),
        (f'[project.entry-points]\n"{GROUP}" = ["bikes.application:BIKES"]\n', "'list' object"),
        (f'[project.entry-points."{GROUP}"]\nbikes = ["bikes.application:BIKES"]\n', "'list' object"),
    ],
)
def test_a_declaration_that_cannot_be_read_is_told_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(f"{file} is not TOML, or ") + f".*{reason}"):
        find_entry_points(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["--help"]) == 0


@pytest.mark.parametrize("text", ["", '[project]\nname = "bikes"\n', "[project.entry-points.others]\nbikes = 3\n"])
def test_a_file_that_declares_no_application_changes_nothing(tmp_path: Path, text: str) -> None:
    known = find_entry_points(tmp_path)
    (tmp_path / "bikes").mkdir()
    (tmp_path / "bikes/pyproject.toml").write_text(text)
    assert find_entry_points(tmp_path / "bikes") == known


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
