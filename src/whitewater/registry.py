"""The applications and their steps, found without importing what they compute with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from whitewater.config.base import Section

APPLICATIONS = ("taxi", "genomics", "pagerank", "recsys")


def load(location: str) -> Callable[..., Any]:
    """Import the function at ``module:name``."""
    module, name = location.split(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


@dataclass(frozen=True)
class Step:
    """Where the function of a step is, as ``module:name``, and the model of its settings."""

    location: str
    settings: type[Section]

    def load(self) -> Callable[..., None]:
        """Import the function of the step."""
        return load(self.location)


def steps(application: str) -> Mapping[str, Step]:
    """Return the steps of an application by name."""
    found: Mapping[str, Step] = import_module(f"whitewater.{application}.steps").STEPS
    return found


def commands(application: str) -> Mapping[str, str]:
    """Return the commands of an application that are no steps, by name: where the function of each is."""
    found: Mapping[str, str] = getattr(import_module(f"whitewater.{application}.steps"), "COMMANDS", {})
    return found


@dataclass(frozen=True)
class Flag:
    """A flag of a step: its parameter, whether it is written, and whether it takes many paths."""

    name: str
    written: bool
    many: bool


def flags(function: Callable[..., None]) -> list[Flag]:
    """Return the flags of a step, from the types of its parameters as they are spelled."""
    parameters = inspect.signature(function).parameters
    kinds = {name: getattr(each.annotation, "__name__", each.annotation) for name, each in parameters.items()}
    return [
        Flag(name, kind in {"Output", "Outputs"}, kind in {"Inputs", "Outputs"})
        for name, kind in kinds.items()
        if name != "run"
    ]
