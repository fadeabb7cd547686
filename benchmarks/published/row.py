"""What a row of the published table is made of: cases, each with its variants, and the figures that were published.

A variant of a `CallCase` is a context manager that is given its `Work`. It imports and makes what it needs, none of
which is measured, and yields a `Timed`: the call that is measured, and how the answer is read from what it returns::

    @contextmanager
    def numpy_mean(work: Work) -> Iterator[Timed]:
        values = draw(work)
        yield Timed(values.mean, answer=float)

A `ProcessCase` is measured as whole processes instead, as the benchmarks of the applications are.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from benchmarks import measure
from benchmarks.report import Size
from whitewater.engines import Device
from whitewater.engines.config import Cluster

DATA = Path("data/benchmarks/published")
DeviceName = Literal["cpu", "gpu"]
BOTH: tuple[DeviceName, ...] = ("cpu", "gpu")
CPU: tuple[DeviceName, ...] = ("cpu",)
GPU: tuple[DeviceName, ...] = ("gpu",)
# Threads of its own, of which each calls BLAS: BLAS must not start others besides them.
ONE_BLAS_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
SEED = 2019


@dataclass(frozen=True)
class Work:
    """What a variant is given.

    ``scale`` is the size as a fraction of the published one, and ``folder`` the place of the files of this row, which
    `Case.prepare` has made. ``options`` are the settings of the row that only it has.
    """

    device: Device
    threads: int
    scale: float
    folder: Path
    cluster: Cluster = field(default_factory=Cluster)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Timed:
    """The call that is measured, and how its answer, JSON, is read from what it returns, which is not measured.

    ``phases`` are read after the answer: more figures of the last call by name, seconds or other numbers.
    """

    call: Callable[[], Any]
    answer: Callable[[Any], JsonValue] = lambda result: result
    phases: Callable[[], dict[str, float]] = dict


@dataclass(frozen=True)
class Variant:
    """One way to compute what a case defines.

    ``name`` is ``as_published`` for the code as its source shows it, ``whitewater`` where it runs code of a
    step, ``tuned`` for what was written for the table alone, or the name of the peer; one name may stand for a variant
    on each device.
    ``packages`` are the modules that must be installed, or else the variant is reported as missing. ``memory`` and
    ``disk`` are what it takes at most, its own copy of the input included, for each byte of the input of its case; 0
    where that is little or does not grow with it. See `room`.
    """

    name: str
    prepare: Callable[[Work], AbstractContextManager[Timed]]
    devices: tuple[DeviceName, ...] = CPU
    packages: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    memory: float = 0.0
    disk: float = 0.0


@dataclass(frozen=True)
class Published:
    """A figure of the sources: on what, and how many seconds."""

    on: str
    seconds: float


@dataclass(frozen=True)
class CallCase:
    """One computation of a row, of which single calls are measured.

    The first variant is the one that the others are compared with; ``oracle`` names the one whose answer is right by
    definition, which runs on the CPU whatever the device. ``size`` and ``operations`` (floating-point operations that
    the definition takes) follow from the work; ``prepare`` makes files once, unless they are there. The work of a case
    is of its ``share`` of the scale of its row.
    """

    name: str
    variants: tuple[Variant, ...]
    oracle: str
    size: Callable[[Work], Size]
    operations: Callable[[Work], float] | None = None
    prepare: Callable[[Work], None] = lambda work: None
    tolerance: float = 1e-9
    published: tuple[Published, ...] = ()
    share: float = 1.0

    def variant(self, name: str, device: str) -> Variant:
        """Return the variant of that name on a device."""
        return next(each for each in self.variants if each.name == name and device in each.devices)


@dataclass(frozen=True)
class ProcessCase:
    """One computation of a row, of which whole processes are measured; `measure.Variant` names their commands."""

    name: str
    variants: Callable[[Work], Sequence[measure.Variant]]
    oracle: str
    size: Callable[[Work], Size]
    prepare: Callable[[Work], None] = lambda work: None
    tolerance: float = 1e-9
    published: tuple[Published, ...] = ()


Case = CallCase | ProcessCase


@dataclass(frozen=True)
class Row:
    """A row of the published table: its number, the title of its definition, its cases."""

    id: str
    name: str
    title: str
    cases: tuple[Case, ...]

    def case(self, name: str) -> Case:
        """Return the case of that name."""
        return next(case for case in self.cases if case.name == name)


# Name of a row, which is that of its module, its rule and its settings; in the order of their numbers.
NAMES = (
    "array_elementwise", "frame", "csv_read", "csv_sum", "groupby_dask", "join_dask", "array_random", "svd_tall",
    "svd_compressed", "svd_genotypes", "svd_zarr", "packing", "ridge_fit", "grid_search", "forest_search", "umap",
    "taxi_tips", "pagerank", "recsys_features", "joblib_forest", "futures",
)  # fmt: skip


def load(name: str) -> Row:
    """Return the row of that name."""
    row: Row = import_module(f"benchmarks.published.{name}").ROW
    return row


def missing_packages(packages: Sequence[str]) -> str | None:
    """Say which of the modules are not installed, or return None."""
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def folder(name: str, scale: float) -> Path:
    """Return the place of a row's files at a scale."""
    return DATA / f"{name}-{scale:g}"
