"""From the merged mapping that Snakemake holds to the validated, complete configuration, or every error at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from whitewater.application import applications
from whitewater.config.base import describe
from whitewater.config.root import whole
from whitewater.engines.config import choose
from whitewater.engines.gpu_check import missing_gpu
from whitewater.errors import ConfigError


@dataclass(frozen=True)
class Source:
    """A place that configuration came from, for error messages: a file or the command line."""

    name: str
    values: Mapping[str, Any]


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
            if _holds(source.values, location[:length]):
                return source.name
    return "configuration"


def _holds(values: Any, location: Sequence[int | str]) -> bool:
    for key in location:
        if not (isinstance(values, Mapping) and key in values):
            # An entry of a list: the list itself is what the source sets.
            return isinstance(values, list) and isinstance(key, int) and key < len(values)
        values = values[key]
    return True
