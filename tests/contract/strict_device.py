"""A device that holds steps to what a GPU demands.

Operations that are expressions of CuPy are the GPU's own, with arrays that behave as CuPy's. `stand_in_for_cupy` puts
bodies that compute on the CPU, and take and return such arrays, in the place of those of cuDF, cuML and kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

import dask
import numpy as np
import pytest
import treelite.sklearn
from distributed import Client, LocalCluster
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression

from tests.contract.cugraph_of_networkx import GRAPH_LIBRARY
from tests.contract.device_array import DeviceArray, Namespace, install, on_device, on_host, record
from tests.contract.traffic import count
from whitewater.engines import Array, Device
from whitewater.engines.config import Cluster
from whitewater.engines.workers import DaskWorkers, Workers
from whitewater.genotypes import codes, kernels_gpu
from whitewater.genotypes.genotypes import Genotypes
from whitewater.genotypes.linkage import correlated_variants
from whitewater.graphs.graph_folder import Edges
from whitewater.graphs.pagerank import in_edges_gpu
from whitewater.graphs.pagerank.in_edges import Pull, prepare_in_edges
from whitewater.learn import estimators

if TYPE_CHECKING:
    from whitewater.engines.config import Engine

CPU = Device()
FLOATS = ("float32", "float64")
CUPY = Namespace("cupy", np)


@dataclass(frozen=True)
class StrictDevice(Device):
    """Arrays of this device are `DeviceArray`; steps may do with them what CuPy, cuDF and cuML can do."""

    name: Literal["cpu", "gpu"] = "gpu"
    # Few, and no divisor of the size of a block, so that tiny data has several slices and a shorter last one.
    slice_rows: int = 97
    partition_rows: int = 300

    @property
    def xp(self) -> ModuleType:
        return CUPY

    def to_host(self, array: Any) -> Array:
        if isinstance(array, DeviceArray):
            count(down=array.on_host.nbytes)
            return array.on_host.copy()
        if not isinstance(array, np.ndarray):
            raise TypeError(f"device.to_host of {type(array)}")
        return array

    def to_device(self, array: Any) -> Array:
        if not isinstance(array, DeviceArray | np.ndarray):
            raise TypeError(f"device.to_device of {type(array)}")
        return cast(Array, array) if isinstance(array, DeviceArray) else upload(array)

    def free_memory(self) -> int:
        return 2**30

    @contextmanager
    def workers(
        self, settings: Cluster, *, threads: int, engine: Engine = "dask", large: bool = False
    ) -> Iterator[Workers]:
        if settings.attached:
            with Client(settings.address) as client:
                yield DaskWorkers(client)
            return
        with CPU.workers(settings, threads=threads) as workers:
            yield workers

    def synchronize(self) -> None:
        record("cupy.cuda.runtime.deviceSynchronize")


@contextmanager
def cluster_of(workers: int) -> Iterator[Cluster]:
    """Start workers of Dask on threads of this process, which are sent copies, and send such, as processes are."""
    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1",
            dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0",
        ) as cluster,
    ):  # fmt: skip
        yield Cluster(address=cluster.scheduler_address)


def expand_genotypes(genotypes: Genotypes, table: Array, out: Array) -> None:
    """Stand for `gpu_expand_genotypes`, which Numba's simulator runs (`test_kernels`)."""
    codes.expand_genotypes(CPU, genotypes_on_host(genotypes), on_host(table, "float32"), on_host(out, "float32"))


def mark_correlated(words: Array, planes: Array, stops: Array, threshold: float, band: Array) -> None:
    """Stand for `gpu_mark_correlated`."""
    on_host(planes, "uint64")
    marked, packed = on_host(band, "bool"), on_host(words, "uint64").view(np.uint8)
    genotypes = Genotypes(packed, 4 * packed.shape[1])
    for first, second in correlated_variants(CPU, genotypes, on_host(stops, "int32"), threshold):
        marked[first, second - first - 1] = True


def prepare_strict_in_edges(edges: Edges) -> Pull:
    """Stand for the `prepare_in_edges` of GPUs, whose kernels Numba's simulator runs (`test_kernels`)."""
    on_cpu = prepare_in_edges(CPU, edges_on_host(edges), threads=1)
    return lambda shares, out: on_cpu(on_host(shares, "float64"), on_host(out, "float64"))


class StrictModel:
    """A model of a library of the CPU that takes and returns arrays of the device, as the one called ``name`` does."""

    # What cuML keeps on the host whatever it is fitted on.
    HOST = frozenset({"feature_importances_"})

    def __init__(self, on_cpu: Any, name: str, *, gives: str = "") -> None:
        self._on_cpu, self._name, self._gives = on_cpu, name, gives

    def as_treelite(self) -> Any:
        return treelite.sklearn.import_model(self._on_cpu)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._on_cpu, name)
        if not callable(value):
            record(f"{self._name}.{name}", used=True)
            return on_device(value) if isinstance(value, np.ndarray) and name not in self.HOST else value

        def method(*arrays: Array) -> Any:
            record(f"{self._name}.{name}", len(arrays))
            rows, *others = (on_host(each, *FLOATS) for each in arrays)
            found = value(rows, *others)
            return on_device(found.astype(self._gives or rows.dtype)) if isinstance(found, np.ndarray) else self

        return method


