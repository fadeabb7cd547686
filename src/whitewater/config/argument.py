"""A section of the configuration that is given as JSON on the command line."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from whitewater.config.faults import describe
from whitewater.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)


def read(model: type[Model], text: str, *, option: str) -> Model:
    """Return the value that the text of an option holds.

    Raises
    ------
    ConfigError
        Naming every wrong key and value.
    """
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{option}: {describe(fault, model)}" for fault in error.errors())) from None
