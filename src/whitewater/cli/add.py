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
from whitewater.template.locks import merged_lock
from whitewater.template.names import check_free, check_name, class_name
from whitewater.template.render import LOCKS, Project, configure, render_application, tidy
from whitewater.template.source import HERE, files_below, package_folder, root, templates

ENTRY_POINTS = '[project.entry-points."whitewater.applications"]\n'
LAST = "manifest"  # the step that lists what the others made
# Of a new step, in the folder `template/step`, each ready to be filled in.
TEMPLATES = ("module.py", "settings.py", "test.py", "rule.smk")


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
    tidy(Path(), *(str(path) for path in written if path.suffix in {".py", ".ipynb"}))
    configure(Path())
    print("\n".join(f"{path} written" for path in written))
    print("The files in config/ have its settings. Next: make test, which installs it.")
    return 0


def _application(name: str | None) -> Application:
    """Return the application of this project that is meant: its name is needed where there are several."""
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
    """Write the files of a step and its name where the application lists its steps; return the paths of all."""
    package = package_folder(application).relative_to(Path.cwd())
    fields = {
        "name": application.name, "step": step, "model": class_name(step), "package": application.package,
        "folder": application.package.replace(".", "/"),
    }  # fmt: skip
    module, settings, test, rule = ((HERE / "step" / f"{name}.in").read_text().format_map(fields) for name in TEMPLATES)
    texts = {package / "steps" / f"{step}.py": module, Path("tests/apps", application.name, f"test_{step}.py"): test}
    if step in application.steps or any(path.exists() for path in texts):
        raise ConfigError(f"{application.name} has a step {step} already. Choose another name.")
    config, declared = package / "config.py", package / "application.py"
    rules = Path("workflows", application.name, "Snakefile")
    field = "    {step}: {model} = {model}()\n".format_map(fields)
    texts[config] = _with_settings(config, application.settings.__name__, f"{settings}\n\n", field)
    texts[declared] = _with_name(declared, declared.read_text(), r"\bsteps=\(([^)]*)\)", step)
    text = rules.read_text()
    for name in ("STEPS", "RESULTS"):
        text = _with_name(rules, text, rf"(?m)^{name} = \[([^]]*)\]", step)
    before = f"\nrule {LAST}:\n" if f"\nrule {LAST}:\n" in text else "\nrule all:\n"
    texts[rules] = text.replace(before, f"\n{rule}\n{before}")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(texts)


def _with_settings(path: Path, section: str, model: str, field: str) -> str:
    """Put a model before the section of the application, and a field at that section's end."""
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


def _with_name(path: Path, text: str, pattern: str, step: str) -> str:
    """Add a step to the names that the group of a pattern holds, before the manifest, which comes last."""
    match = re.search(pattern, text)
    if not match:
        raise ConfigError(f"{path} has nothing like {pattern}. Add the step by hand: docs/architecture.md.")
    names = re.findall(r"\w+", match[1])
    names.insert(names.index(LAST) if LAST in names else len(names), step)
    listed = "".join(f'    "{name}",\n' for name in names)
    return f"{text[: match.start(1)]}\n{listed}{text[match.end(1) :]}"


def _add_application(name: str, template: str) -> list[Path]:
    """Write an application made from a template into the project of this folder; return the paths of its files."""
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
    extras = tomllib.loads((root() / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    file.write_text(_declared(text, name, package, extras.get(template, [])))
    if package == name:  # the locks hold what it needs, and its conda environments the library
        for script in Path("envs").glob("base.post-deploy.sh"):
            for device in ("cpu", "gpu"):
                shutil.copy(script, f"envs/{name}-{device}.post-deploy.sh")
        for lock in (Path(f"envs/{lock}.lock") for lock in LOCKS):
            lock.write_text(merged_lock(lock.read_text(), (root() / lock).read_text(), extras.get(template, [])))
    return [*places, file]


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
