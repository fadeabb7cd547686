"""The files of a project's configuration, read as Snakemake reads them; errors name the file and the line."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from whitewater.application import in_project
from whitewater.config.resolve import Source, resolve
from whitewater.errors import ConfigError


def project_files(root: Path) -> list[Path]:
    """Return the existing files in ``config/``: config.yaml, and one file for each application."""
    files = [root / "config" / f"{name}.yaml" for name in ("config", *in_project(root))]
    return [Path(os.path.relpath(file)) for file in files if file.exists()]


def read_configuration(root: Path, files: Iterable[Path], *, device: str | None = None) -> dict[str, Any]:
    """Return the configuration that Snakemake would merge from the project's files and ``files`` over them."""
    from snakemake.utils import update_config

    sources = [read_source(file) for file in (*project_files(root), *files)]
    if device:
        sources.append(Source("--device", {"device": device}))
    merged: dict[str, Any] = {}
    for source in sources:
        update_config(merged, source.values)
    return resolve(merged, in_project(root), sources=sources)


def read_source(file: Path) -> Source:
    """Read a JSON or YAML file, or raise ConfigError that says where it is invalid and how to correct it."""
    import yaml

    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        text = file.read_text("utf-8")
        values = None
        with suppress(ValueError):  # like Snakemake, try JSON first: unlike YAML it may be indented with tabs
            values = json.loads(text)
        if values is None:
            _check_keys(file, yaml.compose(text, loader))
        values = values or yaml.load(text, loader) or {}  # noqa: S506, both loaders are safe
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}.") from error
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{file}{_locate(error)}. Indent with spaces, close quotes and brackets.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not text in UTF-8: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{file} has no keys. Write them as in config/.")
    return Source(str(file), values)


def _check_keys(file: Path, document: Any) -> None:
    """Raise ConfigError if a mapping in a YAML document has a key twice: the first would be dropped without a word."""
    import yaml

    nodes, seen = [document], set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))  # an anchor may hold itself
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
            continue
        lines: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                raise ConfigError(
                    f"{file}, line {line}: {name!r} is in line {lines[name]} already. Put both under one of them."
                )
            if key.tag == "tag:yaml.org,2002:bool":
                raise ConfigError(f"{file}, line {line}: the key {name} means true or false in YAML. Put it in quotes.")
            lines[name] = line
            nodes.append(value)


def _locate(error: Any) -> str:
    """Say where and why the text is not YAML, and in which line the faulty construct begins."""
    mark, start = error.problem_mark, error.context_mark
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    context = f" ({error.context} that begins in line {start.line + 1})" if start and start.line != mark.line else ""
    return f"{place}: {error.problem}{context}"
