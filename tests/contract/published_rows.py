"""The variants of the published rows that run on GPUs, in one process, on a device and tiny data."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import JsonValue
from sklearn.decomposition import PCA

from benchmarks.genomics import simulated_store
from benchmarks.genomics.variant import Work as GenomicsWork
from benchmarks.measure import differences
from benchmarks.published import (
    array_random,
    csv_read,
    csv_sum,
    forest_search,
    grid_search,
    groupby_dask,
    join_dask,
    packing,
    recsys_features,
    svd_compressed,
    svd_genotypes,
    svd_tall,
    svd_zarr,
    svd_zarr_dask,
    umap,
)
from benchmarks.published.frame import means_of_arrays
from benchmarks.published.row import NAMES, CallCase, Variant, Work, load
from tests.contract.device_array import record
from whitewater import engines
from whitewater.engines import Device, resolve
from whitewater.engines.config import Cluster

CSV_LINES = 240
CHUNK = (1_600, 32)
MAP_ROWS = 1_000
LOG_ROWS = 1_001
# Random vectors, of which the devices draw different ones, capture nearly the same of so few columns.
TOLERANCES = {"svd_genotypes": 5e-3}
SAMPLES, VARIANTS = 100, 2_000


def edge_scale(edge: int, full: int) -> float:
    """Return the scale at which an edge is so long, where the scale is that of the area."""
    return (edge / full) ** 2


def lines_scale(files: Any) -> float:
    """Return the scale at which each CSV file has `CSV_LINES`."""
    return float(CSV_LINES * len(files.months) / files.rows)


# How small each row is made.
SCALES: Mapping[str, float] = {
    "array_elementwise": edge_scale(71, 10_000),
    "frame": 3e-5,
    "csv_read": lines_scale(csv_read.FILES),
    "csv_sum": lines_scale(csv_sum.FILES),
    "groupby_dask": lines_scale(groupby_dask.FILES),
    "join_dask": 1e-6,
    "array_random": edge_scale(61, array_random.EDGE),
    "svd_tall": 1e-4,
    "svd_compressed": edge_scale(3_500, svd_compressed.ROWS),
    "svd_genotypes": 1e-7,
    "packing": 1e-7,
    "ridge_fit": 3e-5,
    "grid_search": 3e-3,
    "forest_search": 2e-6,
    "umap": 256 * MAP_ROWS / umap.BYTES,
    "svd_zarr": SAMPLES * svd_zarr.PLOIDY * VARIANTS / svd_zarr.DECODED_BYTES,
    "recsys_features": LOG_ROWS / recsys_features.ROWS,
    "futures": 1e-3,
}
# Constants of modules that are changed so that the data still have several parts, and populations that differ.
CONSTANTS: Mapping[Any, Mapping[str, Any]] = {
    join_dask: {"PARTITIONS": 3},
    array_random: {"FEWEST_CHUNKS": 3},
    svd_tall: {"CHUNKS": 3},
    svd_compressed: {"ROW_CHUNKS": 3, "COLUMN_CHUNKS": 2},
    svd_genotypes: {"CHUNK": CHUNK},
    packing: {"CHUNK": CHUNK},
    grid_search: {"ALPHAS": np.array([1e-3, 1e-2, 1e-1])},
    forest_search: {"TRIES": 6},
    umap: {"CENTERS": 1, "SURFACE": 2},
    simulated_store: {"F_ST": np.linspace(0.4, 0.2, len(simulated_store.F_ST))},
    svd_zarr: {"SAMPLES": SAMPLES},
}

ZARR = ("svd_zarr", "", "as_published")
# What is right where the oracle takes long to compile, or is not a call.
ANSWERS: Mapping[str, JsonValue] = {
    "umap": {"rows": MAP_ROWS, "columns": 2, "trusted": True},
    "svd_zarr": {"captured variance >= 0.99": True, "subspace >= 0.99": True},
}

# Row, case and variant.
Name = tuple[str, str, str]


# Or what went wrong.
Answers = Mapping[Name, JsonValue | Exception]


def on_gpus() -> dict[Name, Variant]:
    """Return the variants that are written for GPUs, of those that are measured call by call."""
    return {
        (row, case.name, variant.name): variant
        for row in NAMES
        for case in load(row).cases
        if isinstance(case, CallCase)
        for variant in case.variants
        if "gpu" in variant.devices
    }


@contextmanager
def tiny() -> Iterator[None]:
    """Make all rows tiny, with several parts all the same; principal components do for UMAP, which compiles so long."""
    with pytest.MonkeyPatch.context() as patch:
        for module, constants in CONSTANTS.items():
            for name, value in constants.items():
                patch.setattr(module, name, value)
        patch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=lambda **_: PCA(2)))
        yield


def kernel_of_random_numbers(source: str, name: str) -> Callable[..., None]:
    """Stand for `cupy.RawKernel` of R7, whose source `tests/benchmarks/test_array_random_kernel.py` compiles."""
    record("cupy.RawKernel", 2)
    assert f"void {name}(" in source

    def launch(grid: tuple[int], block: tuple[int], arguments: Sequence[Any]) -> None:
        n, first, rows, seed, mean, deviation, sums = arguments
        drawn = np.random.default_rng([seed, first]).normal(mean, deviation, (rows, n)) + 1
        sums.on_host[:] = drawn[first % 2 :: 2, ::2].sum(), drawn.sum()

    return launch


def prepare(folder: Path) -> None:
    """Make the files of all rows."""
    for row in SCALES:
        for case in load(row).cases:
            work = work_of(row, resolve("cpu"), folder)
            work.folder.mkdir(exist_ok=True)
            case.prepare(work)


def work_of(row: str, device: Device, folder: Path, cluster: Cluster | None = None) -> Work:
    """Return the work of a row, whose files are the same for all engines."""
    options = {"store": ""} if row == "svd_zarr" else {}
    return Work(device, 2, SCALES[row], folder / row, cluster or Cluster(), options)


def answers_on(device: Device, folder: Path) -> Answers:
    """Return what the variants that are written for GPUs answer on a device, which is used for the name, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "resolve", lambda _: device)
        found = {
            name: attempted(partial(answer_of, variant, work_of(name[0], device, folder)))
            for name, variant in on_gpus().items()
        }
        return found | {ZARR: attempted(partial(answer_of_zarr, work_of("svd_zarr", device, folder)))}


