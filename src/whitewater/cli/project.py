"""`whitewater new`, `add` and `update`: a project of one's own, what is added to it, and newer templates for it."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import whitewater
from whitewater.application import Application, applications, in_project
from whitewater.cli.main import COMMANDS
from whitewater.errors import ConfigError
from whitewater.template.names import check_free, check_name, class_name
from whitewater.template.render import LOCKS, Project, configure, render, render_application, tidy
from whitewater.template.source import files_below, merged_lock, package_folder, root, templates

BRANCH = "whitewater-template"  # which holds the template as it was
# Of commits that are made where nobody's name is configured.
NOBODY = {"user.name": "Whitewater", "user.email": "whitewater@localhost"}
ENTRY_POINTS = '[project.entry-points."whitewater.applications"]\n'
LAST = "manifest"  # the step that lists what the others made
# A new step of an application: its module, settings, test and rule, each ready to be filled in.
STEP = '''\
"""Step `{step}`: what it finds, in a sentence."""

from pathlib import Path

from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from {package}.config import {model}


def {step}(run: Run[{model}], *, summary: Output) -> None:
    """Write the number of the settings. Inputs are parameters, too, as ``trips: Path``, and named in the rule."""
    write_json(Path(summary), {{"example": run.settings.example}})


if __name__ == "__main__":
    main({step})
'''
SETTINGS = '''\
class {model}(Section):
    """What the step {step} does, in a sentence."""

    example: int = Field(1, ge=0, description="A number that is written; the first setting of yours takes its place.")


'''
TEST = '''\
"""What the step `{step}` promises."""

import json
from pathlib import Path

from whitewater.engines import resolve
from whitewater.step import Output, Run
from {package}.config import {model}
from {package}.steps.{step} import {step}


def test_the_number_of_the_settings_is_written(tmp_path: Path) -> None:
    run = Run("{name}", "{step}", resolve("cpu"), {model}(example=3))
    {step}(run, summary=Output(tmp_path / "summary.json"))
    assert json.loads((tmp_path / "summary.json").read_text()) == {{"example": 3}}
'''
RULE = """\
rule {step}:
    output:
        summary="<results>/{name}/{{device}}/{step}.json",
        record="<logs>/{name}/{{device}}/{step}.json",
    log:
        "<logs>/{name}/{{device}}/{step}.log",
    benchmark:
        "<logs>/{name}/{{device}}/{step}.jsonl"
    conda:
        "../../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=by_input(600),
        runtime=by_input(5),
    params:
        settings=lookup("{name}/{step}", within=config),
        code=step_digest("{name}", "{step}"),
    script:
        "../../src/{folder}/steps/{step}.py"


"""


def new(arguments: Sequence[str]) -> int:
    """Write a project into a folder of its name, or say which files it would have."""
    parser = argparse.ArgumentParser(prog="whitewater new", description=COMMANDS["new"])
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
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
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
        written.replace(folder)
    print(f"{folder} is a project of its own, in Git. Next: cd {os.path.relpath(folder)} && make run; then README.md.")
    return 0


def add(arguments: Sequence[str]) -> int:
    """Write the files of a step or an application into the project of this folder, and say which."""
    parser = argparse.ArgumentParser(prog="whitewater add", description=COMMANDS["add"])
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
    """Write the files of a step and its name where the application lists its steps; return the paths of all.

    Raises ConfigError if there is such a step, or a file is not as `whitewater new` writes it.
    """
    package = package_folder(application).relative_to(Path.cwd())
    model = class_name(step)
    fields = {
        "name": application.name, "step": step, "model": model, "package": application.package,
        "folder": application.package.replace(".", "/"),
    }  # fmt: skip
    texts = {
        package / "steps" / f"{step}.py": STEP.format_map(fields),
        Path("tests/apps", application.name, f"test_{step}.py"): TEST.format_map(fields),
    }
    if step in application.steps or any(path.exists() for path in texts):
        raise ConfigError(f"{application.name} has a step {step} already. Choose another name.")
    config, declared = package / "config.py", package / "application.py"
    rules = Path("workflows", application.name, "Snakefile")
    field = f"    {step}: {model} = {model}()\n"
    texts[config] = _with_settings(config, application.settings.__name__, SETTINGS.format_map(fields), field)
    texts[declared] = _with_name(declared, declared.read_text(), r"\bsteps=\(([^)]*)\)", step)
    text = rules.read_text()
    for name in ("STEPS", "RESULTS"):
        text = _with_name(rules, text, rf"(?m)^{name} = \[([^]]*)\]", step)
    before = f"\nrule {LAST}:\n" if f"\nrule {LAST}:\n" in text else "\nrule all:\n"
    texts[rules] = text.replace(before, f"\n{RULE.format_map(fields).rstrip()}\n\n{before}")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(texts)


def _with_settings(path: Path, section: str, model: str, field: str) -> str:
    """Put a model before the section of the application, and a field behind the models that the section has."""
    text = path.read_text()
    match = re.search(rf"(?ms)^class {section}\((?:(?!^class ).)*^    \w+: (\w+) = \1\(\)\n", text)
    if not match:
        raise ConfigError(f"{path} has no class {section} with models. Write the settings of the step by hand.")
    text = f"{text[: match.start()]}{model}{match[0]}{field}{text[match.end() :]}"
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
    extras = tomllib.loads((root() / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    file.write_text(_declared(text, name, package, extras.get(template, [])))
    if package == name:
        _lock(name, extras.get(template, []))
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


def _lock(name: str, needed: list[str]) -> None:
    """Add what an application needs to the locks of this project, and the library to its conda environments."""
    for script in Path("envs").glob("base.post-deploy.sh"):
        for device in ("cpu", "gpu"):
            shutil.copy(script, f"envs/{name}-{device}.post-deploy.sh")
    for lock in LOCKS:
        path = Path(f"envs/{lock}.lock")
        path.write_text(merged_lock(path.read_text(), (root() / path).read_text(), needed))


def update(arguments: Sequence[str]) -> int:
    """Render the template of the installed version onto its branch and merge it; 1 is returned where that conflicts."""
    parser = argparse.ArgumentParser(prog="whitewater update", description=COMMANDS["update"])
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
    """Return what a project was made from.

    Raises ConfigError if this is not the folder of one.
    """
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
    """Run Git in a folder, with variables of its environment, and return how it ended, with what it printed.

    Raises ConfigError if it is not installed and, where that is to be checked, with what Git says if it fails.
    """
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
