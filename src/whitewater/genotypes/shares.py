"""The genotypes of a folder, shared out by ranges of variants among workers that pass over them again and again.

A GPU with room for them keeps its shares: their codes cross to it once, however many passes there are. On the CPU each
pass reads the file, which the page cache serves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device
from whitewater.genotypes.genotypes import GenotypeFolder, Genotypes

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers

logger = logging.getLogger(__name__)
Range = tuple[int, int]
# Shares that GPUs keep: so many for any number of GPUs, as sums over them differ in their last bits with the cuts.
KEPT_SHARES = 16


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

    @property
    def variants(self) -> int:
        """The number of variants."""
        return self.stop - self.start

    def pieces(self, *, rows: int = 1) -> Iterator[tuple[int, Genotypes]]:
        """Yield genotypes on the device, of a multiple of ``rows`` variants, each with the place of its first one."""
        if self.codes is not None:
            yield 0, self._genotypes(self.codes)
            return
        for first, last in self.folder.pieces(self.start, self.stop, rows=rows):
            yield first - self.start, self._genotypes(codes_on_device(self.folder, first, last, self.device))

    def _genotypes(self, codes: Array) -> Genotypes:
        return Genotypes(codes, self.folder.samples, self.folder.ploidy)


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
        self._kept = self.workers.hold(
            _kept_share, [(self.folder, *bounds, self.device) for bounds in self.ranges(at_most=KEPT_SHARES)]
        )

    def ranges(self, *, at_most: int) -> list[Range]:
        """Return the ranges of the shares: at most so many, where they are not kept."""
        return self.folder.ranges(at_most=KEPT_SHARES if self._kept else at_most)

    def shares(self, *, at_most: int = 64, table: npt.NDArray[np.float32] | None = None) -> list[Any]:
        """Return the shares as tasks, with their rows of a table; those that workers keep as references to them."""
        ranges = self.ranges(at_most=at_most)
        shares = self._kept or [Share(self.folder, *bounds, self.device) for bounds in ranges]
        if table is None:
            return shares
        rows = [table[start:stop] for start, stop in ranges]
        return self.workers.hold(_with_table, list(zip(shares, rows, strict=True)))

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


def _kept_share(folder: GenotypeFolder, start: int, stop: int, device: Device) -> Share:
    return Share(folder, start, stop, device, codes_on_device(folder, start, stop, device))


def _with_table(share: Share, table: npt.NDArray[np.float32]) -> Share:
    return replace(share, table=share.device.to_device(table))


def _result(share: Share, *, function: Callable[..., Array], stay: bool, **shared: Any) -> Array:
    result = function(share, **shared)
    return result if stay else share.device.to_host(result)
