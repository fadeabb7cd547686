"""`python -m whitewater config`: the JSON schema and the page of the configuration, made from its models."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from whitewater.config.root import Config

SCHEMA = Path("config/schema.json")
PAGE = Path("docs/configuration.md")
INTRODUCTION = """# Configuration

Made by `python -m whitewater config`; change the models in `src/whitewater/config/` instead of this page.

Snakemake merges, weakest first: the defaults below, `config/config.yaml`, `config/<application>.yaml`, each
`--configfile FILE`, and `--config key=value`. Give nested keys in a file of your own, `--configfile my.yaml`:
Snakemake's `--config` takes keys of the top level only. Sections and mappings are merged key by key: a key that is not
given keeps its default. A list replaces the default. Every error is reported at once, with its file, its key and its
value, before any job starts.
"""


def schema() -> str:
    """Return the JSON schema, which editors use to complete and check the YAML files."""
    return json.dumps(Config.model_json_schema(), indent=2) + "\n"


def page() -> str:
    """Return the documentation page in Markdown: a table for each section."""
    return "\n".join([INTRODUCTION, *_section(Config, "")])


def main(arguments: Sequence[str]) -> int:
    """Write both files, or with ``--check`` say whether they are up to date."""
    parser = argparse.ArgumentParser(prog="python -m whitewater config", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is out of date")
    check = parser.parse_args(list(arguments)).check
    stale = [path for path, text in ((SCHEMA, schema()), (PAGE, page())) if _update(path, text, check=check)]
    for path in stale:
        print(f"{path} {'is out of date: run python -m whitewater config' if check else 'written'}", file=sys.stderr)
    return int(check and bool(stale))


def _update(path: Path, text: str, *, check: bool) -> bool:
    if path.exists() and path.read_text() == text:
        return False
    if not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return True


def _section(model: type[BaseModel], path: str) -> Iterator[str]:
    yield f"## {path or 'Top level'}\n\n{inspect.cleandoc(model.__doc__ or '')}\n"
    nested = {name: section for name, field in model.model_fields.items() if (section := _section_of(field))}
    plain = {name: field for name, field in model.model_fields.items() if name not in nested}
    if plain:
        yield "| key | default | allowed | meaning |\n|---|---|---|---|"
        allowed = model.model_json_schema()["properties"]
        yield "\n".join(_row(name, field, allowed[name]) for name, field in plain.items()) + "\n"
    for name, section in nested.items():
        yield from _section(section, f"{path}.{name}".lstrip("."))


def _section_of(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _row(name: str, field: FieldInfo, allowed: dict[str, Any]) -> str:
    default = field.get_default(call_default_factory=True)
    if isinstance(default, BaseModel):
        default = default.model_dump(mode="json", exclude_none=True)
    shown = json.dumps(list(default) if isinstance(default, tuple) else default)
    return f"| `{name}` | `{shown}` | {_allowed(allowed)} | {field.description or ''} |"


def _allowed(schema: dict[str, Any]) -> str:
    """Say in words what a JSON schema allows."""
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "$ref" in schema:
        return f"section `{schema['$ref'].rsplit('/', 1)[-1]}`"
    if "anyOf" in schema:
        return " or ".join(_allowed(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_allowed(schema['items'])}"
    bounds = {"exclusiveMinimum": ">", "minimum": ">=", "exclusiveMaximum": "<", "maximum": "<="}
    limits = [f"{sign} {schema[key]:g}" for key, sign in bounds.items() if key in schema]
    pattern = [f"like `{schema['pattern']}`"] if "pattern" in schema else []
    return ", ".join([str(schema.get("type", "any")), *limits, *pattern]).replace("|", "\\|")
