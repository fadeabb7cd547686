"""A device that holds steps to what a GPU demands.

Operations that are expressions of CuPy are the GPU's own, with arrays that behave as CuPy's. `stand_in_for_cupy` puts
bodies that compute on the CPU, and take and return such arrays, in the place of those of cuDF, cuML and kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
import pytest
import treelite.sklearn
from distributed.protocol.pickle import dumps, loads
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression

from tests.contract.device_array import DeviceArray, Namespace, module, record
from tests.contract.traffic import downloaded, on_worker, operated, uploaded
from whitewater.engines import Array, Device
from whitewater.engines.workers import Threads, Workers, thread_workers
from whitewater.genotypes import decode, decode_gpu
from whitewater.genotypes.linkage import pairs_gpu
from whitewater.genotypes.linkage.pairs import correlated_variants
from whitewater.graphs import library_gpu
from whitewater.graphs.communities import find_communities
from whitewater.graphs.components import components
from whitewater.graphs.edges import Edges
from whitewater.graphs.pagerank import in_edges_gpu
from whitewater.graphs.pagerank.in_edges_cpu import CpuInEdges
from whitewater.learn import estimators

if TYPE_CHECKING:
    from whitewater.engines.choose import Engine
    from whitewater.engines.config import Cluster
    from whitewater.genotypes.folder import GenotypeFolder
    from whitewater.genotypes.genotypes import Genotypes
    from whitewater.graphs.config import Pagerank

CPU = Device()
FLOATS = ("float32", "float64")
CUPY = Namespace("cupy", np)


@dataclass(frozen=True)
class StrictDevice(Device):
    """Arrays of this device are `DeviceArray`; steps may do with them what CuPy, cuDF and cuML can do."""

    # Of a cluster, whose workers the tasks then run on; else they run on threads of this process.
    processes: int = 0

    @property
    def name(self) -> Literal["gpu"]:
        return "gpu"

    @property
    def xp(self) -> ModuleType:
        return CUPY

    @property
    def slice_rows(self) -> int:
        # Few, and no divisor of the size of a block, so that tiny data has several slices and a shorter last one.
        return 97

    def to_host(self, array: Any) -> Array:
        if not isinstance(array, DeviceArray | np.ndarray):
            raise TypeError(f"device.to_host of {type(array)}")
        if not isinstance(array, DeviceArray):
            return cast(Array, array)
        downloaded(array.on_host.nbytes)
        return array.on_host.copy()

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
        if self.processes:
            with thread_workers(self.processes) as pool:
                yield OtherProcesses(pool)
            Held.values.clear()
            return
        with CPU.workers(settings, threads=threads) as workers:
            yield workers

    def synchronize(self) -> None:
        record("cupy.cuda.runtime.deviceSynchronize")


@dataclass(frozen=True)
class OtherProcesses(Workers):
    """Threads that are given copies only, and give such, as the workers of a cluster are; each stands for a process."""

    pool: Threads

    @property
    def threads(self) -> Sequence[int]:
        return [1] * self.pool.count

    @property
    def hosts(self) -> Sequence[str]:
        return [*self.pool.hosts] * self.pool.count

    def place(self, value: Any) -> Any:
        return Held(at_worker(value))

    def hold(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        with on_worker():
            return [Held(function(*at_worker(each))) for each in arguments]

    def completed(
        self, function: Callable[..., Any], tasks: Sequence[Any], shared: Mapping[str, Any]
    ) -> Iterator[tuple[int, Any]]:
        sent = [dumps((function, task)) for task in tasks]
        for place, result in self.pool.completed(called_elsewhere, sent, {"shared": at_worker(shared)}):
            yield place, loads(result)

    def compute(self, *collections: Any) -> tuple[Any, ...]:
        return self.pool.compute(*collections)

    def persist(self, collection: Any) -> Any:
        return self.pool.persist(collection)

    def call_on_each(self, function: Callable[[], Any]) -> list[Any]:
        return [at_worker(function)() for _ in self.threads]


class Held:
    """Stands for a value that workers have, and arrives there as the value itself, as a future of Dask does."""

    values: ClassVar[list[Any]] = []

    def __init__(self, value: Any) -> None:
        self._number = len(self.values)
        self.values.append(value)

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        return held_value, (self._number,)


def held_value(number: int) -> Any:
    return Held.values[number]


def called_elsewhere(sent: bytes, *, shared: Mapping[str, Any]) -> bytes:
    """Return what a task gives, as another process sends it."""
    with on_worker():
        function, task = loads(sent)
        given: bytes = dumps(function(task, **shared))
    return given


def at_worker(value: Any) -> Any:
    """Return what a worker is given."""
    sent = dumps(value)
    with on_worker():
        return loads(sent)


def read_codes(folder: GenotypeFolder, start: int, stop: int) -> Array:
    """Stand for `gpu_read_codes`."""
    return upload(folder.read(start, stop).codes)


def expand_genotypes(genotypes: Genotypes, table: Array, out: Array) -> None:
    """Stand for `gpu_expand_genotypes`, which Numba's simulator runs (`test_gpu_kernels`)."""
    decode.expand_genotypes(CPU, genotypes_on_host(genotypes), on_host(table, "float32"), on_host(out, "float32"))


