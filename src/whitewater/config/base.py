"""What every section of the configuration has in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from whitewater.config.faults import describe
from whitewater.errors import ConfigError


class Section(BaseModel):
    """A frozen section that refuses unknown keys, and merges a mapping that is given for a key with its default.

    A number that is infinite or NaN is refused: as a bound it lets everything pass, or nothing.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def __init__(self, /, **values: Any) -> None:
        """Make a section in Python.

        Raises
        ------
        ConfigError
            Naming every wrong key and value.
        """
        try:
            super().__init__(**values)
        except ValidationError as error:
            lines = [f"{type(self).__name__}: {describe(fault, type(self))}" for fault in error.errors()]
            raise ConfigError("\n".join(lines)) from None

    # Tells pydantic to check nested sections itself, not by calling `__init__`, so that all errors come together.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def over_default(cls, given: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
        """Return a mapping for this section, merged with the default of the key that it is given for."""
        return {**default, **given}

    @model_validator(mode="before")
    @classmethod
    def _merge_with_defaults(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        return {key: cls._merged(key, value) for key, value in given.items()}

    @classmethod
    def _merged(cls, key: str, value: Any) -> Any:
        """Return a value; what a mapping leaves out is as in the default of the key, if that is a mapping, too."""
        default = cls.model_fields[key].default if key in cls.model_fields else None
        if not isinstance(value, Mapping):
            return value
        if isinstance(default, Section):
            return default.over_default(value, default.model_dump(exclude_defaults=True))
        return {**default, **value} if isinstance(default, Mapping) else value
