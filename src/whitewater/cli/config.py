"""`whitewater config`: generate config/, its JSON schema and its documentation from the models."""

import argparse
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from whitewater.application import Application, applications, in_project
from whitewater.config.resolve import Common, whole
from whitewater.config_files import read_configuration
from whitewater.engines.config import LOCAL_ON_GPU
from whitewater.errors import ConfigError

PAGE = Path("docs/configuration.md")
ENGINES_PAGE = Path("docs/engines.md")
RECIPES = Path("docs/recipes.md")  # a handwritten part of the page
# In each page the text before this marker is handwritten, and the rest is generated.
CONTENTS = "Contents:\n"
ENGINES_TABLE = """\
| operation | local, CPU | dask, CPU | dask, GPU | local, GPU |
|---|---|---|---|---|
"""
HEADER = """\
# yaml-language-server: $schema=schema.json
# Every key with its default, written by `whitewater config`. Put changes into a file of your own, which needs only the
# keys that differ, and name it: snakemake --configfile mine.yaml
"""


def main(arguments: Sequence[str]) -> int:
    """Write the files, or check that they are up to date (``--check``), or check a user's files (``--configfile``)."""
    parser = argparse.ArgumentParser(prog="whitewater config", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is out of date")
    parser.add_argument(
        "--configfile", type=Path, nargs="+", help="write nothing; check these files, which override config/"
    )
    parser.add_argument("--run-name", action="store_true", help="write nothing; print the name of the configured run")
    options = parser.parse_args(list(arguments))
    known = in_project()
    if not known:
        raise ConfigError("there is no workflows/ here: run this in the folder of a project.")
    if options.run_name:
        print(read_configuration(Path(), options.configfile or ())["run"]["name"])
        return 0
    if options.configfile:
        read_configuration(Path(), options.configfile)
        print(f"{', '.join(map(str, options.configfile))}: all keys are known, and their values can be used")
        return 0
    texts = files(applications(known))
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path])
        print(f"{path} {'is out of date: run whitewater config' if options.check else 'written'}", file=sys.stderr)
    return int(options.check and bool(stale))


def files(known: Mapping[str, Application]) -> dict[Path, str]:
    """Return the text of each file by its path: ``config/``, and the pages if this project has recipes."""
    model = whole(known.values())
    texts = {
        Path("config/schema.json"): json.dumps(model.model_json_schema(), indent=2) + "\n",
        Path("config/config.yaml"): HEADER + "\n".join(_yaml(Common())) + "\n",
    }
    if RECIPES.exists():
        page, engines = PAGE.read_text().partition(CONTENTS)[0], ENGINES_PAGE.read_text().partition(ENGINES_TABLE)[0]
        texts[PAGE] = page + "\n".join([*_contents(model), RECIPES.read_text(), *_section(model, "")])
        rows = [
            f"| {name} {step} | {operation.cpu} | {operation.dask or 'the same'} | {operation.gpu} | refused |\n"
            for name, application in known.items()
            for step, operation in application.operations.items()
        ]
        refusal = f"\n`local` with `device: gpu` is refused before any job: *{LOCAL_ON_GPU}*\n"
        texts[ENGINES_PAGE] = "".join([engines, ENGINES_TABLE, *rows, refusal])
    # An application without steps, such as the benchmarks, has a handwritten file: some keys set defaults of others.
    for name, application in known.items():
        if application.steps:
            lines = ["", f"{name}:", *_yaml(application.settings(), "  ")]
            texts[Path(f"config/{name}.yaml")] = HEADER + "\n".join(lines) + "\n"
    return texts


def _yaml(section: BaseModel, indent: str = "") -> Iterator[str]:
    """Yield the lines of a YAML file with every key, its default and its description."""
    values = section.model_dump(mode="json")
    for name, field in type(section).model_fields.items():
        nested = getattr(section, name)
        is_section = isinstance(nested, BaseModel) and bool(type(nested).model_fields)
        meaning = inspect.cleandoc(type(nested).__doc__ or "").split("\n\n")[0] if is_section else field.description
        yield from textwrap.wrap(meaning or "", 100, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")
        if is_section:
            yield f"{indent}{name}:"
            yield from _yaml(nested, f"{indent}  ")
        elif isinstance(values[name], dict) and values[name]:
            yield f"{indent}{name}:"
            yield from (f"{indent}  {key}: {json.dumps(value)}" for key, value in values[name].items())
        else:
            yield f"{indent}{name}: {json.dumps(values[name])}"


def _contents(model: type[BaseModel]) -> Iterator[str]:
    """Yield links to the sections of the page, two levels deep."""
    yield f"{CONTENTS}\n- [Recipes](#recipes)"
    for name, section in _nested(model).items():
        steps = ", ".join(f"[{step}](#{name}{step})" for step in _nested(section))
        yield f"- [{name}](#{name}){': ' if steps else ''}{steps}"
    yield ""


def _section(model: type[BaseModel], path: str) -> Iterator[str]:
    yield f"## {path or 'Top level'}\n\n{inspect.cleandoc(model.__doc__ or '')}\n"
    nested = _nested(model)
    plain = {name: key for name, key in model.model_json_schema()["properties"].items() if name not in nested}
    if plain:
        yield "| key | default | allowed | meaning |\n|---|---|---|---|"
        for name, key in plain.items():
            default = key["default"]
            if isinstance(default, dict):
                default = {bound: value for bound, value in default.items() if value is not None}
            yield f"| `{name}` | `{json.dumps(default)}` | {_allowed(key)} | {key.get('description', '')} |"
        yield ""
    for name, section in nested.items():
        yield from _section(section, f"{path}.{name}".lstrip("."))


def _nested(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the sections of a section by their keys."""
    kinds = {name: field.annotation for name, field in model.model_fields.items()}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, BaseModel)}


def _allowed(schema: dict[str, Any]) -> str:
    """Describe the values that a JSON schema allows."""
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "$ref" in schema:
        return f"section `{schema['$ref'].rsplit('/', 1)[-1]}`"
    if "anyOf" in schema:
        return " or ".join(map(_allowed, schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_allowed(schema['items'])}"
    bounds = {"exclusiveMinimum": ">", "minimum": ">=", "exclusiveMaximum": "<", "maximum": "<="}
    limits = [f"{sign} {schema[key]:g}" for key, sign in bounds.items() if key in schema]
    pattern = [f"like `{schema['pattern']}`"] if "pattern" in schema else []
    return ", ".join([str(schema.get("type", "any")), *limits, *pattern]).replace("|", "\\|")
