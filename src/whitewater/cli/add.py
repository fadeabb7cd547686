"""`whitewater add`: add a step or an application to the project in this folder."""

import argparse
import ast
import re
import shutil
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from whitewater.application import Application, applications, in_project
from whitewater.cli.main import COMMANDS
from whitewater.errors import ConfigError
from whitewater.template.locks import extend_lock
from whitewater.template.names import check_free, check_name, class_name
from whitewater.template.render import LOCKS, Project, configure, format_list, render_application, tidy
from whitewater.template.source import HERE, files_below, package_folder, root, templates

ENTRY_POINTS = '[project.entry-points."whitewater.applications"]\n'
LAST = "manifest"  # the step that lists the outputs of all others


def main(arguments: Sequence[str]) -> int:
    """Write the files of a step or an application, and list them."""
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
        paths = _add_application(options.name, options.template)
    else:
        paths = _add_step(_choose_application(options.app), options.name)
    tidy(Path(), *(str(path) for path in paths if path.suffix in {".py", ".ipynb"}))
    configure(Path())
    print("\n".join(f"{path} written" for path in paths))
    print("The files in config/ have its settings. Next: make test, which installs it.")
    return 0


def _choose_application(name: str | None) -> Application:
    """Return the application of this project with this name; the name may be left out if there is only one."""
    here = Path("src").resolve()
    known = {
        key: application for key, application in applications(in_project()).items()
        if application.steps and package_folder(application).is_relative_to(here)
    }  # fmt: skip
    if not known:
        raise ConfigError("no application of this folder's src/ is installed. Run this in a project, after `make`.")
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name not in known:
        raise ConfigError(f"which application? Name one of {', '.join(known)} by --app.")
    return known[name]


def _add_step(application: Application, step: str) -> list[Path]:
    """Write the files of a step, add it to the lists of steps, and return the paths of all changed files."""
    package = package_folder(application).relative_to(Path.cwd())
    fields = {
        "name": application.name, "step": step, "model": class_name(step), "package": application.package,
        "folder": application.package.replace(".", "/"),
    }  # fmt: skip
    module, settings, test, rule = (
        (HERE / "step" / f"{name}.in").read_text().format_map(fields)
        for name in ("module.py", "settings.py", "test.py", "rule.smk")
    )
    texts = {package / "steps" / f"{step}.py": module, Path("tests/apps", application.name, f"test_{step}.py"): test}
    if step in application.steps or any(path.exists() for path in texts):
        raise ConfigError(f"{application.name} has a step {step} already. Choose another name.")
    config, declaration = package / "config.py", package / "application.py"
    rules = Path("workflows", application.name, "Snakefile")
    field = "    {step}: {model} = {model}()\n".format_map(fields)
    texts[config] = _insert_settings(config, application.settings.__name__, f"{settings}\n\n", field)
    texts[declaration] = _insert_name(declaration, declaration.read_text(), r"\bsteps=\(([^)]*)\)", step)
    text = rules.read_text()
    for name in ("STEPS", "RESULTS"):
        text = _insert_name(rules, text, rf"(?m)^{name} = \[([^]]*)\]", step)
    before = f"\nrule {LAST}:\n" if f"\nrule {LAST}:\n" in text else "\nrule all:\n"
    texts[rules] = text.replace(before, f"\n{rule}\n{before}")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(texts)


def _insert_settings(path: Path, section: str, model: str, field: str) -> str:
    """Insert a model before the section of the application, and a field at the end of that section."""
    text = path.read_text()
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == section]
    fields = [node for node in classes[0].body if isinstance(node, ast.AnnAssign)] if classes else []
    if not fields:
        raise ConfigError(f"{path} has no class {section} with fields. Write the settings of the step by hand.")
    lines = text.splitlines(keepends=True)
    lines.insert(fields[-1].end_lineno or 0, field)
    lines.insert(min([classes[0].lineno, *(node.lineno for node in classes[0].decorator_list)]) - 1, model)
    text = "".join(lines)
    has_field = re.search(r"\bimport .*\bField\b", text)
    return text if has_field else text.replace("\nfrom ", "\nfrom pydantic import Field\nfrom ", 1)


def _insert_name(path: Path, text: str, pattern: str, step: str) -> str:
    """Add a step to the list that the pattern's group matches, before the manifest, which comes last."""
    match = re.search(pattern, text)
    if not match:
        raise ConfigError(f"{path} has nothing like {pattern}. Add the step by hand: docs/architecture.md.")
    names = re.findall(r"\w+", match[1])
    names.insert(names.index(LAST) if LAST in names else len(names), step)
    lines = "".join(f'    "{name}",\n' for name in names)
    return f"{text[: match.start(1)]}\n{lines}{text[match.end(1) :]}"


def _add_application(name: str, template: str) -> list[Path]:
    """Write an application made from a template into the project in this folder; return the paths of its files."""
    file = Path("pyproject.toml")
    text = file.read_text() if file.exists() else ""
    if not in_project() or ENTRY_POINTS not in text:
        raise ConfigError(
            "there is no project here: no workflows/, or no entry points of applications in pyproject.toml."
        )
    # In the checkout all applications share one package; in a project each has its own.
    parent = templates()[template].package.rpartition(".")[0]
    package = f"{parent}.{name}" if Path("src", parent).is_dir() else name
    check_free(name, package)
    with tempfile.TemporaryDirectory(dir=".") as scratch:
        render_application(Project(name, package, template), Path(scratch))
        places = [path.relative_to(scratch) for path in files_below(Path(scratch))]
        if existing := [str(path) for path in places if path.exists()]:
            raise ConfigError(f"{', '.join(existing)} exists already. Choose another name.")
        for path in places:
            path.parent.mkdir(parents=True, exist_ok=True)
            Path(scratch, path).rename(path)
    extras = tomllib.loads((root() / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    file.write_text(_declare_application(text, name, package, extras.get(template, [])))
    if package == name:  # the locks get its requirements, and its conda environments the library
        for script in Path("envs").glob("base.post-deploy.sh"):
            for device in ("cpu", "gpu"):
                shutil.copy(script, f"envs/{name}-{device}.post-deploy.sh")
        for lock in (Path(f"envs/{lock}.lock") for lock in LOCKS):
            lock.write_text(extend_lock(lock.read_text(), (root() / lock).read_text(), extras.get(template, [])))
    return [*places, file]


def _declare_application(text: str, name: str, package: str, requirements: list[str]) -> str:
    """Add the entry point and the requirements of an application to the text of pyproject.toml."""
    text = text.replace(ENTRY_POINTS, f'{ENTRY_POINTS}{name} = "{package}.application:{name.upper()}"\n')
    if package != name:
        extras = "[project.optional-dependencies]\n"
        return text.replace(extras, f"{extras}{name} = {format_list(requirements)}\n")
    present = tomllib.loads(text)["project"]["dependencies"]
    missing = "".join(f'    "{requirement}",\n' for requirement in requirements if requirement not in present)
    text = re.sub(r"(?m)(^dependencies = \[\n(?:    .*\n)*)", rf"\g<1>{missing}", text, count=1)
    return re.sub(r'(?m)^packages = \["src/', f'packages = ["src/{name}", "src/', text)
