"""What a step may ask of a device."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from whitewater.devices.blocks import Array, Block, GroupStatistics, Kind, Parsed, RawBlock

if TYPE_CHECKING:
    import pyarrow as pa
    from distributed import Client

    from whitewater.config.cluster import Cluster
    from whitewater.devices.columns import Categories, Column
    from whitewater.devices.edge_keys import (
        BucketedEdges,
        CodeNumbers,
        EdgeEncoder,
        IdSpan,
        KeyedEdges,
        MergedEdges,
        Rule,
    )
    from whitewater.devices.elementwise import Bounds, Clock
    from whitewater.devices.genotypes import Genotypes
    from whitewater.devices.in_edges import Edges, InEdges
    from whitewater.workers import Workers


# Kinds of blocks are read here by other packages, too.
__all__ = [
    "Array", "Block", "BoostedTrees", "Classifier", "Device", "Embedding", "GroupAccumulator", "Kind", "RawBlock",
    "Regressor",
]  # fmt: skip


class GroupAccumulator(Protocol):
    """Statistics of values by several keys at once, filled slice by slice."""

    def add(self, keys: Sequence[Array], values: Array, chosen: Array | None = None) -> None:
        """Count values (float64, from 0 to below 2**20, about a million) under each array of keys (int8 to int32).

        Rows with a key below 0 do not count under it; where ``chosen`` (bool) is given, rows out of it count nowhere.
        What the statistics tell is exact but for the rounding of sums (see `GroupStatistics`) and the bins of medians:
        see `whitewater.devices.group_statistics.medians`, whose relative error is below 2**-9 for values from 2**-20.

        Raises IntegrityError if a value that counts is negative, not finite or too large, or a key is not below its
        groups. Values of another scale are given in another unit.
        """

    def result(self) -> tuple[GroupStatistics, ...]:
        """Return the statistics for each key array, in the order of ``groups``."""


class Regressor(Protocol):
    """An estimator of scikit-learn or cuML."""

    def fit(self, X: Array, y: Array) -> Any: ...
    def predict(self, X: Array) -> Array: ...


class Classifier(Protocol):
    """An estimator of probabilities of scikit-learn or cuML."""

    def fit(self, X: Array, y: Array) -> Any: ...
    def predict_proba(self, X: Array) -> Array: ...


class BoostedTrees(Protocol):
    """Gradient-boosted trees for labels of 0 and 1; NaN is a missing value, which goes the better way."""

    def fit(self, X: Array, y: Array, later: tuple[Array, Array]) -> int:
        """Fit until later rows (X, y), if any, are predicted no better; return the number of trees that predict."""

    def predict(self, X: Array) -> Array:
        """Return the probability of label 1, float32 (rows,)."""


class Embedding(Protocol):
    """A manifold embedding of scikit-learn's kind."""

    def fit_transform(self, X: Array) -> Array: ...


