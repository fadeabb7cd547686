"""A project rendered from a template into a folder: equal template, name and version give equal files."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import whitewater
from whitewater.application import Application
from whitewater.errors import ConfigError, IntegrityError
from whitewater.template.locks import lock_of, names
from whitewater.template.names import Renaming
from whitewater.template.source import HERE, files_below, library_wheel, package_folder, root, templates

# Files that a project copies from the repository, with only the application renamed.
SHARED = (
    ".devcontainer", ".dockerignore", ".editorconfig", ".github/workflows/ci.yml", ".gitignore", ".gitlab-ci.yml",
    ".pre-commit-config.yaml", "Dockerfile", "LICENSE", "Makefile", "Snakefile", "profiles", "tests/conftest.py",
    "workflows/common.smk", "workflows/report.css", "workflows/report.rst", "envs/base.yaml", "envs/bootstrap.lock",
    "envs/excluded.in", "envs/slurm.lock",
)  # fmt: skip
# Replacements in these: a project has the library as a wheel, and no documentation to check.
EDITS = {
    ".dockerignore": ("!src\n", "!src\n!vendor\n"),
    ".github/workflows/ci.yml": ("run, docs, test-image", "run, test-image"),
    ".gitlab-ci.yml": ("\ndocs:\n  script: make docs\n", ""),
    "Dockerfile": (
        "COPY . .\n",
        "COPY . .\nRUN uv pip install --no-cache --offline --no-deps --find-links vendor --require-hashes "
        "--requirement envs/library.lock\n",
    ),
}
LIBRARY_LOCK = """\
# The library, in vendor/; written by `whitewater new` and `whitewater update`.
whitewater=={version} \\
    --hash=sha256:{digest}
