"""Passes over the genotypes of a folder, which is shared out by ranges of variants among workers.

A GPU with room for them keeps its shares: their codes cross to it once, however many passes there are. On the CPU each
pass reads the file, which the page cache serves.

The matrix of scaled genotypes is an operator: never stored, but expanded slab by slab while it is multiplied. A dosage
g becomes (g - mean) * scale, with mean = ploidy * p and scale = 1 / sqrt(ploidy p (1 - p)): the standard deviation that
a variant of allele frequency p has under Hardy-Weinberg equilibrium, so that each one counts alike (Patterson, Price
and Reich 2006, PLoS Genetics 2:e190). A missing call becomes 0, the mean.
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
# Shares that GPUs keep: so many for any number of GPUs, as sums over them differ in their last bits with the cuts.
KEPT_SHARES = 16
Counts = npt.NDArray[np.int32]
# A task multiplies so many genotypes at least, some 15 ms of a core, or what Dask spends on it would show; and all
# tasks of a pass send back so much at most. LEAST_RANGES go before both.
TASK_GENOTYPES = 16 << 20
RESULT_BYTES = 2 << 30
LEAST_RANGES, MOST_RANGES = 8, 64


@dataclass(frozen=True)
class Share:
    """The variants of a folder from ``start`` to before ``stop``, at a worker."""

    folder: GenotypeFolder
    start: int
    stop: int
    device: Device
    # Of all the variants, on the device; None: they are read from the file in each pass.
    codes: Array | None = None
    # What genotypes are looked up in, float32 (variants, ploidy + 2), on the device.
    table: Array | None = None

    def slabs(self, rows: int) -> Iterator[tuple[int, Genotypes]]:
        """Yield genotypes on the device, so many variants at a time, with the place of the first of them.

        Codes that are not kept are read a multiple of that at a time, `PIECE_BYTES` at most where that is more.
        """
        folder, kept = self.folder, self.codes
        size = rows * max(1, PIECE_BYTES // (rows * max(1, folder.row_bytes)))
        for start in range(self.start, self.stop, size):
            first, stop = start - self.start, min(start + size, self.stop)
            codes = codes_on_device(folder, start, stop, self.device) if kept is None else kept[first:]
            for at in range(0, stop - start, rows):
                yield first + at, Genotypes(codes[at : at + rows], folder.samples, folder.ploidy)

    def with_codes(self) -> "Share":
        return replace(self, codes=codes_on_device(self.folder, self.start, self.stop, self.device))

    def with_table(self, table: npt.NDArray[np.float32]) -> "Share":
        return replace(self, table=self.device.to_device(table))


@dataclass
class SharedGenotypes:
    """A folder of genotypes and the workers that pass over it."""

    folder: GenotypeFolder
    device: Device  # where tasks compute
    local_device: Device  # of this process, where their results are added up
    workers: Workers
    # References to the shares that workers keep; see `Workers.hold`.
    _kept: list[Any] = field(default_factory=list)

    @property
    def in_process(self) -> bool:
        """Whether tasks compute where their results are added up, so that these need not leave the device."""
        return self.device == self.local_device

    def keep(self, *, beside: int) -> None:
        """Upload the codes, once, if each GPU has room for its shares and for ``beside`` bytes."""
        if self.device.name == "cpu" or self._kept:
            return
        size = self.folder.variants * self.folder.row_bytes
        per_worker, room = -(-size // len(self.workers.threads)), self.workers.room_for_a_task(self.device, tasks=1)
        if per_worker + beside > room:
            logger.info("the genotypes, %.2g GB, go to the GPU in each pass: it has %.2g GB for its share and %.2g GB "
                        "more", size / 1e9, room / 1e9, beside / 1e9)  # fmt: skip
            return
        self._kept = self.workers.hold(Share.with_codes, [(share,) for share in self.shares(at_most=KEPT_SHARES)])

    def counts(self, used: npt.NDArray[np.bool_]) -> Counts:
        """Count dosages 0 to ploidy, then missing calls, of each variant among the samples used, bool (samples,)."""
        parts = self.map(_count, self.shares(), label="counts", used=used)
        return np.concatenate([self.local_device.to_host(part) for part in parts])

    def shares(self, *, at_most: int = 64, table: npt.NDArray[np.float32] | None = None) -> list[Any]:
        """Return the shares as tasks, with their rows of a table.

        Those that workers keep are references to them; of others there are at most so many.
        """
        ranges = self.folder.ranges(at_most=KEPT_SHARES if self._kept else at_most)
        shares = self._kept or [Share(self.folder, *bounds, self.device) for bounds in ranges]
        if table is None:
            return shares
        rows = [table[start:stop] for start, stop in ranges]
        return self.workers.hold(Share.with_table, list(zip(shares, rows, strict=True)))

    def map(self, function: Callable[..., Array], shares: list[Any], *, label: str, **shared: Any) -> Iterator[Array]:
        """Yield what a function returns for each share, in order: on the device if `in_process`, else on the host."""
        work = partial(_result, function=function, stay=self.in_process)
        return self.workers.map(work, shares, label=label, ordered=True, shared=shared)


def codes_on_device(folder: GenotypeFolder, start: int, stop: int, device: Device) -> Array:
    """Read the codes of variants into the memory of a device."""
    if device.name == "gpu":
        from whitewater.genotypes.kernels_gpu import gpu_read_codes

        return gpu_read_codes(folder, start, stop)
    return folder.read(start, stop).codes


def _result(share: Share, *, function: Callable[..., Array], stay: bool, **shared: Any) -> Array:
    result = function(share, **shared)
    return result if stay else share.device.to_host(result)


def _count(share: Share, *, used: npt.NDArray[np.bool_]) -> Array:
    chosen, rows = share.device.to_device(used), slab_rows(share.device, share.folder.samples)
    return share.device.xp.concatenate([count_genotypes(share.device, slab, chosen) for _, slab in share.slabs(rows)])


def scaling(counts: Counts, settings: Scaling) -> "pd.DataFrame":
    """Derive what dosages are scaled by from counts, (variants, ploidy + 2): of dosages 0 to ploidy, and missing calls.

    The columns are float64: mean, 0 without calls; scale, which is multiplied with, 0 where the variant is constant;
    and allele_frequency, NaN without calls. The mean is always the observed one, whatever the convention of p in the
    scale, so that scaled dosages sum to 0.
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
    """Return the table that genotypes are looked up in: float32 (variants, ploidy + 2), a missing call 0."""
    mean, scale = (scaling[name].to_numpy()[:, None] for name in ("mean", "scale"))
    table = np.zeros((len(scaling), ploidy + 2), np.float32)
    table[:, :-1] = (np.arange(ploidy + 1) - mean) * scale
    return table


