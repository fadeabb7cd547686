"""The whole configuration: from the mapping that Snakemake merged to the checked, complete one, or every error."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, ValidationError, create_model, field_validator

from whitewater.application import Application, applications
from whitewater.config.base import Section, describe
from whitewater.engines.config import Cluster, choose
from whitewater.engines.gpu_check import missing_gpu
from whitewater.errors import ConfigError

FOLDER = r"^[A-Za-z0-9_-]*$"


class Run(Section):
    """A named run keeps its results, data and logs separate from those of other runs."""

    name: str = Field(
        "",
        description="Folder below results/, data/ and logs/; empty: none. Downloads are shared by all runs.",
        json_schema_extra={"pattern": FOLDER},
    )

    @field_validator("name")
    @classmethod
    def _is_a_folder(cls, name: str) -> str:
        if not re.fullmatch(FOLDER, name):
            raise ValueError("use letters, digits, _ and - only: it becomes the name of a folder")
        return name


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


def resolve(raw: Mapping[str, Any], names: Sequence[str], *, sources: Sequence[Source] = ()) -> dict[str, Any]:
    """Return the whole configuration: defaults filled in, strings of ``--config`` coerced, ``auto`` decided.

    ``raw`` is as Snakemake merged it; ``names`` are the applications, each with a section; ``sources``, weakest first,
    say which file an error is in.

    Raises ConfigError, which names every wrong key and value, each with its source and, where one is near, the key that
    was meant; or the engine, where it does not run on the device.
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
    """Return the strongest of the sources that set the key, or else the most of its parents."""
    best = max(reversed(sources), key=lambda source: _depth(source.values, location), default=None)
    return best.name if best and _depth(best.values, location) else "configuration"


def _depth(values: Any, location: Sequence[int | str]) -> int:
    """Return how many of the first keys are set; where they lead to an entry of a list, which is set whole, all are."""
    for depth, key in enumerate(location):
        if not (isinstance(values, Mapping) and key in values):
            is_entry = isinstance(values, list) and isinstance(key, int) and key < len(values)
            return len(location) if is_entry else depth
        values = values[key]
    return len(location)
