"""`whitewater add`: add a step or an application to the project in this folder."""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from whitewater.application import Application, applications, in_project
from whitewater.cli.main import COMMANDS
from whitewater.errors import ConfigError
from whitewater.template.locks import merged_lock
from whitewater.template.names import check_free, check_name
from whitewater.template.render import LOCKS, Project, configure, render_application, tidy
from whitewater.template.source import files_below, package_folder, root, templates
from whitewater.template.step import step_files

ENTRY_POINTS = '[project.entry-points."whitewater.applications"]\n'


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
        written = _add_application(options.name, options.template)
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


def _add_application(name: str, template: str) -> list[Path]:
    """Write an application made from a template into the project of this folder; return the paths of its files.

    Raises ConfigError if this is not a project, or the name is taken.
    """
    file = Path("pyproject.toml")
    text = file.read_text() if file.exists() else ""
    if not in_project() or ENTRY_POINTS not in text:
        raise ConfigError(
            "there is no project here: no workflows/, or no entry points of applications in pyproject.toml."
        )
    # In the checkout applications are in one package, in a project each is one.
    ours = templates()[template].package.rpartition(".")[0]
    package = f"{ours}.{name}" if Path("src", ours).is_dir() else name
    check_free(name, package)
    with tempfile.TemporaryDirectory(dir=".") as scratch:
        render_application(Project(name, package, template), Path(scratch))
        places = [path.relative_to(scratch) for path in files_below(Path(scratch))]
        if existing := [str(path) for path in places if path.exists()]:
            raise ConfigError(f"{', '.join(existing)} exists already. Choose another name.")
        for path in places:
            path.parent.mkdir(parents=True, exist_ok=True)
            Path(scratch, path).rename(path)
    tidy(Path(), *(str(path) for path in places if path.suffix in {".py", ".ipynb"}))
    file.write_text(_declared(text, name, package, _needed(template)))
    if package == name:
        _lock(name, _needed(template))
    return [*places, file]


def _needed(template: str) -> list[str]:
    declared = tomllib.loads((root() / "pyproject.toml").read_text())["project"]
    needed: list[str] = declared["optional-dependencies"].get(template, [])
    return needed


def _declared(text: str, name: str, package: str, needed: list[str]) -> str:
    """Return pyproject.toml with the entry point of an application, and with what it needs."""
    text = text.replace(ENTRY_POINTS, f'{ENTRY_POINTS}{name} = "{package}.application:{name.upper()}"\n')
    if package != name:
        extra = "".join(f'    "{each}",\n' for each in needed)
        return text.replace(
            "[project.optional-dependencies]\n", f"[project.optional-dependencies]\n{name} = [\n{extra}]\n"
        )
    declared = tomllib.loads(text)["project"]["dependencies"]
    missing = "".join(f'    "{each}",\n' for each in needed if each not in declared)
    text = re.sub(r"(?m)(^dependencies = \[\n(?:    .*\n)*)", rf"\g<1>{missing}", text, count=1)
    return re.sub(r'(?m)^packages = \["src/', f'packages = ["src/{name}", "src/', text)


def _lock(name: str, needed: list[str]) -> None:
    """Add what an application needs to the locks of this project, and the library to its conda environments."""
    for script in Path("envs").glob("base.post-deploy.sh"):
        for device in ("cpu", "gpu"):
            shutil.copy(script, f"envs/{name}-{device}.post-deploy.sh")
    for lock in LOCKS:
        path = Path(f"envs/{lock}.lock")
        path.write_text(merged_lock(path.read_text(), (root() / path).read_text(), needed))
