"""`whitewater update`: merge a newer Whitewater's version of the template into a project."""

import argparse
import os
import subprocess
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import whitewater
from whitewater.errors import ConfigError
from whitewater.template.render import Project, render

BRANCH = "whitewater-template"
# Of commits that are made where nobody's name is configured.
NOBODY = {"user.name": "Whitewater", "user.email": "whitewater@localhost"}


def main(arguments: Sequence[str]) -> int:
    """Render the template of the installed version onto its branch and merge it; 1 is returned where that conflicts."""
    parser = argparse.ArgumentParser(prog="whitewater update", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when there is something newer")
    check: bool = parser.parse_args(list(arguments)).check
    folder, project = Path(), _project(Path("pyproject.toml"))
    if git(folder, "rev-parse", "--verify", "--quiet", BRANCH, check=False).returncode:
        raise ConfigError(
            f"there is no branch {BRANCH}, which holds the template as it was. Where it lies on a server: "
            f"git fetch origin {BRANCH}:{BRANCH}"
        )
    if not check and git(folder, "status", "--porcelain").stdout:
        raise ConfigError("there are changes that are not committed (git status). Commit or stash them, then update.")
    with tempfile.TemporaryDirectory() as rendered, tempfile.TemporaryDirectory() as scratch:
        render(project, Path(rendered))
        index = {"GIT_INDEX_FILE": f"{scratch}/index"}
        here = {"GIT_DIR": git(folder, "rev-parse", "--absolute-git-dir").stdout, "GIT_WORK_TREE": rendered}
        git(Path(rendered), "add", "--all", "--force", variables=here | index)
        tree = git(folder, "write-tree", variables=index).stdout
    newer = tree != git(folder, "rev-parse", f"{BRANCH}^{{tree}}").stdout
    merged = not git(folder, "merge-base", "--is-ancestor", BRANCH, "HEAD", check=False).returncode
    if merged and not newer:
        print(f"Nothing to update: the project has all of Whitewater {whitewater.__version__}.")
        return 0
    if check:
        print(f"Whitewater {whitewater.__version__} has something newer: whitewater update")
        return 1
    if newer:
        commit = git(folder, *author(folder), "commit-tree", tree, "-p", BRANCH, "-m", project.described).stdout
        git(folder, "update-ref", f"refs/heads/{BRANCH}", commit)
    return _merge(folder)


def _project(file: Path) -> Project:
    """Return what a project was made from, or raise ConfigError if this is not the folder of one."""
    try:
        made = tomllib.loads(file.read_text("utf-8"))["tool"]["whitewater"]
        return Project(made["name"], made["package"], made["template"])
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            "there is no pyproject.toml with [tool.whitewater] here. Run this in a folder that `whitewater new` wrote."
        ) from error


def _merge(folder: Path) -> int:
    """Merge the branch of the template; where Git cannot, leave its conflicts and say what to do."""
    ended = git(folder, *author(folder), "merge", "--no-edit", BRANCH, check=False)
    if not ended.returncode:
        print(f"Merged Whitewater {whitewater.__version__}. Next: make test, which installs what changed.")
        return 0
    conflicts = git(folder, "diff", "--name-only", "--diff-filter=U").stdout.splitlines()
    if not conflicts:
        raise ConfigError(f"git merge {BRANCH} failed: {(ended.stderr or ended.stdout).strip()}")
    print(
        f"You and Whitewater {whitewater.__version__} changed the same lines of {', '.join(conflicts)}. Edit what Git "
        "marked there, then `git add` each and `git commit`; or `git merge --abort`, and update later."
    )
    return 1


def git(
    folder: Path, *arguments: str, check: bool = True, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Git in a folder, with variables of its environment, and return how it ended, with what it printed."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        ended = subprocess.run(command, env=os.environ | (variables or {}), capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ConfigError("git is not installed. Install it: updates are merged by it.") from error
    ended.stdout = ended.stdout.strip()
    if check and ended.returncode:
        raise ConfigError(f"git {arguments[0]} in {folder} failed: {(ended.stderr or ended.stdout).strip()}")
    return ended


def author(folder: Path) -> list[str]:
    """Return options that name an author where the user has configured none."""
    missing = {key: value for key, value in NOBODY.items() if git(folder, "config", key, check=False).returncode}
    return [word for key, value in missing.items() for word in ("-c", f"{key}={value}")]