@dataclass(frozen=True)
class ScaledGenotypes:
    """X, (samples used, variants), float32: the scaled dosages of a folder; a missing call is 0.

    Products are float32 within a slab of variants and added up in float64. Slabs and ranges of slabs depend on the
    shape of the data and the device only, and ranges are added in their order, so that results are equal to the bit for
    any number of workers.
    """

    shared: SharedGenotypes  # of all samples; blocks are on its local device
    table: npt.NDArray[np.float32]  # float32 (variants, ploidy + 2); see `scaled_dosages`
    # bool (samples,). The rows of the other samples are left out of X; they cost as much time as if they were in it.
    used: npt.NDArray[np.bool_]
    varying: int  # m, the number of variants that are not constant
    # The shares, with their rows of the table, by the most that there may be.
    _cut: dict[int, list[Any]] = field(default_factory=dict)

    @cached_property
    def samples(self) -> int:
        return int(self.used.sum())

    def covariance_times(self, block: Array) -> Array:
        """Return X X' / m times a block, float64 (samples used, k), on the local device: a pass over the genotypes."""
        total = self._sum(_covariance_times, width=block.shape[1], block=self._columns(block))
        return self._used_rows(total) / self.varying

    def covariance(self) -> Array:
        """Return X X' / m, float64 (samples used, samples used), on the local device: one pass over the genotypes."""
        total = self._sum(_cross_products, width=self.shared.folder.no_variants.columns)
        return self._used_rows(self._used_rows(total)) / self.varying

    def transpose_times(self, block: Array) -> Iterator[npt.NDArray[np.float32]]:
        """Yield X' times a block, (samples used, k), by ranges of variants in order: float32 (variants, k)."""
        parts = self._map(_transpose_times, at_most=MOST_RANGES, label="loadings", block=self._columns(block))
        return map(self.shared.local_device.to_host, parts)

    @cached_property
    def _places(self) -> Array:
        """The columns of a slab that are the samples used, on the local device."""
        return self.shared.local_device.to_device(self.shared.folder.no_variants.columns_of_samples(np)[self.used])

    def _map(self, function: Callable[..., Array], *, at_most: int, label: str, **shared: Any) -> Iterator[Array]:
        """Yield what ``function`` returns for each share, of which there are at most so many, or `LEAST_RANGES`."""
        by_work = self.shared.folder.no_variants.columns * self.shared.folder.variants // TASK_GENOTYPES
        number = max(min(by_work, at_most, MOST_RANGES), LEAST_RANGES)
        if number not in self._cut:
            self._cut[number] = self.shared.shares(at_most=number, table=self.table)
        return self.shared.map(function, self._cut[number], label=label, **shared)

    def _sum(self, function: Callable[..., Array], *, width: int, **shared: Any) -> Array:
        """Add up what ``function`` returns for each share, float64 (width, columns), as it comes."""
        at_most = RESULT_BYTES // (8 * width * self.shared.folder.no_variants.columns)
        parts = self._map(function, at_most=at_most, label="genotypes", **shared)
        return self.shared.local_device.to_device(reduce(iadd, parts))

    def _columns(self, block: Array) -> Array:
        """Bring rows of the samples used to the columns of a slab, the others 0, for the workers."""
        local = self.shared.local_device
        rows: Array = local.xp.zeros((self.shared.folder.no_variants.columns, block.shape[1]), np.float32)
        rows[self._places] = block
        return rows if self.shared.in_process else local.to_host(rows)

    def _used_rows(self, product: Array) -> Array:
        """Return the columns of a product, which are those of a slab, as rows of the samples used."""
        return self.shared.local_device.xp.ascontiguousarray(product.T[self._places])


