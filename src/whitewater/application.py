"""Applications: each is declared once, in its package, and found by the entry-point group ``whitewater.applications``.

A project names its applications by the folders in ``workflows/``; the entry points say where the package of each is::

    [project.entry-points."whitewater.applications"]
    taxi = "whitewater_apps.taxi.application:TAXI"
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from whitewater.config.base import Section
from whitewater.errors import ConfigError

GROUP = "whitewater.applications"


@dataclass(frozen=True)
class Operation:
    """A step that computes on the device: the libraries and kernels that its bodies are made of."""

    cpu: str  # of engine `local`
    gpu: str  # of GPUs, in the step's process or on a cluster
    dask: str = ""  # of engine `dask` on the CPU; empty: the same as that of `local`


@dataclass(frozen=True)
class Application:
    """What the library needs to know of an application. A function is given by its place, ``module:name``."""

    name: str  # also that of its section of the configuration and of its folder in ``workflows/``
    settings: type[Section]  # the model of that section
    package: str  # step ``clean`` is the function ``clean`` of the module ``<package>.steps.clean``
    steps: tuple[str, ...] = ()  # in the order in which they run
    # Of the steps those that compute on the device, with what does: exactly these rules have ``engine`` in `params`.
    operations: Mapping[str, Operation] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)  # by name the functions that are not steps
    headline: str = ""  # the function that says in sentences what a folder of results shows, if there is one
    # The function that tries the sources which the section names. It takes the section and
    # `whitewater.io.download.Downloads`, reads no more than it must and writes nothing. It says what is there, or
    # nothing where data are simulated, and raises a `WhitewaterError` as the step would that reads them.
    check: str = ""
    apart: bool = False  # left out of the rule ``all``: it runs by its name alone, ``snakemake benchmarks``


def load(location: str) -> Callable[..., Any]:
    """Import the function at ``module:name``."""
    module, name = location.split(":")
    return getattr(import_module(module), name)


def in_project(folder: Path = Path()) -> tuple[str, ...]:
    """Return the names of the applications of a project, sorted: those of the folders in ``workflows/``."""
    return tuple(sorted(path.parent.name for path in folder.glob("workflows/*/Snakefile")))


@cache
def declared(folder: Path) -> dict[str, EntryPoint]:
    """Return where the applications are that installed packages and the project in a folder declare, by name, sorted.

    It takes reading the metadata of all that is installed. Of a checkout and of the project what their pyproject.toml
    says now counts, not what it said when they were installed; what the project says counts before all.
    """
    places = list(entry_points(group=GROUP))
    for place in dict.fromkeys((Path(__file__).resolve().parents[2], folder)):
        file = place / "pyproject.toml"
        try:
            own = tomllib.loads(file.read_text("utf-8"))["project"]["entry-points"][GROUP]
            places += [EntryPoint(name, str.strip(value), GROUP) for name, value in own.items()]
        except (FileNotFoundError, KeyError):
            continue  # there is none, or not of applications
        except (AttributeError, OSError, TypeError, ValueError) as error:
            raise ConfigError(f"{file} is not TOML, or its entry points are not tables of text: {error}.") from error
    return dict(sorted({entry.name: entry for entry in places}.items()))


def applications(names: Sequence[str]) -> dict[str, Application]:
    """Return applications by their names, or raise ConfigError if one is not declared or cannot be imported."""
    places = declared(Path.cwd()) if names else {}
    known: dict[str, Application] = {}
    for name in names:
        if name not in places:
            raise ConfigError(
                f"no installed package declares the application {name!r}; declared: {', '.join(places)}. Add "
                f'`{name} = "<package>.application:{name.upper()}"` to [project.entry-points."{GROUP}"] in '
                "pyproject.toml, and install the project again."
            )
        try:
            known[name] = places[name].load()
        except ImportError as error:
            raise ConfigError(
                f"the application {name!r} is declared as {places[name].value}, which cannot be imported: {error}. "
                "Install the project and what it needs, or remove its folder from workflows/."
            ) from error
    return known
