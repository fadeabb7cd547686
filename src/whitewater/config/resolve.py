"""The whole configuration: its files as Snakemake reads and merges them; checked and complete, or every error.

A section for each application comes to what all have in common.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, create_model

from whitewater.application import Application, applications, in_project
from whitewater.config.base import Section, describe
from whitewater.engines.config import Cluster, choose
from whitewater.engines.gpu_check import missing_gpu
from whitewater.errors import ConfigError


class Run(Section):
    """A named run keeps its results, data and logs separate from those of other runs."""

    name: str = Field(
        "",
        description="Folder below results/, data/ and logs/; empty: none. Downloads are shared by all runs.",
        pattern=r"^[A-Za-z0-9_-]*$",
    )


class Common(Section):
    """What all applications have in common."""

    device: Literal["cpu", "gpu", "auto"] = Field(
        "cpu", description="Where steps compute; auto uses a GPU if there is one, and says which device it chose."
    )
    engine: Literal["auto", "dask", "local"] = Field(
        "auto",
        description="What runs the tasks of a step. dask: Dask's workers; local: threads of the step's process, on the "
        "CPU only; auto: dask on GPUs or where cluster names a scheduler, else local. See docs/engines.md.",
    )
    run: Run = Run()
    refresh: bool = Field(
        False,
        description="Download again what was downloaded before; use it with `--forcerun` and the name of the rule.",
    )
    cluster: Cluster = Cluster()


def whole(applications: Iterable[Application]) -> type[Common]:
    """Return the model of the whole configuration of a project with these applications."""
    sections: dict[str, Any] = {each.name: (each.settings, each.settings()) for each in applications}
    return create_model("Config", __base__=Common, __doc__="Whitewater's configuration.", **sections)


@dataclass(frozen=True)
class Source:
    """A place that configuration came from, for error messages: a file or the command line."""

    name: str
    values: Mapping[str, Any]


def project_files(root: Path) -> list[Path]:
    """Return the files that a project has in ``config/``: that of all applications, and one for each."""
    files = [root / "config" / f"{name}.yaml" for name in ("config", *in_project(root))]
    return [Path(os.path.relpath(file)) for file in files if file.exists()]


def read_source(file: Path) -> Source:
    """Read a file of JSON or YAML, or raise ConfigError: where it is neither, and how to correct it."""
    import yaml

    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        text = file.read_text("utf-8")
        values = None
        with suppress(ValueError):  # as which Snakemake reads a file first: JSON may be indented with tabs
            values = json.loads(text)
        values = values or yaml.load(text, loader) or {}  # noqa: S506, both loaders are safe
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}.") from error
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{file}{_place(error)}. Indent with blanks, close quotes and brackets.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not text in UTF-8: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{file} has no keys. Write them as in config/.")
    return Source(str(file), values)


def _place(error: Any) -> str:
    """Say where the text stops being YAML, why, and in which line that began which is not understood."""
    mark, began = error.problem_mark, error.context_mark
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    since = f" ({error.context} that begins in line {began.line + 1})" if began and began.line != mark.line else ""
    return f"{place}: {error.problem}{since}"


def read_configuration(root: Path, files: Iterable[Path], *, device: str | None = None) -> dict[str, Any]:
    """Return the configuration that Snakemake would merge from the project's files and ``files`` over them.

    Raises ConfigError as `read_source` and `resolve` do.
    """
    from snakemake.utils import update_config

    sources = [read_source(file) for file in (*project_files(root), *files)]
    if device:
        sources.append(Source("--device", {"device": device}))
    merged: dict[str, Any] = {}
    for source in sources:
        update_config(merged, source.values)
    return resolve(merged, in_project(root), sources=sources)


def resolve(raw: Mapping[str, Any], names: Sequence[str], *, sources: Sequence[Source] = ()) -> dict[str, Any]:
    """Return the whole configuration: defaults filled in, strings of ``--config`` coerced, ``auto`` decided.

    ``raw`` is as Snakemake merged it; ``names`` are the applications, each with a section; ``sources``, weakest first,
    say which file an error is in.

    Raises
    ------
    ConfigError
        Naming every wrong key and value, each with its source and, where one is near, the key that was meant; or the
        engine, where it does not run on the device.
    """
    model = whole(applications(names).values())
    try:
        config = model.model_validate(dict(raw))
    except ValidationError as error:
        lines = [f"{_origin(fault['loc'], sources)}: {describe(fault, model)}" for fault in error.errors()]
        raise ConfigError("\n".join(dict.fromkeys(lines))) from None
    resolved = config.model_dump(mode="json")
    if (name := resolved["run"]["name"]) in names:
        origin = _origin(("run", "name"), sources)
        raise ConfigError(f"{origin}: run.name = {name!r}: an application has that name; choose another")
    if resolved["device"] == "auto":
        resolved["device"] = "cpu" if missing_gpu() else "gpu"
    try:
        choose(resolved, resolved["device"])
    except ConfigError as error:
        key = ("engine",) if str(error).startswith("engine") else ("cluster", "kind")
        raise ConfigError(f"{_origin(key, sources)}: {error}") from None
    return resolved


def _origin(location: Sequence[int | str], sources: Sequence[Source]) -> str:
    """Return the strongest source that sets the key, or its longest known parent."""
    for length in range(len(location), 0, -1):
        for source in reversed(sources):
            with suppress(KeyError, IndexError, TypeError):
                reduce(getitem, location[:length], source.values)  # type: ignore[arg-type]
                return source.name
    return "configuration"