class Device(Hashable, Protocol):
    """Stateless, hashable and picklable: libraries are imported on first use, in whichever process runs the task."""

    @property
    def name(self) -> Literal["cpu", "gpu"]:
        """For paths, the log and the manifest; no step branches on it."""

    @property
    def xp(self) -> ModuleType:
        """The array namespace: numpy or cupy."""

    @property
    def frames(self) -> ModuleType:
        """The library of data frames: pandas or cudf."""

    @property
    def slice_rows(self) -> int:
        """Rows that a step works on at once: those that fit the cache of a core, or that fill a GPU."""

    def to_host(self, array: Array) -> Array:
        """Return a NumPy array with the same values."""

    def from_host(self, array: Array) -> Array:
        """Return an array of this device with the same values."""

    def row_group_blocks(
        self, path: Path, row_group: int, columns: Mapping[str, Kind], *, block_rows: int
    ) -> Iterator[RawBlock]:
        """Read columns of one row group of a Parquet file, at most ``block_rows`` rows at a time, in file order."""

    def parse_delimited(self, data: bytes, names: Sequence[str], columns: Mapping[str, Kind]) -> Parsed:
        """Parse whole lines of comma-separated text without a header; ``names`` are all fields of a line, in order."""

    def write_parquet(self, block: Block, path: Path, kinds: Mapping[str, Kind]) -> None:
        """Write a block as one Parquet file, nulls as nulls, timestamps as ``timestamp[us]``."""

    def group_accumulator(self, groups: Sequence[int], *, medians: bool = True) -> GroupAccumulator:
        """Return an empty accumulator for key arrays of so many groups each; one task makes one and is done with it.

        Without ``medians`` it gathers counts and sums only, which is faster.
        """

    def ratio(self, numerator: Array, denominator: Array) -> Array:
        """Return the quotient of float64 columns, NaN where the denominator is not above 0."""

    def seconds(self, start: Array, end: Array) -> Array:
        """Return the seconds between timestamps as float64, NaN where one is null."""

    def mark_outside(self, values: Array, bounds: Bounds, mask: Array, bit: int) -> None:
        """Set bit ``bit + i`` of ``mask``, int64, where a value breaks bound *i*; NaN breaks none."""

    def steps(self, timestamps: Array, clock: Clock) -> Array:
        """Return the step of a clock at each timestamp as int32, -1 outside the clock's time and for nulls."""

    @property
    def slab_cells(self) -> int:
        """Cells of the float32 matrix that genotypes are expanded to at once: as `slice_rows`."""

    def expand_genotypes(self, genotypes: Genotypes, table: Array, out: Array | None = None) -> Array:
        """Look up each genotype in the table of its variant.

        ``table`` is float32 (variants, ploidy + 2): the values of dosages 0 to ploidy, then that of a missing call.
        Returns float32 (variants, genotypes.columns), written into ``out`` where given. The columns are in the order of
        `whitewater.devices.genotypes.rows_in_column_order`; columns behind the last sample get the value of a missing
        call.
        """

    def count_genotypes(self, genotypes: Genotypes, chosen: Array | None = None) -> Array:
        """Count the dosages 0 to ploidy, then the missing calls, of each variant: int32 (variants, ploidy + 2).

        Only the samples where ``chosen``, bool (samples,), is true are counted where it is given.
        """

    def correlated_variants(self, genotypes: Genotypes, stops: Array, threshold: float) -> Array:
        """Return the pairs of variants whose squared correlation of dosages is above a threshold.

        Each variant *i* is compared with the variants from *i* + 1 to before ``stops[i]``, over the samples that have a
        call of both. ``stops``, int32 (variants,), and the result, int32 (pairs, 2), ordered, are on the host. All sums
        are integers, so that every device finds the same pairs.
        """

    def edge_encoder(self, span: IdSpan | None, *, symmetric: bool, weighted: bool, rows: int) -> EdgeEncoder:
        """Return an empty encoder for ``rows`` edges at most; one task makes one and is done with it.

        With a span all ids are in it and the codes of all encoders agree; without one each has codes of its own.
        ``symmetric`` adds the opposite of each edge that is no self-loop.
        """

    def recode_edges(self, edges: KeyedEdges, table: Array) -> KeyedEdges:
        """Return edges with codes looked up in a table, uint32 (codes,)."""

    def bucket_edges(self, edges: KeyedEdges, *, shift: int, buckets: int) -> BucketedEdges:
        """Order edges by bucket, the code of the target shifted right by ``shift``; on the device."""

    def merge_edges(
        self, buckets: Iterable[Sequence[KeyedEdges]], numbers: CodeNumbers, vertices: range, *, rule: Rule, index: str,
        weighted: bool, edges: int
    ) -> MergedEdges:  # fmt: skip
        """Sort edges by target, then source, and make one of those with the same ends.

        ``buckets`` are the pieces of each bucket, in ascending order, on the host, ``edges`` in all; ``numbers`` are
        those of the vertex of each code, on the host, and ``vertices`` those of the targets. By ``rule`` edges with the
        same ends get the sum of their weights (in ascending order), or else the maximum; edges without any count 1
        each. ``index`` is the dtype of the sources, and ``weighted`` says whether the result has weights.
        """

    def in_edges(self, edges: Edges, *, out_degree: Array, threads: int, keep: bool) -> InEdges:
        """Return in-edges that numbers are pulled along many times.

        ``out_degree``, int64 (vertices,) on the host, is that of all vertices. On the CPU ``keep`` says that there is
        memory for a copy of the edges, see `whitewater.devices.in_edges.kept_bytes`; without it they are read where
        they are, in order, each time. A GPU keeps them always. The sums are the same.
        """

    def library_ranks(
        self, edges: Edges, *, damping: float, restart: Array | None, tolerance: float, iterations: int
    ) -> Array | None:
        """Return PageRank by the device's graph library, float64 (vertices,), on the device, or None.

        ``edges`` are those of all vertices, at least one; ``restart``, float64 (vertices,) on the host, is the
        personalization, if any. It is a result of the library's own tolerance and rounding, for a start. None where
        there is no such library, or the graph does not fit into the device's memory as the library holds it.
        """

    def components(self, blocks: Iterable[tuple[int, Edges]], vertices: int) -> Array:
        """Return the smallest number in the weakly connected component of each vertex, int64 (vertices,), on the host.

        ``blocks`` are edges, which are seen once, each with the number of its first target.
        """

    def communities(self, edges: Edges, *, method: Literal["leiden", "louvain"], resolution: float, seed: int) -> Array:
        """Return the community of each vertex, int64 (vertices,) on the host, numbered anyhow.

        ``edges`` are those of all vertices; their directions do not count. Which communities are found depends on the
        device; their modularity is about the same.

        Raises ResourceError where they do not fit into the device's own memory.
        """

    def free_memory(self) -> int | None:
        """Return the bytes of the device's own memory that are free, or None where it is the host's."""

    def read_columns(
        self, path: Path, row_group: int, names: Sequence[str], *, start: int = 0, rows: int | None = None
    ) -> dict[str, Column]:
        """Read columns of one row group of a Parquet file, or of ``rows`` rows from ``start`` on, as they are stored.

        Text and dictionaries become `Categories`, numbers and booleans `Numbers`, lists `Lists`.

        Raises InputError where the file is damaged, or a column is missing or of another type.
        """

    def write_columns(
        self, block: Mapping[str, Column], path: Path, types: Mapping[str, pa.DataType], *, row_group_rows: int
    ) -> None:
        """Write columns as a Parquet file of plain, uncompressed pages; NaN stands for null in floats.

        Raises InputError where a column cannot be of its type.
        """

    def factorize(self, values: Array, valid: Array | None) -> Categories:
        """Return integers, int64 (rows,), as categories, each value once; null where ``valid``, bool, is False."""

    def count_codes(self, codes: Array, size: int) -> Array:
        """Count the rows of each code, int32 (rows,), below ``size``, and not those of code -1: int64 (size,)."""

    def sum_by_code(self, codes: Array, weights: Array, size: int) -> Array:
        """Add up ``weights``, float64 (rows,), by code as `count_codes` counts: float64 (size,)."""

    def umap(self, *, neighbors: int, minimum_distance: float, seed: int) -> Embedding:
        """UMAP to two dimensions (umap-learn or cuML)."""

    def logistic_regression(self, *, penalty: float) -> Classifier:
        """Logistic regression with an L2 penalty and an intercept."""

    def boosted_trees(self, *, trees: int, depth: int, learning_rate: float, seed: int, threads: int) -> BoostedTrees:
        """Gradient-boosted trees, of XGBoost."""

    def ridge(self, *, alpha: float) -> Regressor:
        """Linear least squares with an L2 penalty and an intercept."""

    def random_forest(self, *, trees: int, depth: int, sample_fraction: float, seed: int) -> Regressor:
        """Random forest that minimises the squared error; ``sample_fraction`` of the rows are drawn for each tree."""

    def forest_as_treelite(self, forest: Regressor) -> bytes:
        """Return a fitted random forest as a serialised treelite model, which is stored and read without pickle."""

    def forest_from_treelite(self, serialised: bytes) -> Callable[[Array], Array]:
        """Return the predictions of a stored forest: float32 (rows, features) -> float64 (rows,)."""

    def cluster(self, settings: Cluster, *, threads: int, large: bool) -> AbstractContextManager[Workers]:
        """Open the workers of one step; ``large`` asks for processes where kind is auto."""

    def dask_client(
        self, settings: Cluster, *, threads: int, memory_limit: int | None = None
    ) -> AbstractContextManager[Client]:
        """Open Dask workers, on which Dask's own collections are made of this device's arrays and frames.

        ``memory_limit`` is the bytes of results that one worker holds, before it spills some: to disk on the CPU, to
        the host on a GPU.
        """

    def synchronize(self) -> None:
        """Wait until all that was begun on the device is done."""

    def describe(self) -> dict[str, Any]:
        """Return the hardware and the versions of the packages that compute, for the manifest."""

    def count_memory(self) -> None:
        """Count from now on what this process holds of the device's own memory, for `peak_memory`; workers do so."""

    def peak_memory(self) -> int | None:
        """Return the peak of the device's own memory in bytes, or None where it is the host's or was not counted."""
