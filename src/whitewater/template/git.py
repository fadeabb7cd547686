"""Git as a project needs it: the branch that holds its pristine rendering, and merging what a newer version changed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from whitewater.errors import ConfigError

BRANCH = "whitewater-template"
# Of commits that are made where nobody's name is configured.
NOBODY = {"user.name": "Whitewater", "user.email": "whitewater@localhost"}


def git(folder: Path, *arguments: str, **variables: str) -> str:
    """Run Git in a folder and return what it printed.

    Raises ConfigError with what Git says if it fails, or is not installed.
    """
    ended = attempt(folder, *arguments, **variables)
    if ended.returncode:
        raise ConfigError(f"git {arguments[0]} in {folder} failed: {(ended.stderr or ended.stdout).strip()}")
    return ended.stdout.strip()


def attempt(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Git in a folder, whatever comes of it.

    Raises ConfigError if it is not installed.
    """
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ConfigError("git is not installed. Install it: updates are merged by it.") from error


def author(folder: Path) -> list[str]:
    """Return options that name an author where the user has configured none."""
    missing = {key: value for key, value in NOBODY.items() if attempt(folder, "config", key).returncode}
    return [word for key, value in missing.items() for word in ("-c", f"{key}={value}")]


def first_commit(folder: Path, message: str) -> None:
    """Make a folder a repository, with all its files in one commit, on the branch of the user and on `BRANCH`."""
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all", "--force")
    git(folder, *author(folder), "commit", "--quiet", "--message", message)
    git(folder, "branch", BRANCH)


def tree_of(repository: Path, rendered: Path, index: Path) -> str:
    """Return the name of the tree of a folder's files, added to a repository; ``index``: a file to use."""
    here = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(rendered)}
    git_folder = git(repository, "rev-parse", "--absolute-git-dir")
    git(rendered, "add", "--all", "--force", GIT_DIR=git_folder, **here)
    return git(repository, "write-tree", GIT_INDEX_FILE=str(index))


def commit_on_branch(repository: Path, tree: str, message: str) -> None:
    """Add a commit with a tree to `BRANCH`, which is not checked out."""
    parent = git(repository, "rev-parse", BRANCH)
    arguments = (*author(repository), "commit-tree", tree, "-p", parent, "-m", message)
    git(repository, "update-ref", f"refs/heads/{BRANCH}", git(repository, *arguments))
