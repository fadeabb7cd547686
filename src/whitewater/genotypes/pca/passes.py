"""Passes over the genotypes of a folder, which is partitioned by ranges of variants among workers.

GPUs with enough memory keep their partitions between passes; on the CPU each pass reads the file from the page cache.

Scaled genotypes are never stored: slabs of them are expanded while they are multiplied. A dosage g becomes
(g - mean) * scale, with mean = ploidy * p and scale = 1 / sqrt(ploidy p (1 - p)), the inverse of the standard deviation
under Hardy-Weinberg equilibrium, so that each variant counts alike (Patterson, Price and Reich 2006, PLoS Genetics
2:e190). A missing call becomes 0, the mean.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from operator import iadd
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from whitewater import lazy_pandas as pd
from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.genotypes.codes import count_genotypes, expand_genotypes, slab_rows
from whitewater.genotypes.config import Scaling
from whitewater.genotypes.genotypes import PIECE_BYTES, GenotypeFolder, Genotypes

logger = logging.getLogger(__name__)
# Partitions that GPUs keep: the same number for any number of GPUs, because partitioning changes the last bits of sums.
KEPT_PARTITIONS = 16
Counts = npt.NDArray[np.int32]
# A task multiplies at least this many genotypes, about 15 ms of a core, to outweigh the overhead of Dask. All tasks of
# a pass return at most this many bytes. LEAST_RANGES takes precedence over both.
TASK_GENOTYPES = 16 << 20
RESULT_BYTES = 2 << 30
LEAST_RANGES, MOST_RANGES = 8, 64


@dataclass(frozen=True)
class Partition:
    """The variants [start, stop) of a folder, at a worker."""

    folder: GenotypeFolder
    start: int
    stop: int
    device: Device
    codes: Array | None = None  # on the device; None: read from the file in each pass
    table: Array | None = None  # see `scaled_dosages`; on the device

    def slabs(self, rows: int) -> Iterator[tuple[int, Genotypes]]:
        """Yield genotypes on the device, ``rows`` variants at a time, with the offset of the first in the partition.

        A read is of one slab, or of as many as fit into `PIECE_BYTES`.
        """
        folder, kept = self.folder, self.codes
        size = rows * max(1, PIECE_BYTES // (rows * max(1, folder.row_bytes)))
        for start in range(self.start, self.stop, size):
            first, stop = start - self.start, min(start + size, self.stop)
            codes = read_codes(folder, start, stop, self.device) if kept is None else kept[first:]
            for offset in range(0, stop - start, rows):
                yield first + offset, Genotypes(codes[offset : offset + rows], folder.samples, folder.ploidy)

    def load_codes(self) -> "Partition":
        return replace(self, codes=read_codes(self.folder, self.start, self.stop, self.device))

    def add_table(self, table: npt.NDArray[np.float32]) -> "Partition":
        return replace(self, table=self.device.to_device(table))


@dataclass
class RawGenotypes:
    """A folder of genotypes and the workers that pass over it."""

    folder: GenotypeFolder
    device: Device  # of the workers
    local_device: Device  # of this process, which adds up results
    workers: Workers
    # Handles of the partitions that workers keep; see `Workers.hold`.
    _kept: list[Any] = field(default_factory=list)

    @property
    def in_process(self) -> bool:
        """Whether tasks compute on the local device, so that results need not leave it."""
        return self.device == self.local_device

    def keep_on_gpus(self, *, other_bytes: int) -> None:
        """Upload the codes, once, if each GPU has room for its partitions and ``other_bytes``."""
        if self.device.name == "cpu" or self._kept:
            return
        size = self.folder.variants * self.folder.row_bytes
        per_worker, room = -(-size // len(self.workers.threads)), self.workers.room_for_a_task(self.device, tasks=1)
        if per_worker + other_bytes > room:
            logger.info("the genotypes, %.2g GB, go to the GPU in each pass: it has %.2g GB for its share and %.2g GB "
                        "more", size / 1e9, room / 1e9, other_bytes / 1e9)  # fmt: skip
            return
        partitions = self.partitions(maximum=KEPT_PARTITIONS)
        self._kept = self.workers.keep_results(Partition.load_codes, [(partition,) for partition in partitions])

    def counts(self, used: npt.NDArray[np.bool_]) -> Counts:
        """Count dosages 0 to ploidy, then missing calls, of each variant among the samples used, bool (samples,)."""
        parts = self.map(_count, self.partitions(), label="counts", used=used)
        return np.concatenate([self.local_device.to_host(part) for part in parts])

    def partitions(self, *, maximum: int = 64, table: npt.NDArray[np.float32] | None = None) -> list[Any]:
        """Return the partitions, or handles of them, as tasks; with their rows of ``table`` if given.

        ``maximum`` is their number at most, unless workers keep them.
        """
        ranges = self.folder.ranges(maximum=KEPT_PARTITIONS if self._kept else maximum)
        partitions = self._kept or [Partition(self.folder, *bounds, self.device) for bounds in ranges]
        if table is None:
            return partitions
        rows = [table[start:stop] for start, stop in ranges]
        return self.workers.keep_results(Partition.add_table, list(zip(partitions, rows, strict=True)))

    def map(self, function: Callable[..., Array], tasks: list[Any], *, label: str, **shared: Any) -> Iterator[Array]:
        """Yield the result of a function for each partition, in order: on the device if `in_process`, else the host."""
        work = partial(_call, function=function, to_host=not self.in_process)
        return self.workers.map(work, tasks, label=label, ordered=True, shared=shared)


def read_codes(folder: GenotypeFolder, start: int, stop: int, device: Device) -> Array:
    """Read the codes of variants into the memory of a device."""
    if device.name == "gpu":
        from whitewater.genotypes.kernels_gpu import gpu_read_codes

        return gpu_read_codes(folder, start, stop)
    return folder.read(start, stop).codes


def _call(partition: Partition, *, function: Callable[..., Array], to_host: bool, **shared: Any) -> Array:
    result = function(partition, **shared)
    return partition.device.to_host(result) if to_host else result


def _count(partition: Partition, *, used: npt.NDArray[np.bool_]) -> Array:
    device = partition.device
    mask, rows = device.to_device(used), slab_rows(device, partition.folder.samples)
    return device.xp.concatenate([count_genotypes(device, slab, mask) for _, slab in partition.slabs(rows)])


def compute_scaling(counts: Counts, settings: Scaling) -> "pd.DataFrame":
    """Return mean, scale and allele_frequency, float64, from counts of dosages 0 to ploidy, then of missing calls.

    Without calls the mean is 0 and the frequency NaN. The scale of a constant variant is 0. The mean is always the
    observed one, whatever the convention of p in the scale, so that scaled dosages sum to 0.
    """
    dosages = counts[:, :-1].astype(np.float64)
    ploidy = dosages.shape[1] - 1
    alleles = dosages @ np.arange(ploidy + 1)
    called = ploidy * dosages.sum(axis=1)
    observed = np.divide(alleles, called, out=np.full(len(counts), np.nan), where=called > 0)
    p = (1 + alleles) / (2 + called) if settings.frequency == "patterson" else observed
    varying = (dosages > 0).sum(axis=1) > 1
    variance = ploidy * p * (1 - p) if settings.variance == "binomial" else np.ones(len(counts))
    scale = np.zeros(len(counts))
    scale[varying] = 1 / np.sqrt(variance[varying])
    return pd.DataFrame({"mean": np.nan_to_num(ploidy * observed), "scale": scale, "allele_frequency": observed})


def scaled_dosages(scaling: "pd.DataFrame", *, ploidy: int) -> npt.NDArray[np.float32]:
    """Return the lookup table of genotypes: float32 (variants, ploidy + 2), with 0 for a missing call."""
    mean, scale = (scaling[name].to_numpy()[:, None] for name in ("mean", "scale"))
    table = np.zeros((len(scaling), ploidy + 2), np.float32)
    table[:, :-1] = (np.arange(ploidy + 1) - mean) * scale
    return table


@dataclass(frozen=True)
class ScaledGenotypes:
    """X, float32 (samples used, variants): the scaled dosages of a folder, with 0 for a missing call.

    Products are float32 within a slab of variants, and added up in float64, in order. Slabs and partitions depend only
    on the shape of the data and the device, so results are equal to the bit for any number of workers.
    """

    raw: RawGenotypes  # of all samples; blocks are on its local device
    table: npt.NDArray[np.float32]  # float32 (variants, ploidy + 2); see `scaled_dosages`
    used: npt.NDArray[np.bool_]  # bool (samples,); the others are expanded, too, and dropped from results
    varying: int  # m, the number of variants that are not constant
    # Tasks with their rows of the table, by the maximum number of partitions.
    _tasks: dict[int, list[Any]] = field(default_factory=dict)

    @cached_property
    def samples(self) -> int:
        return int(self.used.sum())

    def covariance_times(self, block: Array) -> Array:
        """Return X X' / m times a block, float64 (samples used, k), on the local device: a pass over the genotypes."""
        total = self._sum(_covariance_times, width=block.shape[1], block=self._to_columns(block))
        return self._select_rows(total) / self.varying

    def covariance(self) -> Array:
        """Return X X' / m, float64 (samples used, samples used), on the local device: one pass over the genotypes."""
        total = self._sum(_cross_products, width=self.raw.folder.empty.columns)
        return self._select_rows(self._select_rows(total)) / self.varying

    def transpose_times(self, block: Array) -> Iterator[npt.NDArray[np.float32]]:
        """Yield X' times a block, (samples used, k), by ranges of variants in order: float32 (variants, k)."""
        parts = self._map(_transpose_times, maximum=MOST_RANGES, label="loadings", block=self._to_columns(block))
        return map(self.raw.local_device.to_host, parts)

    @cached_property
    def _used_columns(self) -> Array:
        """The columns of the samples used in a slab, on the local device."""
        return self.raw.local_device.to_device(self.raw.folder.empty.sample_columns(np)[self.used])

    def _map(self, function: Callable[..., Array], *, maximum: int, label: str, **shared: Any) -> Iterator[Array]:
        """Yield the result of ``function`` for each of at most ``maximum`` partitions, or `LEAST_RANGES`."""
        by_work = self.raw.folder.empty.columns * self.raw.folder.variants // TASK_GENOTYPES
        number = max(min(by_work, maximum, MOST_RANGES), LEAST_RANGES)
        if number not in self._tasks:
            self._tasks[number] = self.raw.partitions(maximum=number, table=self.table)
        return self.raw.map(function, self._tasks[number], label=label, **shared)

    def _sum(self, function: Callable[..., Array], *, width: int, **shared: Any) -> Array:
        """Add up the results of ``function`` for all partitions, float64 (width, columns), as they arrive."""
        maximum = RESULT_BYTES // (8 * width * self.raw.folder.empty.columns)
        parts = self._map(function, maximum=maximum, label="genotypes", **shared)
        return self.raw.local_device.to_device(reduce(iadd, parts))

    def _to_columns(self, block: Array) -> Array:
        """Expand rows of the samples used to all columns of a slab, the others 0, for the workers."""
        local = self.raw.local_device
        rows: Array = local.xp.zeros((self.raw.folder.empty.columns, block.shape[1]), np.float32)
        rows[self._used_columns] = block
        return rows if self.raw.in_process else local.to_host(rows)

    def _select_rows(self, product: Array) -> Array:
        """Return the columns of the samples used, of all columns of a slab, as rows."""
        return self.raw.local_device.xp.ascontiguousarray(product.T[self._used_columns])


