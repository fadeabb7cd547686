"""An array of called alleles in a Zarr store, read and encoded in blocks of whole chunks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError
from whitewater.genomics.sources.source import BLOCK_BYTES

if TYPE_CHECKING:
    from whitewater.zarr_arrays import Array

LARGEST_PLOIDY = 127
NOT_CALLED = -2


@dataclass(frozen=True)
class Calls:
    """Called alleles, integers (variants, samples, ploidy), or (variants, samples) where the ploidy is 1.

    0 is the reference, 1 ... are its alternates, -1 is a missing allele, and -2 pads a call of a lower ploidy.
    ``alleles`` is how many a variant has at most.
    """

    array: Array
    alleles: int

    @property
    def name(self) -> str:
        """The array's name for messages."""
        return f"{self.array.store.name}: {self.array.name}"

    def check(self) -> None:
        """Refuse an array that holds no calls.

        Raises
        ------
        InputError
            If its elements are not signed integers, or its shape is not that of calls.
        """
        if self.array.dtype.kind != "i":
            raise InputError(f"{self.name} holds {self.array.dtype}, not signed integers: it holds no called alleles.")
        if len(self.array.shape) not in (2, 3) or not 1 <= self.ploidy <= LARGEST_PLOIDY:
            raise InputError(
                f"{self.name} has the shape {self.array.shape}; it should be (variants, samples, ploidy), of ploidy 1 "
                f"to {LARGEST_PLOIDY}."
            )

    @property
    def variants(self) -> int:
        """The number of variants."""
        return int(self.array.shape[0])

    @property
    def samples(self) -> int:
        """The number of samples."""
        return int(self.array.shape[1])

    @property
    def ploidy(self) -> int:
        """The number of alleles of a call."""
        return int(self.array.shape[2]) if len(self.array.shape) == 3 else 1

    @cached_property
    def block(self) -> tuple[int, int]:
        """Variants of a range, and samples of a block of it: whole chunks, several where they are small."""
        variants, samples = (max(1, int(size)) for size in self.array.chunks[:2])
        samples = min(samples, max(1, self.samples))
        chunk, rows = variants * samples * self.ploidy, variants * max(1, self.samples)
        variants *= max(1, min(BLOCK_BYTES // chunk, BLOCK_BYTES // rows))
        samples *= max(1, BLOCK_BYTES // (variants * samples * self.ploidy))
        return min(variants, max(1, self.variants)), min(samples, max(1, self.samples))

    @property
    def block_bytes(self) -> int:
        """Bytes of a block."""
        variants, samples = self.block
        return variants * samples * self.ploidy * self.array.dtype.itemsize

    def ranges(self) -> list[tuple[int, int]]:
        """Cut the variants into ranges of whole chunks."""
        size = self.block[0]
        return [(start, min(start + size, self.variants)) for start in range(0, self.variants, size)]

    def encode(
        self,
        start: int,
        stop: int,
        codes: npt.NDArray[Any],
        counts: npt.NDArray[np.int32],
        missing: npt.NDArray[np.int64],
        *,
        seen: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Encode a range, see `Source.encode`; mark in ``seen``, bool (variants, alleles), the alleles that occur."""
        from whitewater.genomics.encode import encode_alleles

        size = self.block[1]
        for first in range(0, self.samples, size):
            alleles = self._read(start, stop, first, min(first + size, self.samples))
            encode_alleles(alleles, first_sample=first, codes=codes, counts=counts, missing=missing)
            if seen is not None:
                for allele in range(self.alleles):
                    seen[:, allele] |= (alleles == allele).any(axis=(1, 2))

    def _read(self, start: int, stop: int, first: int, last: int) -> npt.NDArray[np.int8]:
        """Read calls as int8 (variants, samples, ploidy)."""
        block = self.array.read((slice(start, stop), slice(first, last)))
        if block.max() >= self.alleles or block.min() < NOT_CALLED:
            raise InputError(
                f"{self.name} holds the alleles {block.min()} to {block.max()} in variants {start} to {stop - 1}, but "
                f"the variants have at most {self.alleles} alleles, and -1 and -2 are missing ones. The store is "
                "damaged, or of another layout."
            )
        if block.dtype != np.int8:
            # A dosage depends on the sign of an allele only, so that the cut loses nothing.
            block = block.clip(NOT_CALLED, np.iinfo(np.int8).max).astype(np.int8)
        return block.reshape(stop - start, last - first, self.ploidy)