def count_genotypes(genotypes: Genotypes, counting: Array, counts: Array) -> None:
    """Stand for `gpu_count_genotypes`."""
    on_host(counts, "int32")[:] = decode.count_genotypes(CPU, genotypes_on_host(genotypes), on_host(counting, "bool"))


def mark_correlated(genotypes: Genotypes, sums: Array, stops: Any, threshold: float, band: Array) -> None:
    """Stand for `gpu_mark_correlated`."""
    if not isinstance(stops, np.ndarray) or stops.dtype != np.int32:
        raise TypeError("stops of correlated_variants are int32 on the host")
    marked = on_host(band, "bool")
    for first, second in correlated_variants(CPU, genotypes_on_host(genotypes), stops, threshold):
        marked[first, second - first - 1] = True


def library_ranks(edges: Edges, restart: Array | None, settings: Pagerank) -> Array:
    """Stand for `gpu_library_ranks`: a start like any other."""
    if restart is not None and not isinstance(restart, np.ndarray):
        raise TypeError("the restart of library_ranks is on the host")
    edges_on_host(edges)
    return on_device(np.random.default_rng(0).dirichlet(np.ones(edges.targets)))


def groups(
    edges: Edges, *, method: Literal["leiden", "louvain"], resolution: float, seed: int
) -> tuple[Array, Array, float]:
    """Stand for `gpu_groups`."""
    for array in (edges.offsets, edges.sources, edges.weights):
        if array is not None:
            upload(array)
    operated()
    labels = find_communities(edges, method=method, resolution=resolution, seed=seed)
    joined = components([(0, edges)], edges.targets)
    return StrictDevice().to_host(on_device(joined)), StrictDevice().to_host(on_device(labels)), 0.5


class StrictInEdges:
    """Stands for `GpuInEdges`, whose kernels Numba's simulator runs (`test_graph_kernels`)."""

    def __init__(self, edges: Edges) -> None:
        self._on_cpu = CpuInEdges(edges_on_host(edges), out_degree=np.empty(0), threads=1, keep=False)

    def pull(self, shares: Array, out: Array) -> None:
        self._on_cpu.pull(on_host(shares, "float64"), on_host(out, "float64"))


class StrictEstimator:
    """An estimator of scikit-learn that takes and returns arrays of the device, as the one of cuML does."""

    # What cuML keeps on the host whatever it is fitted on.
    HOST = frozenset({"feature_importances_"})

    def __init__(self, estimator: Any, name: str) -> None:
        self.on_cpu, self._name = estimator, name

    def fit(self, X: Array, y: Array) -> StrictEstimator:
        record(f"{self._name}.fit", 2)
        self.on_cpu.fit(on_host(X, *FLOATS), on_host(y, *FLOATS))
        return self

    def predict(self, X: Array) -> Array:
        record(f"{self._name}.predict", 1)
        rows = on_host(X, *FLOATS)
        return on_device(self.on_cpu.predict(rows).astype(rows.dtype))

    def as_treelite(self) -> Any:
        return treelite.sklearn.import_model(self.on_cpu)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self.on_cpu, name)
        if callable(value):
            raise TypeError(f"{name} of an estimator: the protocol has fit and predict only")
        record(f"{self._name}.{name}", used=True)
        return on_device(value) if isinstance(value, np.ndarray) and name not in self.HOST else value


class StrictClassifier:
    """A classifier of scikit-learn that takes and returns arrays of the device, as the one of cuML does."""

    def __init__(self, classifier: Any, name: str) -> None:
        self._on_cpu, self._name = classifier, name

    def fit(self, X: Array, y: Array) -> StrictClassifier:
        record(f"{self._name}.fit", 2)
        self._on_cpu.fit(on_host(X, *FLOATS), on_host(y, *FLOATS))
        return self

    def predict_proba(self, X: Array) -> Array:
        record(f"{self._name}.predict_proba", 1)
        # Of whatever floats, unlike scikit-learn's.
        return on_device(self._on_cpu.predict_proba(on_host(X, *FLOATS)).astype("float64"))


class StrictEmbedding:
    """UMAP that takes and returns arrays of the device."""

    def __init__(self, embedding: Any) -> None:
        self._on_cpu = embedding

    def fit_transform(self, X: Array) -> Array:
        record("cuml.manifold.UMAP.fit_transform", 1)
        return on_device(self._on_cpu.fit_transform(on_host(X, *FLOATS)))


