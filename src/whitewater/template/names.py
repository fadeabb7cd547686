"""Checks of a project's name, and the renaming of an application in identifiers, paths and keys."""

import io
import keyword
import re
import sys
import tokenize
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from whitewater.application import Application, find_entry_points
from whitewater.config.resolve import Common
from whitewater.errors import ConfigError

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
LONGEST = 20
# Names of rules and globals in the Snakefiles of a project.
SNAKEMAKE = {"all", "config", "rules", "workflow", "checkpoints", "application", "prefix", "gather", "scatter"}
# Regular expressions for what precedes the name of an application in commands and imports.
BEFORE = ("whitewater ", "whitewater:cpu ", "cores all ", "snakemake ", " -- ", "APP=", r"tests\.apps\.")


def check_name(name: str, *, commands: Collection[str], what: str = "name") -> None:
    """Raise ConfigError if a name cannot be a package, a section, a folder and a rule, or is one of ``commands``."""
    remedy = f"Choose another {what}, such as my_{re.sub('[^a-z0-9]+', '_', name.lower()).strip('_') or 'trips'}."
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        raise ConfigError(
            f"{name!r} cannot be the {what} of a project: use at most {LONGEST} lower-case letters, digits and single "
            f"underscores, beginning with a letter. {remedy}"
        )
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise ConfigError(f"{name!r} is a keyword of Python. {remedy}")
    if name in {*commands, *Common.model_fields, *SNAKEMAKE}:
        raise ConfigError(f"{name!r} is a command of whitewater, a key of its configuration, or a name in it. {remedy}")


def check_free(name: str, package: str) -> None:
    """Raise ConfigError if the name of the application or the package is taken."""
    if place := find_entry_points(Path.cwd()).get(name):
        where = f"the package {place.dist.name}" if place.dist else "pyproject.toml"
        raise ConfigError(
            f"an application {name!r} is declared already by {where} ({place.value}). Choose another name."
        )
    spec = find_spec(package)
    # An empty folder of this name is found too, but has no origin.
    if package in sys.stdlib_module_names or (spec and spec.origin):
        raise ConfigError(f"a module {package!r} is installed already. Choose another name, or --package.")


def class_name(name: str) -> str:
    """Return the class name of a section: `BikeTrips` for `bike_trips`; `BModel` for `b`, as `B` is its constant."""
    joined = "".join(word.capitalize() for word in name.split("_"))
    return f"{joined}Model" if joined == name.upper() else joined


@dataclass(frozen=True)
class Renaming:
    """Gives an application a new ``name`` and ``package``."""

    application: Application
    name: str
    package: str

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """All places where a text names the application, in groups by replacement; URLs match without a group."""
        old = re.escape(self.application.name)
        package = re.escape(self.application.package)
        rules = "|".join([*self.application.steps, "all"])
        keys = "|".join(self.application.settings.model_fields)
        names = (
            # "taxi/fetch", "<results>/taxi/", tests/test_taxi.py
            rf"(?<=[\"'`/ ]){old}(?=/)|(?<=/){old}(?=[\"'`])|(?<=/test_){old}(?=\.py)",
            # "taxi"
            rf"(?<=[\"'`]){old}(?=\\?[\"'`])",
            # taxi-{device}.yaml, taxi.yaml
            rf"\b{old}(?=-(?:\{{device\}}|[cg]pu\b)|\.yaml\b|\.ipynb\b)",
            # taxi.fetch.files, taxi_fetch, `taxi:` in YAML
            rf"\b{old}(?=\\?\.(?:{keys})\b|_(?:{rules})\b)|\b{old}(?=:(?: \{{|\s*$|\\n))",
            # whitewater taxi clean, snakemake --cores all taxi, make run APP=taxi, the taxi application
            rf"(?:{'|'.join(f'(?<={words})' for words in BEFORE)}){old}\b",
            rf"(?<= run ){old}(?= in it)|\b{old}(?= application\b)",
        )
        title = rf"(?<=category=\")(?i:{old})(?=\")|(?<=^# )(?i:{old})(?=: )"
        path = self.application.package.replace(".", "/")
        return re.compile(
            rf"https?://[^\s\"'`)]+|(?P<package>\b{package}(?!\w))|(?P<path>\b{path}(?!\w))"
            rf"|(?P<name>{'|'.join(names)})|(?P<title>{title})",
            re.MULTILINE,
        )

    def text(self, text: str) -> str:
        """Return a text of any kind with the application's new name."""
        new = {
            "package": self.package, "path": self.package.replace(".", "/"), "name": self.name,
            "title": self.name.capitalize(),
        }  # fmt: skip
        return self._pattern.sub(lambda match: new.get(match.lastgroup or "", match[0]), text)

    def python(self, source: str) -> str:
        """Return a Python module with the application's new name; imports are left unsorted."""
        section, model = self.application.settings.__name__, class_name(self.name)
        new = {section: model, f"Test{section}": f"Test{model}", self.application.name.upper(): self.name.upper()}
        lines = source.splitlines(keepends=True)
        for token in reversed([*tokenize.generate_tokens(io.StringIO(source).readline)]):
            if token.type == tokenize.NAME and token.string in new:
                row, column = token.start
                line = lines[row - 1]
                lines[row - 1] = line[:column] + new[token.string] + line[token.end[1] :]
        return self.text("".join(lines))
