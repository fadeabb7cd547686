"""`whitewater update`: merge the template of a newer Whitewater into a project."""

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


def main(arguments: Sequence[str]) -> int:
    """Commit the template of the installed version to its branch and merge that; return 1 if there are conflicts."""
    parser = argparse.ArgumentParser(prog="whitewater update", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when there is something newer")
    check: bool = parser.parse_args(list(arguments)).check
    folder, project = Path(), _project(Path("pyproject.toml"))
    if git(folder, "rev-parse", "--verify", "--quiet", BRANCH, check=False).returncode:
        raise ConfigError(
            f"there is no branch {BRANCH}, which has the template as last merged. If your server has it: "
            f"git fetch origin {BRANCH}:{BRANCH}"
        )
    if not check and git(folder, "status", "--porcelain").stdout:
        raise ConfigError("there are uncommitted changes (git status). Commit or stash them, then update.")
    with tempfile.TemporaryDirectory() as rendered, tempfile.TemporaryDirectory() as scratch:
        render(project, Path(rendered))
        index, here = f"{scratch}/index", git(folder, "rev-parse", "--absolute-git-dir").stdout
        git(Path(rendered), "add", "--all", "--force", GIT_DIR=here, GIT_WORK_TREE=rendered, GIT_INDEX_FILE=index)
        tree = git(folder, "write-tree", GIT_INDEX_FILE=index).stdout
    newer = tree != git(folder, "rev-parse", f"{BRANCH}^{{tree}}").stdout
    merged = not git(folder, "merge-base", "--is-ancestor", BRANCH, "HEAD", check=False).returncode
    if merged and not newer:
        print(f"Nothing to update: the project has all of Whitewater {whitewater.__version__}.")
        return 0
    if check:
        print(f"Whitewater {whitewater.__version__} has something newer: whitewater update")
        return 1
    if newer:
        commit = git(folder, *author(folder), "commit-tree", tree, "-p", BRANCH, "-m", project.commit_message).stdout
        git(folder, "update-ref", f"refs/heads/{BRANCH}", commit)
    return _merge(folder)


def _project(file: Path) -> Project:
    """Return the project in this folder, or raise ConfigError if there is none."""
    try:
        table = tomllib.loads(file.read_text("utf-8"))["tool"]["whitewater"]
        return Project(table["name"], table["package"], table["template"])
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            "there is no pyproject.toml with [tool.whitewater] here. Run this in a folder that `whitewater new` wrote."
        ) from error


def _merge(folder: Path) -> int:
    """Merge the branch of the template; leave conflicts to the user and say what to do."""
    result = git(folder, *author(folder), "merge", "--no-edit", BRANCH, check=False)
    if not result.returncode:
        print(f"Merged Whitewater {whitewater.__version__}. Next: make test, which installs what changed.")
        return 0
    conflicts = git(folder, "diff", "--name-only", "--diff-filter=U").stdout.splitlines()
    if not conflicts:
        raise ConfigError(f"git merge {BRANCH} failed: {(result.stderr or result.stdout).strip()}")
    print(
        f"You and Whitewater {whitewater.__version__} changed the same lines of {', '.join(conflicts)}. Edit what Git "
        "marked there, then `git add` each and `git commit`; or `git merge --abort`, and update later."
    )
    return 1


def git(folder: Path, *arguments: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Git in a folder, with extra environment variables, and return the completed process."""
    command, environment = ["git", "-C", str(folder), *arguments], {**os.environ, **variables}
    try:
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ConfigError("git is not installed. Install it: projects are updated by merging.") from error
    result.stdout = result.stdout.strip()
    if check and result.returncode:
        raise ConfigError(f"git {arguments[0]} in {folder} failed: {(result.stderr or result.stdout).strip()}")
    return result


def author(folder: Path) -> list[str]:
    """Return Git options that set a default author if the user has configured none."""
    defaults = {"user.name": "Whitewater", "user.email": "whitewater@localhost"}
    missing = [key for key in defaults if git(folder, "config", key, check=False).returncode]
    return [word for key in missing for word in ("-c", f"{key}={defaults[key]}")]
