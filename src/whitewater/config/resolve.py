"""The whole configuration: validate and complete the mapping that Snakemake merged, or report every error."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, ValidationError, create_model, field_validator

from whitewater.application import Application, applications
from whitewater.config.base import Section, describe, faults
from whitewater.engines.config import Cluster, choose_engine
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
    """Settings that all applications share."""

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
        description="Download the sources again; use it with `--forcerun` and the name of the rule.",
    )
    cluster: Cluster = Cluster()


def whole(applications: Iterable[Application]) -> type[Common]:
    """Return the model of the whole configuration of a project with these applications."""
    sections: dict[str, Any] = {
        application.name: (application.settings, application.settings()) for application in applications
    }
    return create_model("Config", __base__=Common, __doc__="Whitewater's configuration.", **sections)


@dataclass(frozen=True)
class Source:
    """Where part of the configuration comes from, for error messages: a file or the command line."""

    name: str
    values: Mapping[str, Any]


def resolve(raw: Mapping[str, Any], names: Sequence[str], *, sources: Sequence[Source] = ()) -> dict[str, Any]:
    """Validate the configuration, fill in defaults, convert strings of ``--config``, and replace ``auto``.

    ``raw`` is as Snakemake merged it; ``names`` are the applications, each with a section; ``sources``, weakest first,
    are where errors are looked up. Raises ConfigError, which names every wrong key and value with its source and, for
    an unknown key, the closest known one; or the engine, if it does not run on the device.
    """
    model = whole(applications(names).values())
    try:
        config = model.model_validate(dict(raw))
    except ValidationError as error:
        lines = [f"{_origin(fault['loc'], sources)}: {describe(fault, model)}" for fault in faults(error)]
        raise ConfigError("\n".join(dict.fromkeys(lines))) from None
    resolved = config.model_dump(mode="json")
    if (name := resolved["run"]["name"]) in names:
        origin = _origin(("run", "name"), sources)
        raise ConfigError(f"{origin}: run.name = {name!r}: an application has that name; choose another")
    if resolved["device"] == "auto":
        resolved["device"] = "cpu" if missing_gpu() else "gpu"
    try:
        choose_engine(resolved, resolved["device"])
    except ConfigError as error:
        key = ("engine",) if str(error).startswith("engine") else ("cluster", "kind")
        raise ConfigError(f"{_origin(key, sources)}: {error}") from None
    return resolved


def _origin(location: Sequence[int | str], sources: Sequence[Source]) -> str:
    """Return the strongest source that sets the key or, if none does, most of its parent keys."""
    best = max(reversed(sources), key=lambda source: _depth(source.values, location), default=None)
    return best.name if best and _depth(best.values, location) else "configuration"


def _depth(values: Any, location: Sequence[int | str]) -> int:
    """Return how many of the leading keys are set; an entry of a list counts as set with all its keys."""
    for depth, key in enumerate(location):
        if not (isinstance(values, Mapping) and key in values):
            is_entry = isinstance(values, list) and isinstance(key, int) and key < len(values)
            return len(location) if is_entry else depth
        values = values[key]
    return len(location)
