"""The applications and their steps, found without importing what they compute with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import get_type_hints

from whitewater.config.base import Section

APPLICATIONS = ("taxi",)


@dataclass(frozen=True)
class Step:
    """Where the function of a step is, as ``module:name``, and the model of its settings."""

    location: str
    settings: type[Section]

    def load(self) -> Callable[..., None]:
        """Import the function of the step."""
        module, name = self.location.split(":")
        function: Callable[..., None] = getattr(import_module(module), name)
        return function


def steps(application: str) -> Mapping[str, Step]:
    """Return the steps of an application by name."""
    found: Mapping[str, Step] = import_module(f"whitewater.{application}.steps").STEPS
    return found


@dataclass(frozen=True)
class Flag:
    """A flag of a step: its parameter, whether it is written, and whether it takes many paths."""

    name: str
    written: bool
    many: bool


def flags(function: Callable[..., None]) -> list[Flag]:
    """Return the flags of a step, from the types of its parameters."""
    from whitewater.step import Inputs, Output, Outputs

    hints = get_type_hints(function)
    named = [name for name in inspect.signature(function).parameters if name != "run"]
    return [Flag(name, hints[name] in (Output, Outputs), hints[name] in (Inputs, Outputs)) for name in named]