def oracles(folder: Path, cluster: Cluster) -> dict[tuple[str, str], JsonValue]:
    """Return the right answer of each case of those variants, by its oracle on the CPU.

    Where memory is limited it is that of the same row without a limit, whose oracle starts no processes.
    """
    found: dict[tuple[str, str], JsonValue] = {}
    for row, name in dict.fromkeys((row, name) for row, name, _ in [*on_gpus(), ZARR]):
        if row in ANSWERS or name == "limited":
            found[row, name] = found[row, ""] if name == "limited" else ANSWERS[row]
        else:
            case = load(row).case(name)
            assert isinstance(case, CallCase)
            found[row, name] = answer_of(
                case.variant(case.oracle, "cpu"), work_of(row, resolve("cpu"), folder, cluster)
            )
    return found


def attempted(answer: Callable[[], JsonValue]) -> JsonValue | Exception:
    """Return an answer, or why there is none, so that one variant does not hide the others."""
    try:
        return answer()
    except Exception as error:
        return error


def answer_of(variant: Variant, work: Work) -> JsonValue:
    """Return the answer of a variant, as its process would send it."""
    with variant.prepare(work) as timed:
        answer: JsonValue = json.loads(json.dumps(timed.answer(timed.call())))
        json.dumps(timed.phases())
    return answer


def answer_of_zarr(work: Work) -> JsonValue:
    """Return the answer of R11 as published, whose command computes so on the device of that name."""
    output = work.folder / f"{work.device.name}.npy"
    kept = svd_zarr_dask.compute(
        GenomicsWork(svd_zarr.store(work), Path(), work.threads, output, work.device.name, "{}")
    )
    exact = svd_zarr.exact(work)
    assert kept == exact.variants
    return svd_zarr.judge(output, exact, own=False)


def faults_of(name: Name, answers: Answers, right: Mapping[tuple[str, str], JsonValue]) -> list[str]:
    """Return in what an answer differs from the oracle's, or why there is none."""
    answer = answers[name]
    if isinstance(answer, Exception):
        return traceback.format_exception(answer)
    tolerance = load(name[0]).case(name[1]).tolerance
    return list(differences(answer, right[name[:2]], tolerance=max(tolerance, TOLERANCES.get(name[0], 0.0))))


def check_groups_far_apart(device: Device) -> None:
    """Check means of groups whose keys cannot be places in an array, which no row has but a user may."""
    keys, values = np.array([5, 2**60, -(2**60), 5]), np.array([1.0, 3.0, 4.0, 2.0])
    found = means_of_arrays(device.xp, device.to_device(keys), device.to_device(values))
    assert [device.to_host(each).tolist() for each in found] == [[-(2**60), 5, 2**60], [4.0, 1.5, 3.0]]
