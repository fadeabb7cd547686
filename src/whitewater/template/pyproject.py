"""The pyproject.toml of a project: what it declares, and the settings of the tools as the repository has them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence

import whitewater
from whitewater.errors import IntegrityError

TOOLS = ("pytest", "ruff", "mypy")
# Where the repository's settings name what is in no project, or a package that has another name there.
EDITS = (
    (r'\nfiles = \["src",.*\]', '\nfiles = ["src", "tests"]'),
    (r"\nexclude = .*\nmypy_path = .*", '\nmypy_path = ["src"]'),
    (r"\n\[tool\.ruff\.lint\.isort\]\n.*\n", ""),
    (r"\nignore = \[", '\nignore = [\n    "E501", # a longer name of the project makes messages longer'),
    (r"\n\[\[tool\.mypy\.overrides\]\]\nmodule = \[\"whitewater(?:.*\n)*?(?=\n|\Z)", ""),
)  # fmt: skip
PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "0.1.0"
description = "{name}, made from Whitewater's {template}"
readme = "README.md"
requires-python = "{python}"
dependencies = {needed}

[project.optional-dependencies]
gpu = {gpu}
dev = {dev}

[project.entry-points."whitewater.applications"]
{name} = "{package}.application:{constant}"

# What `whitewater update` renders again.
[tool.whitewater]
name = "{name}"
package = "{package}"
template = "{template}"

[tool.hatch.build.targets.wheel]
packages = ["src/{package}"]

[tool.hatch.build]
dev-mode-dirs = ["src"]
"""


def pyproject(text: str, needed: Sequence[str], *, name: str, package: str, template: str) -> str:
    """Return the pyproject.toml of a project, made from that of the repository.

    ``needed`` is what its application imports besides what the library does.
    """
    declared = tomllib.loads(text)["project"]
    extras = declared["optional-dependencies"]
    head = PROJECT.format(
        name=name, package=package, template=template, constant=name.upper(), python=declared["requires-python"],
        needed=_listed([f"whitewater=={whitewater.__version__}", *needed]), gpu=_listed(extras["gpu"]),
        dev=_listed(extras["dev"]),
    )  # fmt: skip
    sections = re.split(r"\n(?=\[|# [^\n]*\n\[)", text)
    tools = [each for each in sections if re.match(rf"(?:#.*\n)?\[+tool\.(?:{'|'.join(TOOLS)})\b", each)]
    settings = "\n".join(tools)
    for pattern, new in EDITS:
        settings, count = re.subn(pattern, new, settings)
        if not count:
            raise IntegrityError(f"pyproject.toml has nothing like {pattern!r}. Correct {__name__}.")
    return f"{head}\n{settings.rstrip()}\n"


def _listed(requirements: Sequence[str]) -> str:
    return "".join(["[\n", *(f'    "{each}",\n' for each in requirements), "]"])
