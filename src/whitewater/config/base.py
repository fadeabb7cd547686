"""What every section of the configuration has in common, and what is wrong with one, in words."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from whitewater.errors import ConfigError, did_you_mean


class Section(BaseModel):
    """A frozen section that refuses unknown keys, and merges a mapping that is given for a key with its default.

    A number that is infinite or NaN is refused: as a bound it lets everything pass, or nothing.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    def __init__(self, /, **values: Any) -> None:
        """Make a section in Python, or raise ConfigError, which names every wrong key and value."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise self._error(error, type(self).__name__) from None

    # Tells pydantic to check nested sections itself, not by calling `__init__`, so that all errors come together.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def from_option(cls, text: str, *, option: str) -> Self:
        """Return the section that is given as JSON on the command line, or raise ConfigError as `__init__` does."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise cls._error(error, option) from None

    @classmethod
    def _error(cls, error: ValidationError, where: str) -> ConfigError:
        return ConfigError("\n".join(f"{where}: {describe(fault, cls)}" for fault in error.errors()))

    @classmethod
    def over_default(cls, given: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
        """Return a mapping for this section, merged with the default of the key that it is given for."""
        return {**default, **given}

    @model_validator(mode="before")
    @classmethod
    def _merge_with_defaults(cls, given: Any) -> Any:
        """Fill in what a mapping leaves out from the default of its key, if that is a mapping, too."""
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
    """A section with a key ``source``, whose own sections must say where the source is: `needed` keys by source."""

    needed: ClassVar[Mapping[str, tuple[str, ...]]]

    @model_validator(mode="after")
    def _source_is_named(self) -> Self:
        source: str = getattr(self, "source")  # noqa: B009, which the sections have as choices of their own
        for key in self.needed.get(source, ()):
            if not attrgetter(key)(self):
                raise ValueError(f"source is '{source}', but {key} is empty: say where it is")
        return self


def describe(fault: ErrorDetails, model: type[BaseModel]) -> str:
    """Describe one of the errors of a section, with the path of its key from that section."""
    keys = [str(key) for key in fault["loc"]]
    path = ".".join(keys)
    if fault["type"] == "extra_forbidden":
        siblings = _fields(keys[:-1], model)
        hint = did_you_mean(keys[-1], siblings) or (f"; the keys here are {', '.join(siblings)}" if siblings else "")
        return f"{path} = {fault['input']!r}: no such key{hint}"
    if fault["type"] == "model_type":
        return f"{path} = {fault['input']!r}: it is a section, with the keys {', '.join(_fields(keys, model))}"
    # A tuple is what Python has; who writes YAML knows lists.
    message = fault["msg"].removeprefix("Value error, ").replace("tuple", "list").replace("Tuple", "List")
    shown = "" if fault["type"] == "missing" or isinstance(fault["input"], dict) else f" = {fault['input']!r}"
    text = f"{message[0].lower()}{message[1:]}"
    if fault["type"] == "literal_error":
        choices = fault["ctx"]["expected"].replace(" or ", ",").split(",")
        text += did_you_mean(str(fault["input"]), (choice.strip("' ") for choice in choices))
    return f"{path}{shown}: {text}" if path else text


def _fields(keys: Sequence[str], section: type[BaseModel]) -> list[str]:
    """Return the keys that the section at this path has."""
    for key in keys:
        if key.isdecimal():  # an entry of a list, whose section its key gave
            continue
        kind = section.model_fields[key].annotation if key in section.model_fields else None
        nested = [each for each in (kind, *get_args(kind)) if isinstance(each, type) and issubclass(each, BaseModel)]
        if not nested:
            return []
        section = nested[0]
    return list(section.model_fields)
