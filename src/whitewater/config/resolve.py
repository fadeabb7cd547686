"""From the merged mapping that Snakemake holds to the validated, complete configuration, or every error at once."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from whitewater.config.gpu import missing_gpu
from whitewater.config.root import Config
from whitewater.errors import ConfigError


@dataclass(frozen=True)
class Source:
    """A place that configuration came from, for error messages: a file or the command line."""

    name: str
    values: Mapping[str, Any]


def resolve(raw: Mapping[str, Any], *, sources: Sequence[Source] = ()) -> dict[str, Any]:
    """Return the whole configuration: defaults filled in, strings of ``--config`` coerced, ``auto`` decided.

    Parameters
    ----------
    raw
        The configuration as merged by Snakemake.
    sources
        Where it came from, weakest first; used to say which file an error is in.

    Raises
    ------
    ConfigError
        Naming every wrong key and value, each with its source and, where one is near, the key that was meant.
    """
    try:
        config = Config.model_validate(dict(raw))
    except ValidationError as error:
        lines = [_describe(fault, sources) for fault in error.errors()]
        raise ConfigError("\n".join(dict.fromkeys(lines))) from None
    resolved = config.model_dump(mode="json")
    if resolved["device"] == "auto":
        resolved["device"] = "cpu" if missing_gpu() else "gpu"
    return resolved


def _describe(fault: ErrorDetails, sources: Sequence[Source]) -> str:
    keys = [str(key) for key in fault["loc"]]
    path = ".".join(keys)
    where = _origin(fault["loc"], sources)
    if fault["type"] == "extra_forbidden":
        return f"{where}: {path} = {fault['input']!r}: no such key{_hint(keys)}"
    # A tuple is what Python has; who writes YAML knows lists.
    message = fault["msg"].removeprefix("Value error, ").replace("tuple", "list")
    shown = "" if fault["type"] == "missing" or isinstance(fault["input"], dict) else f" = {fault['input']!r}"
    return f"{where}: {path}{shown}: {message[0].lower()}{message[1:]}{_nearest_value(fault)}"


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


def _hint(keys: Sequence[str]) -> str:
    siblings = _fields(keys[:-1])
    near = difflib.get_close_matches(keys[-1], siblings, 1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; the keys here are {', '.join(siblings)}" if siblings else ""


def _nearest_value(fault: ErrorDetails) -> str:
    """Offer the nearest of the allowed values of a choice."""
    allowed = str(fault.get("ctx", {}).get("expected", ""))
    choices = [choice.strip("' ") for choice in allowed.replace(" or ", ",").split(",")]
    near = difflib.get_close_matches(str(fault["input"]), choices, 1)
    return f"; did you mean {near[0]!r}?" if fault["type"] == "literal_error" and near else ""


def _fields(keys: Sequence[str]) -> list[str]:
    """Return the keys that the section at this path has."""
    section: type[BaseModel] = Config
    for key in keys:
        if key.isdecimal():  # an entry of a list, whose section its key gave
            continue
        field = section.model_fields.get(key)
        nested = _section_of(field.annotation) if field else None
        if nested is None:
            return []
        section = nested
    return list(section.model_fields)


def _section_of(annotation: Any) -> type[BaseModel] | None:
    candidates = (annotation, *getattr(annotation, "__args__", ()))
    return next((each for each in candidates if isinstance(each, type) and issubclass(each, BaseModel)), None)
