"""Applications: each is declared once, in its package, under the entry-point group ``whitewater.applications``.

A project has one folder in ``workflows/`` for each application; the entry point names its declaration::

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
    """The libraries and kernels that a step computes with, for the table in docs/engines.md."""

    cpu: str  # engine `local`
    gpu: str  # on GPUs, in the step's process or on a cluster
    dask: str = ""  # engine `dask` on the CPU; empty: the same as `local`


@dataclass(frozen=True)
class Application:
    """What the library knows about an application. Functions are given as ``module:name``."""

    name: str  # also the name of its section of the configuration and of its folder in ``workflows/``
    settings: type[Section]  # the model of that section
    package: str  # step ``clean`` is the function ``clean`` of the module ``<package>.steps.clean``
    steps: tuple[str, ...] = ()  # in the order in which they run
    # The steps that compute on the device. Exactly the rules of these have ``engine`` in `params`.
    operations: Mapping[str, Operation] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)  # functions that are not steps, by name
    headline: str = ""  # the function that summarizes a folder of results in sentences, if any
    # The function that checks the data sources named in the section. It takes the section and
    # `whitewater.io.download.Downloads`, reads as little as possible and writes nothing. It describes the sources, or
    # returns "" for simulated data, and raises the `WhitewaterError` that the reading step would raise.
    check: str = ""
    apart: bool = False  # not part of the rule ``all``: it runs only by name, ``snakemake benchmarks``


def load(location: str) -> Callable[..., Any]:
    """Import the function at ``module:name``."""
    module, name = location.split(":")
    return getattr(import_module(module), name)


def in_project(folder: Path = Path()) -> tuple[str, ...]:
    """Return the sorted names of a project's applications: the folders in ``workflows/``."""
    return tuple(sorted(path.parent.name for path in folder.glob("workflows/*/Snakefile")))


@cache
def find_entry_points(folder: Path) -> dict[str, EntryPoint]:
    """Return the entry points of applications by sorted name, from installed packages and the project in ``folder``."""
    places = list(entry_points(group=GROUP))
    # The pyproject.toml of the checkout, then that of the project, override metadata, which may be out of date.
    for root in dict.fromkeys((Path(__file__).resolve().parents[2], folder)):
        file = root / "pyproject.toml"
        try:
            table = tomllib.loads(file.read_text("utf-8"))["project"]["entry-points"][GROUP]
            places += [EntryPoint(name, str.strip(value), GROUP) for name, value in table.items()]
        except (FileNotFoundError, KeyError):
            continue  # no file, or no entry points of applications in it
        except (AttributeError, OSError, TypeError, ValueError) as error:
            raise ConfigError(f"{file} is not TOML, or its entry points are not tables of text: {error}.") from error
    return dict(sorted({entry.name: entry for entry in places}.items()))


def applications(names: Sequence[str]) -> dict[str, Application]:
    """Load applications by name, or raise ConfigError if one is not declared or cannot be imported."""
    places = find_entry_points(Path.cwd()) if names else {}
    loaded: dict[str, Application] = {}
    for name in names:
        if name not in places:
            raise ConfigError(
                f"no installed package declares the application {name!r}; declared: {', '.join(places)}. Add "
                f'`{name} = "<package>.application:{name.upper()}"` to [project.entry-points."{GROUP}"] in '
                "pyproject.toml, and install the project again."
            )
        try:
            loaded[name] = places[name].load()
        except ImportError as error:
            raise ConfigError(
                f"the application {name!r} is declared as {places[name].value}, which cannot be imported: {error}. "
                "Install the project and what it needs, or remove its folder from workflows/."
            ) from error
    return loaded
