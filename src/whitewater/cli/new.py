"""`whitewater new`: write a project of your own, made from an application."""

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
    """Write a project into a folder of its name, or say which files it would have."""
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
        written = Path(scratch, folder.name)
        written.mkdir()
        render(project, written)
        if options.dry_run:
            print("\n".join(str(path.relative_to(written)) for path in files_below(written)))
            return 0
        # The branch of the user, and that of the template.
        git(written, "init", "--quiet", "--initial-branch", "main")
        git(written, "add", "--all", "--force")
        git(written, *author(written), "commit", "--quiet", "--message", project.described)
        git(written, "branch", BRANCH)
        folder.parent.mkdir(parents=True, exist_ok=True)
        written.replace(folder)
    print(f"{folder} is a project of its own, in Git. Next: cd {os.path.relpath(folder)} && make run; then README.md.")
    return 0
