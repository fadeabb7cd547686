"""The base class of the sections of the configuration, and readable messages for their validation errors."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from whitewater.errors import ConfigError, did_you_mean


class Section(BaseModel):
    """A frozen section. It merges a mapping with the default of its key, and rejects unknown keys, infinity and NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    def __init__(self, /, **values: Any) -> None:
        """Create a section in Python, or raise ConfigError, which names every wrong key and value."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise self._error(error, type(self).__name__) from None

    # Pydantic then validates nested sections itself, without calling `__init__`, and collects all errors.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def from_option(cls, text: str, *, option: str) -> Self:
        """Parse a section from JSON on the command line, or raise ConfigError as `__init__` does."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise cls._error(error, option) from None

    @classmethod
    def _error(cls, error: ValidationError, where: str) -> ConfigError:
        return ConfigError("\n".join(f"{where}: {describe(fault, cls)}" for fault in faults(error)))

    @classmethod
    def over_default(cls, given: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
        """Merge a mapping for this section with the default of its key."""
        return {**default, **given}

    @model_validator(mode="before")
    @classmethod
    def _merge_with_defaults(cls, given: Any) -> Any:
        """Complete nested mappings from the defaults of their keys."""
        if not isinstance(given, Mapping):
            return given
        merged = dict(given)
        for key, value in given.items():
            default = cls.model_fields[key].default if key in cls.model_fields else None
            if isinstance(value, Mapping) and isinstance(default, Section):
                merged[key] = default.over_default(value, default.model_dump(exclude_defaults=True))
            elif isinstance(value, Mapping) and isinstance(default, Mapping):
                merged[key] = {**default, **value}
        return merged


class Sourced(Section):
    """A section with a key ``source``; `needed` lists the keys that must be set for each source."""

    needed: ClassVar[Mapping[str, tuple[str, ...]]]

    @model_validator(mode="after")
    def _source_is_named(self) -> Self:
        source: str = getattr(self, "source")  # noqa: B009, each section declares its own choices
        for key in self.needed.get(source, ()):
            if not attrgetter(key)(self):
                raise ValueError(f"source is '{source}', but {key} is empty: say where it is")
        return self


def faults(error: ValidationError) -> list[ErrorDetails]:
    """Return the faults of a section, but for lists that are too short only without their invalid items."""
    found = error.errors()
    return [each for each in found if each["type"] != "too_short" or len(each["input"]) < each["ctx"]["min_length"]]


def describe(fault: ErrorDetails, model: type[BaseModel]) -> str:
    """Describe a validation error of a section, with the path of its key from that section."""
    keys = [str(key) for key in fault["loc"]]
    path = ".".join(keys)
    if fault["type"] == "extra_forbidden":
        siblings = _fields(keys[:-1], model)
        hint = did_you_mean(keys[-1], siblings) or (f"; the keys here are {', '.join(siblings)}" if siblings else "")
        return f"{path} = {fault['input']!r}: no such key{hint}"
    if fault["type"] == "model_type":
        return f"{path} = {fault['input']!r}: it is a section, with the keys {', '.join(_fields(keys, model))}"
    # YAML has lists, not tuples.
    message = fault["msg"].removeprefix("Value error, ").replace("tuple", "list").replace("Tuple", "List")
    value = "" if fault["type"] == "missing" or isinstance(fault["input"], dict) else f" = {fault['input']!r}"
    text = f"{message[0].lower()}{message[1:]}"
    if fault["type"] == "literal_error":
        choices = fault["ctx"]["expected"].replace(" or ", ",").split(",")
        text += did_you_mean(str(fault["input"]), (choice.strip("' ") for choice in choices))
    return f"{path}{value}: {text}" if path else text


def _fields(keys: Sequence[str], section: type[BaseModel]) -> list[str]:
    """Return the keys of the section at this path."""
    for key in keys:
        if key.isdecimal():  # an index into a list; the key before has selected the section
            continue
        kind = section.model_fields[key].annotation if key in section.model_fields else None
        types = (kind, *get_args(kind))
        nested = [model for model in types if isinstance(model, type) and issubclass(model, BaseModel)]
        if not nested:
            return []
        section = nested[0]
    return list(section.model_fields)