def models() -> dict[str, dict[str, Any]]:
    """Return, for cuML's modules and nvForest, models that take arrays of the device."""

    def ridge(alpha: float, **_: object) -> StrictModel:
        return StrictModel(estimators.ridge(CPU, alpha=alpha), "cuml.linear_model.Ridge")

    def logistic(penalty: str, **options: Any) -> StrictModel:
        # Of whatever floats cuML gives float64, unlike scikit-learn.
        return StrictModel(LogisticRegression(**options), "cuml.linear_model.LogisticRegression", gives="float64")

    def trees(**options: Any) -> StrictModel:
        return StrictModel(RandomForestRegressor(**options), "cuml.ensemble.RandomForestRegressor")

    def umap(n_neighbors: int, min_dist: float, random_state: int, **_: object) -> StrictModel:
        on_cpu = estimators.umap(CPU, neighbors=n_neighbors, minimum_distance=min_dist, seed=random_state)
        return StrictModel(on_cpu, "cuml.manifold.UMAP")

    def stored(model: Any, device: str) -> StrictModel:
        predict = partial(treelite.gtil.predict, model, nthread=1)
        return StrictModel(SimpleNamespace(predict=predict), "nvforest.GPUForestInferenceRegressor")

    return {
        "cuml.linear_model": {"Ridge": ridge, "LogisticRegression": logistic},
        "cuml.ensemble": {"RandomForestRegressor": trees},
        "cuml.manifold": {"UMAP": umap},
        "nvforest": {"load_from_treelite_model": stored},
    }


FIT = estimators.fit_boosted_trees


def fit_boosted_trees(device: Device, rows: Any, later: Any, **options: Any) -> tuple[Callable[[Any], Any], int]:
    """Fit boosted trees; those for a GPU as XGBoost does without one, of arrays of the device and to one."""
    if device.name == "cpu":
        return FIT(device, rows, later, **options)
    host: list[Any] = [tuple(on_host(each, "float32") for each in part) for part in (rows, later)]
    predict, trees = FIT(CPU, *host, **options)
    return lambda X: on_device(predict(on_host(X, "float32"))), trees


@contextmanager
def stand_in_for_cupy() -> Iterator[None]:
    """Let ``import cupy`` give a namespace that takes and returns arrays of the strict device.

    Only code of the GPU imports it, which knows what is on the host: there, unlike in `StrictDevice.xp`, `asarray` and
    `asnumpy` copy.
    """
    with pytest.MonkeyPatch.context() as patch:
        cupy = cupy_of_devices()
        patch.setitem(sys.modules, "cupy", cupy)
        install(patch, {**models(), **GRAPH_LIBRARY, "cupyx": {"empty_pinned": np.empty}})
        # Where workers look for classes that are sent to them.
        patch.setitem(sys.modules, "cupy.random", cupy.random)
        patch.setattr(kernels_gpu, "gpu_expand_genotypes", expand_genotypes)
        patch.setattr(kernels_gpu, "gpu_mark_correlated", mark_correlated)
        patch.setattr(in_edges_gpu, "prepare_in_edges", prepare_strict_in_edges)
        # Several slabs of tiny data, and a shorter last one.
        patch.setitem(codes.SLAB_CELLS, "gpu", 997)
        patch.setattr(estimators, "fit_boosted_trees", fit_boosted_trees)
        yield


def cupy_of_devices() -> Namespace:
    """Return a namespace that copies from the host, and to it, where it is asked to."""

    def asarray(array: Any) -> Any:
        record("cupy.asarray", 1)
        return array if isinstance(array, DeviceArray) else upload(array)

    def asnumpy(array: Any) -> Array:
        record("cupy.asnumpy", 1)
        return StrictDevice().to_host(array)

    cupy = Namespace("cupy", np)
    vars(cupy).update(asarray=asarray, asnumpy=asnumpy)
    return cupy


def edges_on_host(edges: Edges) -> Edges:
    """Return edges whose arrays are those of the device."""
    weights = None if edges.weights is None else on_host(edges.weights, "float64")
    return Edges(on_host(edges.offsets, "int64"), on_host(edges.sources, "int32", "int64"), weights)


def upload(array: Any) -> Array:
    """Return an array of the device that is a copy of one of the host."""
    copied = np.array(array)
    count(up=copied.nbytes)
    return on_device(copied)


def genotypes_on_host(genotypes: Genotypes) -> Genotypes:
    """Return genotypes of the device with codes of the host, once they are packed or dosages."""
    return replace(genotypes, codes=on_host(genotypes.codes, "uint8", "int8"))
