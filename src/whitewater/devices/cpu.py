"""The CPU: NumPy, pyarrow, Numba and scikit-learn."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from whitewater.devices.blocks import Array, Block, Kind, Parsed, RawBlock
from whitewater.devices.protocol import BoostedTrees, Classifier, Embedding, GroupAccumulator, Regressor
from whitewater.versions import versions

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


@dataclass(frozen=True)
class CpuDevice:
    """Computes on the host."""

    @property
    def name(self) -> Literal["cpu"]:
        return "cpu"

    @property
    def xp(self) -> ModuleType:
        import numpy

        return numpy

    @property
    def frames(self) -> ModuleType:
        import pandas

        return pandas

    @property
    def slice_rows(self) -> int:
        # 128 Ki rows of a dozen columns stay in the cache of a core: array expressions are about 3 times faster.
        return 131_072

    def to_host(self, array: Array) -> Array:
        return array

    def from_host(self, array: Array) -> Array:
        return array

    def row_group_blocks(
        self, path: Path, row_group: int, columns: Mapping[str, Kind], *, block_rows: int
    ) -> Iterator[RawBlock]:
        from whitewater.devices.parquet import cpu_row_group_blocks

        return cpu_row_group_blocks(path, row_group, columns, block_rows=block_rows)

    def parse_delimited(self, data: bytes, names: Sequence[str], columns: Mapping[str, Kind]) -> Parsed:
        from whitewater.devices.delimited import cpu_parse_delimited

        return cpu_parse_delimited(data, names, columns)

    def write_parquet(self, block: Block, path: Path, kinds: Mapping[str, Kind]) -> None:
        from whitewater.devices.parquet import cpu_write_parquet

        cpu_write_parquet(block, path, kinds)

    def group_accumulator(self, groups: Sequence[int], *, medians: bool = True) -> GroupAccumulator:
        from whitewater.devices.group_statistics import CpuGroupAccumulator

        return CpuGroupAccumulator(groups, medians=medians)

    def ratio(self, numerator: Array, denominator: Array) -> Array:
        from whitewater.devices.elementwise import cpu_ratio

        return cpu_ratio(numerator, denominator)

    def seconds(self, start: Array, end: Array) -> Array:
        from whitewater.devices.elementwise import cpu_seconds

        return cpu_seconds(start, end)

    def mark_outside(self, values: Array, bounds: Bounds, mask: Array, bit: int) -> None:
        from whitewater.devices.elementwise import cpu_mark_outside

        cpu_mark_outside(values, bounds, mask, bit)

    def steps(self, timestamps: Array, clock: Clock) -> Array:
        from whitewater.devices.elementwise import cpu_steps

        return cpu_steps(timestamps, clock)

    @property
    def slab_cells(self) -> int:
        # 256 variants of 2,500 samples: 2.5 MB of float32, which stay in the cache of a core between two products.
        return 640_000

    def expand_genotypes(self, genotypes: Genotypes, table: Array, out: Array | None = None) -> Array:
        from whitewater.devices.genotypes import cpu_expand_genotypes

        return cpu_expand_genotypes(genotypes, table, out)

    def count_genotypes(self, genotypes: Genotypes, chosen: Array | None = None) -> Array:
        from whitewater.devices.genotypes import cpu_count_genotypes

        return cpu_count_genotypes(genotypes, chosen)

    def correlated_variants(self, genotypes: Genotypes, stops: Array, threshold: float) -> Array:
        from whitewater.devices.genotype_pairs import cpu_correlated_variants

        return cpu_correlated_variants(genotypes, stops, threshold)

    def edge_encoder(self, span: IdSpan | None, *, symmetric: bool, weighted: bool, rows: int) -> EdgeEncoder:
        from whitewater.devices.edge_keys import cpu_edge_encoder

        return cpu_edge_encoder(span, symmetric=symmetric, weighted=weighted, rows=rows)

    def recode_edges(self, edges: KeyedEdges, table: Array) -> KeyedEdges:
        from whitewater.devices.edge_keys import cpu_recode_edges

        return cpu_recode_edges(edges, table)

    def bucket_edges(self, edges: KeyedEdges, *, shift: int, buckets: int) -> BucketedEdges:
        from whitewater.devices.edge_keys import cpu_bucket_edges

        return cpu_bucket_edges(edges, shift=shift, buckets=buckets)

    def merge_edges(
        self, buckets: Iterable[Sequence[KeyedEdges]], numbers: CodeNumbers, vertices: range, *, rule: Rule, index: str,
        weighted: bool, edges: int
    ) -> MergedEdges:  # fmt: skip
        from whitewater.devices.edge_keys import cpu_merge_edges

        return cpu_merge_edges(buckets, numbers, vertices, rule=rule, index=index, weighted=weighted, edges=edges)

    def in_edges(self, edges: Edges, *, out_degree: Array, threads: int, keep: bool) -> InEdges:
        from whitewater.devices.in_edges import CpuInEdges

        return CpuInEdges(edges, out_degree=out_degree, threads=threads, keep=keep)

    def library_ranks(
        self, edges: Edges, *, damping: float, restart: Array | None, tolerance: float, iterations: int
    ) -> Array | None:
        return None

    def components(self, blocks: Iterable[tuple[int, Edges]], vertices: int) -> Array:
        from whitewater.devices.components import cpu_components

        return cpu_components(blocks, vertices)

    def communities(self, edges: Edges, *, method: Literal["leiden", "louvain"], resolution: float, seed: int) -> Array:
        from whitewater.devices.communities import cpu_communities

        return cpu_communities(edges, method=method, resolution=resolution, seed=seed)

    def free_memory(self) -> int | None:
        return None

    def read_columns(
        self, path: Path, row_group: int, names: Sequence[str], *, start: int = 0, rows: int | None = None
    ) -> dict[str, Column]:
        from whitewater.devices.column_reading import cpu_read_columns

        return cpu_read_columns(path, row_group, names, start=start, rows=rows)

    def write_columns(
        self, block: Mapping[str, Column], path: Path, types: Mapping[str, pa.DataType], *, row_group_rows: int
    ) -> None:
        from whitewater.devices.column_writing import cpu_write_columns

        cpu_write_columns(block, path, types, row_group_rows=row_group_rows)

    def factorize(self, values: Array, valid: Array | None) -> Categories:
        from whitewater.devices.categories import cpu_factorize

        return cpu_factorize(values, valid)

    def count_codes(self, codes: Array, size: int) -> Array:
        from whitewater.devices.categories import cpu_count_codes

        return cpu_count_codes(codes, size)

    def sum_by_code(self, codes: Array, weights: Array, size: int) -> Array:
        from whitewater.devices.categories import cpu_sum_by_code

        return cpu_sum_by_code(codes, weights, size)

    def umap(self, *, neighbors: int, minimum_distance: float, seed: int) -> Embedding:
        from whitewater.devices.estimators import cpu_umap

        return cpu_umap(neighbors=neighbors, minimum_distance=minimum_distance, seed=seed)

    def logistic_regression(self, *, penalty: float) -> Classifier:
        from whitewater.devices.estimators import cpu_logistic_regression

        return cpu_logistic_regression(penalty=penalty)

    def boosted_trees(self, *, trees: int, depth: int, learning_rate: float, seed: int, threads: int) -> BoostedTrees:
        from whitewater.devices.estimators import XgboostTrees

        return XgboostTrees("cpu", trees=trees, depth=depth, learning_rate=learning_rate, seed=seed, threads=threads)

    def ridge(self, *, alpha: float) -> Regressor:
        from whitewater.devices.estimators import cpu_ridge

        return cpu_ridge(alpha=alpha)

    def random_forest(self, *, trees: int, depth: int, sample_fraction: float, seed: int) -> Regressor:
        from whitewater.devices.estimators import cpu_random_forest

        return cpu_random_forest(trees=trees, depth=depth, sample_fraction=sample_fraction, seed=seed)

    def forest_as_treelite(self, forest: Regressor) -> bytes:
        from whitewater.devices.estimators import cpu_forest_as_treelite

        return cpu_forest_as_treelite(forest)

    def forest_from_treelite(self, serialised: bytes) -> Callable[[Array], Array]:
        from whitewater.devices.estimators import cpu_forest_from_treelite

        return cpu_forest_from_treelite(serialised)

    def cluster(self, settings: Cluster, *, threads: int, large: bool) -> AbstractContextManager[Workers]:
        from whitewater.cluster import cpu_cluster

        return cpu_cluster(settings, threads=threads, large=large)

    def dask_client(
        self, settings: Cluster, *, threads: int, memory_limit: int | None = None
    ) -> AbstractContextManager[Client]:
        from whitewater.cluster import cpu_dask_client

        return cpu_dask_client(settings, threads=threads, memory_limit=memory_limit)

    def synchronize(self) -> None:
        """Return at once: what the host computes is done when its call returns."""

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "processor": platform.machine(),
            "versions": versions("numpy", "pyarrow", "numba", "scikit-learn", "umap-learn"),
        }

    def count_memory(self) -> None:
        """Count nothing: what the host's processes hold is known anyway."""

    def peak_memory(self) -> int | None:
        return None
