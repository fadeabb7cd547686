"""`whitewater new`: create a project from an application."""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from whitewater.cli.main import COMMANDS
from whitewater.cli.update import BRANCH, author, git
from whitewater.errors import ConfigError
from whitewater.template.names import check_free, check_name
from whitewater.template.render import Project, render
from whitewater.template.source import files_below, templates


def main(arguments: Sequence[str]) -> int:
    """Write a project into a folder of its name, or list the files it would have."""
    parser = argparse.ArgumentParser(prog="whitewater new", description=__doc__)
    parser.add_argument("name", help="name of the project, its application and its folder")
    parser.add_argument(
        "--from", dest="template", required=True, choices=sorted(templates()), help="the application to start from"
    )
    parser.add_argument("--package", help="name of the Python package (default: the project's)")
    parser.add_argument("--folder", type=Path, help="where to write it (default: a folder of its name)")
    parser.add_argument("--dry-run", action="store_true", help="list the files without writing any")
    options = parser.parse_args(list(arguments))
    project = Project(options.name, options.package or options.name, options.template)
    check_name(project.name, commands=COMMANDS)
    check_name(project.package, commands=COMMANDS, what="package")
    check_free(project.name, project.package)
    folder = (options.folder or Path(project.name)).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is not empty. Choose another name or --folder, or remove what is in it.")
    nearest = next(parent for parent in folder.parents if parent.exists())
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=nearest) as scratch:
        draft = Path(scratch, folder.name)
        draft.mkdir()
        render(project, draft)
        if options.dry_run:
            print("\n".join(str(path.relative_to(draft)) for path in files_below(draft)))
            return 0
        # `main` is the user's branch, BRANCH that of the template.
        git(draft, "init", "--quiet", "--initial-branch", "main")
        git(draft, "add", "--all", "--force")
        git(draft, *author(draft), "commit", "--quiet", "--message", project.commit_message)
        git(draft, "branch", BRANCH)
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(folder)
    print(f"{folder} is a project of its own, in Git. Next: cd {os.path.relpath(folder)} && make run; then README.md.")
    return 0
