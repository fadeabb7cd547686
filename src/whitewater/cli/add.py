"""`whitewater add`: add a step or an application to the project in this folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from whitewater.application import Application, applications, in_project
from whitewater.cli.main import COMMANDS
from whitewater.errors import ConfigError
from whitewater.template.beside import add_application
from whitewater.template.names import check_name
from whitewater.template.render import configure, tidy
from whitewater.template.source import package_folder, templates
from whitewater.template.step import step_files


def main(arguments: Sequence[str]) -> int:
    """Write the files of a step or an application, and say which."""
    parser = argparse.ArgumentParser(prog="whitewater add", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    step = kinds.add_parser("step", help="its module, settings, rule and test")
    step.add_argument("name")
    step.add_argument("--app", help="the application; needed if the project has several")
    application = kinds.add_parser("application", help="another application, made from a template")
    application.add_argument("name")
    application.add_argument("--from", dest="template", default="minimal", choices=sorted(templates()))
    options = parser.parse_args(list(arguments))
    check_name(options.name, commands=COMMANDS, what=options.kind)
    if options.kind == "application":
        written = add_application(options.name, options.template)
    else:
        written = _add_step(_application(options.app), options.name)
    configure(Path())
    print("\n".join(f"{path} written" for path in written))
    print("The files in config/ have its settings. Next: make test, which installs it.")
    return 0


def _application(name: str | None) -> Application:
    """Return the application of this project that is meant: its name is needed where there are several."""
    known = {key: application for key, application in applications(in_project()).items() if _is_here(application)}
    if not known:
        raise ConfigError("no application of this folder's src/ is installed. Run this in a project, after `make`.")
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name not in known:
        raise ConfigError(f"which application? Name one of {', '.join(known)} by --app.")
    return known[name]


def _is_here(application: Application) -> bool:
    return bool(application.steps) and package_folder(application).is_relative_to(Path("src").resolve())


def _add_step(application: Application, step: str) -> list[Path]:
    texts = step_files(application, step)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    tidy(Path(), *(str(path) for path in texts if path.suffix == ".py"))
    return [Path(path).absolute().relative_to(Path.cwd()) for path in texts]
