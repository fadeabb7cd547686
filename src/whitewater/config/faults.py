"""What is wrong with a section, in words: the key, its value, why, and what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails


def describe(fault: ErrorDetails, model: type[BaseModel]) -> str:
    """Describe one of the errors of a section, with the path of its key from that section."""
    keys = [str(key) for key in fault["loc"]]
    path = ".".join(keys)
    if fault["type"] == "extra_forbidden":
        return f"{path} = {fault['input']!r}: no such key{_hint(keys, model)}"
    # A tuple is what Python has; who writes YAML knows lists.
    message = fault["msg"].removeprefix("Value error, ").replace("tuple", "list").replace("Tuple", "List")
    shown = "" if fault["type"] == "missing" or isinstance(fault["input"], dict) else f" = {fault['input']!r}"
    said = f"{message[0].lower()}{message[1:]}{_nearest_value(fault)}"
    return f"{path}{shown}: {said}" if path else said


def _hint(keys: Sequence[str], model: type[BaseModel]) -> str:
    siblings = _fields(keys[:-1], model)
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


def _fields(keys: Sequence[str], section: type[BaseModel]) -> list[str]:
    """Return the keys that the section at this path has."""
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