def _covariance_times(share: Share, *, block: Array) -> Array:
    """Return (X_r X_r' block)' of the variants of a share: float64 (k, columns).

    The product is transposed, since BLAS is faster with the long side of a narrow result along its rows.
    """
    xp = share.device.xp
    placed = share.device.to_device(block)
    total: Array = xp.zeros(placed.shape[::-1], xp.float64)
    product = xp.empty(placed.shape[::-1], xp.float32)
    for _, slab in _slabs(share):
        xp.matmul((slab @ placed).T, slab, out=product)
        total += product
    return total


def _cross_products(share: Share) -> Array:
    """Return X_r X_r' of the variants of a share: float64 (columns, columns)."""
    xp, columns = share.device.xp, share.folder.no_variants.columns
    total: Array = xp.zeros((columns, columns), xp.float64)
    for _, slab in _slabs(share):
        total += slab.T @ slab
    return total


def _transpose_times(share: Share, *, block: Array) -> Array:
    """Return X_r' block of the variants of a share: float32 (variants, k)."""
    xp = share.device.xp
    placed = share.device.to_device(block)
    product: Array = xp.empty((share.stop - share.start, placed.shape[1]), xp.float32)
    for start, slab in _slabs(share):
        product[start : start + len(slab)] = slab @ placed
    return product


def _slabs(share: Share) -> Iterator[tuple[int, Array]]:
    """Yield the scaled genotypes of a share, float32 (rows, columns), with the place of their first row in it.

    All are views of one buffer, so each is gone when the next one is there.
    """
    device, columns, table = share.device, share.folder.no_variants.columns, cast(Array, share.table)
    rows = min(slab_rows(device, columns), len(table))
    buffer = device.xp.empty((rows, columns), np.float32)
    for start, genotypes in share.slabs(rows):
        of_slab = table[start : start + genotypes.variants]
        yield start, expand_genotypes(device, genotypes, of_slab, buffer[: genotypes.variants])
