"""A newer version of the template is merged by Git: what the user changed stays, and a conflict is the user's."""

import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from tests.library.template.conftest import Installed


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", folder, "-c", "user.name=Ada", "-c", "user.email=ada@localhost", *arguments],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip


@pytest.fixture
def mine(project: Path, tmp_path: Path) -> Path:
    """A copy of the project, to change."""
    return Path(shutil.copytree(project, tmp_path / "bikes"))


def edit(folder: Path, path: str, old: str, new: str) -> None:
    """Change a file as the user does, and commit it."""
    text = (folder / path).read_text()
    assert old in text
    (folder / path).write_text(text.replace(old, new, 1))
    git(folder, "commit", "--all", "--message", f"my {path}")


@pytest.mark.slow
def test_an_equal_version_has_nothing_to_update(mine: Path, installed: Installed) -> None:
    before = git(mine, "rev-parse", "HEAD")
    for arguments in (["update", "--check"], ["update"]):
        ended = installed.run(mine, arguments)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "Nothing to update" in ended.stdout
    assert git(mine, "rev-parse", "HEAD") == before


@pytest.mark.slow
def test_a_newer_version_is_told_and_merged_with_what_the_user_changed(mine: Path, newer: Installed) -> None:
    edit(mine, "workflows/common.smk", "rules = RulesByPath(rules)", "rules = RulesByPath(rules)  # mine")
    before = git(mine, "rev-parse", "HEAD")
    assert newer.run(mine, ["update", "--check"]).returncode == 1
    assert git(mine, "rev-parse", "HEAD") == before
    assert git(mine, "status", "--porcelain") == ""
    ended = newer.run(mine, ["update"])
    assert ended.returncode == 0, ended.stderr
    text = (mine / "workflows/common.smk").read_text()
    assert "# Of a newer version.\n" in text
    assert "RulesByPath(rules)  # mine" in text
    assert (mine / "README.md").read_text().startswith("# The project bikes\n")
    assert git(mine, "status", "--porcelain") == ""
    assert newer.run(mine, ["update", "--check"]).returncode == 0


@pytest.mark.slow
def test_the_new_library_comes_with_its_lock(mine: Path, newer: Installed) -> None:
    before = (mine / "envs/library.lock").read_text()
    assert newer.run(mine, ["update"]).returncode == 0
    (vendored,) = (mine / "vendor").iterdir()
    digest = sha256(vendored.read_bytes()).hexdigest()
    assert digest not in before
    assert digest in (mine / "envs/library.lock").read_text()


@pytest.mark.slow
def test_a_conflict_is_left_to_the_user_and_can_be_taken_back(mine: Path, newer: Installed) -> None:
    edit(mine, "README.md", "# bikes\n", "# Bicycles of my town\n")
    ended = newer.run(mine, ["update"])
    assert ended.returncode == 1
    assert "changed the same lines of README.md" in ended.stdout
    text = (mine / "README.md").read_text()
    assert "<<<<<<<" in text
    assert "# Bicycles of my town\n" in text
    assert "# The project bikes\n" in text
    git(mine, "merge", "--abort")
    assert (mine / "README.md").read_text().startswith("# Bicycles of my town\n")
    # What is not merged yet is still new.
    assert newer.run(mine, ["update", "--check"]).returncode == 1


@pytest.mark.slow
def test_changes_that_are_not_committed_are_safe(mine: Path, newer: Installed) -> None:
    (mine / "README.md").write_text("mine")
    ended = newer.run(mine, ["update"])
    assert ended.returncode == 1
    assert "uncommitted changes" in ended.stderr
    assert (mine / "README.md").read_text() == "mine"


def test_a_folder_that_is_not_a_project_is_refused(tmp_path: Path, newer: Installed) -> None:
    ended = newer.run(tmp_path, ["update"])
    assert ended.returncode == 1
    assert "[tool.whitewater]" in ended.stderr


@pytest.mark.slow
def test_a_clone_is_told_how_to_get_the_branch(mine: Path, newer: Installed) -> None:
    git(mine, "branch", "--delete", "--force", "whitewater-template")
    ended = newer.run(mine, ["update"])
    assert ended.returncode == 1
    assert "git fetch origin whitewater-template:whitewater-template" in ended.stderr
