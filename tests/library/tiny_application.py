"""An application of the tests' own, for what the library does with any application."""

from pathlib import Path

from pydantic import Field

from whitewater.application import Application
from whitewater.config.base import Section


class Clean(Section):
    """What is kept."""

    largest: int = Field(9, ge=0, description="Largest number to keep.")


class Tiny(Section):
    """Numbers."""

    clean: Clean = Clean()


def headline(results: Path) -> list[str]:
    """Say how many results there are."""
    return [f"{len(list(results.iterdir()))} files or folders."]


TINY = Application(
    "tiny",
    settings=Tiny,
    package="tests.library.tiny_application",
    steps=("fetch", "clean", "tips", "model", "plot", "manifest"),
    headline="tests.library.tiny_application:headline",
)
