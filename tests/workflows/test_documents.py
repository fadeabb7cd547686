"""What documents name is there: files, steps, and keys of the configuration."""

import re
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from whitewater.application import applications, in_project
from whitewater.cli.main import COMMANDS
from whitewater.config.resolve import resolve

ROOT = Path(__file__).resolve().parents[2]
LISTED = subprocess.run(
    ["git", "ls-files", "*.md", "*.ipynb", "*.rst"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split()
# The changelog also tells of what is gone.
DOCUMENTS = [name for name in LISTED if name != "CHANGELOG.md"]
TREES = ("src", "tests", "benchmarks", "workflows", "config", "envs", "docs", "notebooks", "profiles")
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]+)[^)]*\)")
PATH = re.compile(rf"(?<![\w./-])(?:{'|'.join(TREES)})/[\w./*-]*\w(?:\.\w+)?")
COMMAND = re.compile(r"(?:`|^ {4})whitewater ([a-z]+)(?: ([a-z_]+))?", re.MULTILINE)
IMPORT = re.compile(r"from (whitewater[\w.]*) import ([\w, ]+)")
NAMES = applications(in_project())
KEY = re.compile(rf"`((?:cluster|{'|'.join(NAMES)})\.[a-z_]+(?:\.[a-z_0-9]+)*)`")
DEFAULTS: Any = resolve({}, in_project())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_to_files(document: str) -> None:
    file = ROOT / document
    assert [link for link in LINK.findall(file.read_text()) if not (file.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_are_those_of_files(document: str) -> None:
    named = {path for path in PATH.findall((ROOT / document).read_text()) if "bikes" not in path}
    assert [path for path in sorted(named) if not [*ROOT.glob(path)]] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_are_those_that_there_are(document: str) -> None:
    for command, name in COMMAND.findall((ROOT / document).read_text()):
        if command in NAMES and name:
            assert name in (*NAMES[command].steps, *NAMES[command].commands)
        elif command != "bikes":  # the example of docs/architecture.md
            assert command in (*COMMANDS, *NAMES), command


@pytest.mark.parametrize("document", DOCUMENTS)
def test_keys_are_those_of_the_configuration(document: str) -> None:
    for key in KEY.findall((ROOT / document).read_text()):
        section = DEFAULTS
        for name in key.split("."):
            assert name in section, key
            section = section[name]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_imports_find_their_modules_and_names(document: str) -> None:
    text = (ROOT / document).read_text().replace("\\n", "\n")
    for module, names in IMPORT.findall(text):
        if "bikes" not in module:
            for name in re.findall(r"\w+", names.partition(" as ")[0]):
                assert hasattr(import_module(module), name) or find_spec(f"{module}.{name}"), (module, name)


RECIPES = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/recipes.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_are_valid_settings(recipe: str) -> None:
    resolve(yaml.safe_load(recipe), in_project())
