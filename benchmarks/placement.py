"""Where a program of ours computes: its device and its workers, as options of its command.

Only the standard library is imported here, and Whitewater not before a run is made, so that it costs no peer anything.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from whitewater.config.base import Section
    from whitewater.engines import Device
    from whitewater.step import Run

    Settings = TypeVar("Settings", bound=Section)


@dataclass(frozen=True)
class Placement:
    """A device, and the section ``cluster`` of the configuration as JSON."""

    device: str = "cpu"
    cluster: str = "{}"

    @property
    def options(self) -> list[str]:
        """The options that `add_options` adds and `placement_of` reads; none where both are the defaults."""
        given = {"--device": (self.device, "cpu"), "--cluster": (self.cluster, "{}")}
        return [text for name, (value, default) in given.items() if value != default for text in (name, value)]

    def resolve(self) -> Device:
        """Return the device."""
        from whitewater.engines import resolve

        return resolve(self.device)

    def run(self, application: str, step: str, settings: Settings, *, threads: int) -> Run[Settings]:
        """Return a run of a step there, which writes no record."""
        from whitewater.engines.config import Cluster, choose_engine
        from whitewater.step import Run

        cluster = Cluster.model_validate_json(self.cluster)
        engine = choose_engine({"engine": "auto", "cluster": cluster.model_dump()}, self.device)
        return Run(application, step, self.resolve(), settings, threads, cluster, engine=engine)


ON_CPU = Placement()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--device`` and ``--cluster`` to the options of a program."""
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where it computes (cpu)")
    parser.add_argument("--cluster", default="{}", help="JSON: the section `cluster` of the configuration")


def placement_of(arguments: Any) -> Placement:
    """Return what the options said; the default for a program without them."""
    return Placement(getattr(arguments, "device", ON_CPU.device), getattr(arguments, "cluster", ON_CPU.cluster))