def _covariance_times(partition: Partition, *, block: Array) -> Array:
    """Return (X_r X_r' block)' of the variants of a partition: float64 (k, columns).

    It is transposed because BLAS is faster if the long side of a narrow result is contiguous.
    """
    xp = partition.device.xp
    block = partition.device.to_device(block)
    total: Array = xp.zeros(block.shape[::-1], xp.float64)
    product = xp.empty(block.shape[::-1], xp.float32)
    for _, slab in _scaled_slabs(partition):
        xp.matmul((slab @ block).T, slab, out=product)
        total += product
    return total


def _cross_products(partition: Partition) -> Array:
    """Return X_r X_r' of the variants of a partition: float64 (columns, columns)."""
    xp, columns = partition.device.xp, partition.folder.empty.columns
    total: Array = xp.zeros((columns, columns), xp.float64)
    for _, slab in _scaled_slabs(partition):
        total += slab.T @ slab
    return total


def _transpose_times(partition: Partition, *, block: Array) -> Array:
    """Return X_r' block of the variants of a partition: float32 (variants, k)."""
    xp = partition.device.xp
    block = partition.device.to_device(block)
    product: Array = xp.empty((partition.stop - partition.start, block.shape[1]), xp.float32)
    for start, slab in _scaled_slabs(partition):
        product[start : start + len(slab)] = slab @ block
    return product


def _scaled_slabs(partition: Partition) -> Iterator[tuple[int, Array]]:
    """Yield scaled genotypes, float32 (rows, columns), with the offset of their first row in the partition.

    All are views of one buffer: each is overwritten by the next.
    """
    device, columns, table = partition.device, partition.folder.empty.columns, cast(Array, partition.table)
    rows = min(slab_rows(device, columns), len(table))
    buffer = device.xp.empty((rows, columns), np.float32)
    for start, genotypes in partition.slabs(rows):
        rows_of_slab = table[start : start + genotypes.variants]
        yield start, expand_genotypes(device, genotypes, rows_of_slab, buffer[: genotypes.variants])