"""
# Snakemake runs this after it has created a conda environment, because no channel has the library.
AFTER_CONDA = "python -m pip install --no-index --no-deps vendor/{wheel}  # sha256:{digest}\n"
# The locks of a project: the requirements of the application, and the extra of the lock's name.
LOCKS = ("cpu", "dev", "gpu")
# Changes of the repository's tool settings that do not fit a project.
TOOL_EDITS = (
    (r'\nfiles = \["src",.*\]', '\nfiles = ["src", "tests"]'),
    (r"\nexclude = .*\nmypy_path = .*", '\nmypy_path = ["src"]'),
    (r"\n\[tool\.ruff\.lint\.isort\]\n.*\n", ""),
    (r"\nignore = \[", '\nignore = [\n    "E501", # a longer name of the project makes messages longer'),
    (r"\n\[\[tool\.mypy\.overrides\]\]\nmodule = \[\"whitewater(?:.*\n)*?(?=\n|\Z)", ""),
)  # fmt: skip


@dataclass(frozen=True)
class Project:
    """Name, package and template of a project; its pyproject.toml records them for updates."""

    name: str
    package: str
    template: str

    @property
    def commit_message(self) -> str:
        """The message of commits of the rendered template."""
        return f"{self.template} of Whitewater {whitewater.__version__}, as {self.name}"


def render(project: Project, folder: Path) -> None:
    """Write a project into an empty folder. Raises ConfigError as `render_application` and `library_wheel` do."""
    render_application(project, folder)
    renamings = [Renaming(template, project.name, project.package) for template in templates().values()]
    for name in SHARED:
        for path in files_below(root() / name):
            place = path.relative_to(root())
            text = path.read_text().replace(*EDITS.get(str(place), ("", "")))
            for renaming in renamings:
                text = renaming.text(text)
            _write(folder / place, text)
    header, *rows = (root() / "config/datasets.csv").read_text().splitlines(keepends=True)
    _write(folder / "config/datasets.csv", "".join([header, *(row for row in rows if project.template in row)]))
    _write_packages(project, folder)
    readme = (HERE / "README.md").read_text().format(**asdict(project), version=whitewater.__version__)
    _write(folder / "README.md", readme)
    _drop_dead_links(folder)
    configure(folder)
    tidy(folder)


def configure(folder: Path) -> None:
    """Generate the configuration files of a project, whose applications need not be installed yet."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(["src", ".", os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-B", "-m", "whitewater", "config"]
    process = subprocess.run(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    if process.returncode:
        raise ConfigError(process.stderr.strip().removeprefix("ConfigError: "))


def tidy(folder: Path, *paths: str) -> None:
    """Sort imports and format code again, in all files or some, because the new name changes lengths."""
    for command in (["check", "--quiet", "--select", "I", "--fix-only"], ["format", "--quiet"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, "--no-cache", *paths], cwd=folder, check=True)


def render_application(project: Project, folder: Path) -> None:
    """Write the files of the application alone, or raise ConfigError if there is no such template."""
    known = templates()
    if project.template not in known:
        raise ConfigError(f"there is no template {project.template!r}; there are {', '.join(known)}.")
    application = known[project.template]
    renaming = Renaming(application, project.name, project.package)
    for path, target in _application_files(application):
        text = path.read_text()
        if path.suffix == ".ipynb":
            notebook = json.loads(text)
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":  # as before its first run
                    cell.update(outputs=[], execution_count=None)
            text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        # In a project the application is part of the rule ``all``.
        text = text.replace("    apart=True,\n", "")
        renamed = renaming.python(text) if path.suffix == ".py" else renaming.text(text)
        _write(folder / renaming.text(str(target)), renamed)
    if "." not in project.package:
        _write(folder / "src" / project.package / "py.typed", "")


def _drop_dead_links(folder: Path) -> None:
    """Leave the text alone of links to what a project lacks, such as the documentation."""
    for path in (*folder.rglob("*.md"), *folder.rglob("*.ipynb")):
        parts = re.split(r"(\[[^]\n]+\]\(\.\./[^)\s]+\))", path.read_text())
        for number, link in enumerate(parts[1::2]):
            text, _, target = link[1:-1].partition("](")
            if not (path.parent / target.partition("#")[0]).exists():
                parts[2 * number + 1] = text
        path.write_text("".join(parts))


def _application_files(application: Application) -> Iterator[tuple[Path, Path]]:
    """Yield the files of an application, each with its path in a checkout."""
    name = application.name
    package = package_folder(application)
    for path in files_below(package):
        yield path, Path("src", *application.package.split("."), path.relative_to(package))
    places = (f"workflows/{name}", f"notebooks/{name}.ipynb", f"envs/{name}-cpu.yaml", f"envs/{name}-gpu.yaml")
    # Tests of internals are not copied.
    tests = (f"tests/apps/{name}/test_{what}.py" for what in ("guarantees", "headline", name))
    for place in (*places, *tests):
        for path in files_below(root() / place):
            yield path, path.relative_to(root())


def _write_packages(project: Project, folder: Path) -> None:
    """Write pyproject.toml, the locks, and the library's wheel with its own lock."""
    _write(folder / "pyproject.toml", pyproject(project))
    declared = tomllib.loads((root() / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    # Build tools have their own lock and are installed first.
    bootstrap = (root() / "envs/bootstrap.lock").read_text()
    for lock in LOCKS:
        more = [line for line in extras.get(lock, []) if f"\n{next(iter(names([line])))}==" not in bootstrap]
        needed = [*declared["dependencies"], *extras.get(project.template, []), *more]
        _write(folder / f"envs/{lock}.lock", lock_of((root() / f"envs/{lock}.lock").read_text(), needed))
    name, content = library_wheel()
    (folder / "vendor").mkdir()
    (folder / "vendor" / name).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    _write(folder / "envs/library.lock", LIBRARY_LOCK.format(version=whitewater.__version__, digest=digest))
    for environment in (folder / "envs").glob("*.yaml"):
        _write(environment.with_suffix(".post-deploy.sh"), AFTER_CONDA.format(wheel=name, digest=digest))


def pyproject(project: Project) -> str:
    """Derive the pyproject.toml of a project from the repository's."""
    text = (root() / "pyproject.toml").read_text()
    declared = tomllib.loads(text)["project"]
    extras = declared["optional-dependencies"]
    head = (HERE / "pyproject.toml.in").read_text().format(
        **asdict(project), constant=project.name.upper(), python=declared["requires-python"],
        needed=format_list([f"whitewater=={whitewater.__version__}", *extras.get(project.template, [])]),
        gpu=format_list(extras["gpu"]), dev=format_list(extras["dev"]),
    )  # fmt: skip
    sections = re.split(r"\n(?=\[|# [^\n]*\n\[)", text)
    tool = re.compile(r"(?:#.*\n)?\[+tool\.(?:pytest|ruff|mypy)\b")
    settings = "\n".join(filter(tool.match, sections))
    for pattern, new in TOOL_EDITS:
        settings, count = re.subn(pattern, new, settings)
        if not count:
            raise IntegrityError(f"pyproject.toml has nothing like {pattern!r}. Correct {__name__}.")
    return f"{head}\n{settings.rstrip()}\n"


def format_list(requirements: Sequence[str]) -> str:
    """Return a list of TOML, an item on each line."""
    return "".join(["[\n", *(f'    "{requirement}",\n' for requirement in requirements), "]"])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