class StrictForest:
    """A stored forest, as nvForest loads it."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def predict(self, X: Array) -> Array:
        record("nvforest.GPUForestInferenceRegressor.predict", 1)
        return on_device(treelite.gtil.predict(self._model, on_host(X, *FLOATS), nthread=1))


def stand_ins_for_libraries() -> dict[str, ModuleType]:
    """Return modules in the place of cuML's and of nvForest, with the estimators that take arrays of the device."""

    def umap(n_neighbors: int, min_dist: float, random_state: int, **_: object) -> StrictEmbedding:
        on_cpu = estimators.umap(CPU, neighbors=n_neighbors, minimum_distance=min_dist, seed=random_state)
        return StrictEmbedding(on_cpu)

    members: dict[str, dict[str, Any]] = {
        "cuml.linear_model": {
            "Ridge": lambda alpha, **_: StrictEstimator(estimators.ridge(CPU, alpha=alpha), "cuml.linear_model.Ridge"),
            "LogisticRegression": lambda penalty, **options: StrictClassifier(
                LogisticRegression(**options), "cuml.linear_model.LogisticRegression"
            ),
        },
        "cuml.ensemble": {
            "RandomForestRegressor": lambda **options: StrictEstimator(
                RandomForestRegressor(**options), "cuml.ensemble.RandomForestRegressor"
            )
        },
        "cuml.manifold": {"UMAP": umap},
        "nvforest": {"load_from_treelite_model": lambda model, device: StrictForest(model)},
    }
    modules = {name: module(name, **each) for name, each in members.items()}
    return modules | {"cuml": module("cuml", **{name.rpartition(".")[2]: each for name, each in modules.items()})}


FIT, PREDICT = estimators.BoostedTrees.fit, estimators.BoostedTrees.predict


def fit_trees(self: Any, X: Array, y: Array, later: tuple[Array, Array]) -> int:
    """Fit boosted trees; those for a GPU as XGBoost does without one, of arrays of the device."""
    if self._parameters["device"] == "cpu":
        return FIT(self, X, y, later)
    rows, labels = (on_host(each, "float32") for each in later)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(self._parameters, "device", "cpu")
        return FIT(self, on_host(X, "float32"), on_host(y, "float32"), (rows, labels))


def predict_by_trees(self: Any, X: Array) -> Array:
    """Predict; for a GPU from arrays of the device and to one."""
    if self._parameters["device"] == "cpu":
        return PREDICT(self, X)
    return on_device(PREDICT(self, on_host(X, "float32")))


@contextmanager
def stand_in_for_cupy() -> Iterator[None]:
    """Let ``import cupy`` give a namespace that takes and returns arrays of the strict device.

    Only code of the GPU imports it, which knows what is on the host: there, unlike in `StrictDevice.xp`, `asarray` and
    `asnumpy` copy.
    """
    with pytest.MonkeyPatch.context() as patch:
        cupy = cupy_of_devices()
        patch.setitem(sys.modules, "cupy", cupy)
        # Where workers look for classes that are sent to them.
        patch.setitem(sys.modules, "cupy.random", cupy.random)
        patch.setattr(decode_gpu, "gpu_read_codes", read_codes)
        patch.setattr(decode_gpu, "gpu_expand_genotypes", expand_genotypes)
        patch.setattr(decode_gpu, "gpu_count_genotypes", count_genotypes)
        patch.setattr(pairs_gpu, "gpu_mark_correlated", mark_correlated)
        patch.setattr(in_edges_gpu, "GpuInEdges", StrictInEdges)
        patch.setattr(library_gpu, "gpu_library_ranks", library_ranks)
        patch.setattr(library_gpu, "gpu_groups", groups)
        # Several slabs of tiny data, and a shorter last one.
        patch.setitem(decode.SLAB_CELLS, "gpu", 997)
        for name, stand_in in stand_ins_for_libraries().items():
            patch.setitem(sys.modules, name, stand_in)
            package, _, member = name.rpartition(".")
            if package in sys.modules:
                # Where the real one was imported before, `from package import member` would find that.
                patch.setattr(sys.modules[package], member, stand_in, raising=False)
        patch.setattr(estimators.BoostedTrees, "fit", fit_trees)
        patch.setattr(estimators.BoostedTrees, "predict", predict_by_trees)
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


def on_host(array: Any, *dtypes: str) -> Array:
    """Return the NumPy array inside an array of the device.

    Raises
    ------
    TypeError
        If it is an array of the host, or of another dtype.
    """
    if not isinstance(array, DeviceArray):
        raise TypeError(f"{type(array)} where an array of the device is needed: use device.to_device")
    if array.on_host.dtype.name not in dtypes:
        raise TypeError(f"dtype {array.on_host.dtype} where {' or '.join(dtypes)} is needed")
    return array.on_host


def edges_on_host(edges: Edges) -> Edges:
    """Return edges whose arrays are those of the device."""
    weights = None if edges.weights is None else on_host(edges.weights, "float64")
    return Edges(on_host(edges.offsets, "int64"), on_host(edges.sources, "int32", "int64"), weights)


def upload(array: Any) -> Array:
    """Return an array of the device that is a copy of one of the host."""
    copied = np.array(array)
    uploaded(copied.nbytes)
    return on_device(copied)


def on_device(array: Array) -> Array:
    """Return an array of the device around a NumPy array."""
    return cast(Array, DeviceArray(array))


def genotypes_on_host(genotypes: Genotypes) -> Genotypes:
    """Return genotypes of the device with codes of the host, once they are packed or dosages."""
    return replace(genotypes, codes=on_host(genotypes.codes, "uint8", "int8"))
