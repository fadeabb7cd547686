"""Called alleles, of an array in a Zarr store or of a VCF file, read and encoded in blocks of whole chunks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.errors import InputError
from whitewater.genotypes.sources.sites import row_blocks
from whitewater.genotypes.sources.source import BLOCK_BYTES, Tally

if TYPE_CHECKING:
    import pandas as pd

    from whitewater.io.zarr_arrays import Array

LARGEST_PLOIDY = 127
MISSING_ALLELE, NOT_CALLED = -1, -2
CODEC = "lz4"


@dataclass(frozen=True)
class Block:
    """Records of a VCF file that follow each other: their calls, as `Calls` reads them, and their table, in files.

    ``place`` is the file that they are of; a block is one chunk.
    """

    place: str
    path: Path
    contig: str
    first: int
    last: int
    alleles: int
    shape: tuple[int, int, int]
    chunks: tuple[int, int, int]
    dtype: ClassVar[np.dtype[np.int8]] = np.dtype(np.int8)

    def read(self, selection: tuple[slice, slice]) -> npt.NDArray[np.int8]:
        """Return calls, int8 (variants, samples, ploidy)."""
        data = pa.decompress(self.path.read_bytes(), math.prod(self.shape), codec=CODEC)
        return np.frombuffer(data, np.int8).reshape(self.shape)[selection]

    def sites(self, rows: slice) -> pd.DataFrame:
        """Return rows of the table of the variants."""
        import pandas as pd

        return pd.read_parquet(self.path.with_suffix(".parquet")).iloc[rows]


@dataclass(frozen=True)
class Calls:
    """Called alleles, integers (variants, samples, ploidy), or (variants, samples) where the ploidy is 1.

    A `Part` of a source. 0 is the reference, 1 ... are its alternates, -1 is a missing allele, and -2 pads a call of a
    lower ploidy. Calls of another ploidy are missing: than ``asked_ploidy``, or, where that is 0, than the largest that
    the array has room for.
    """

    array: Array | Block
    alleles: int  # how many a variant has at most
    # Returns rows of the table of the variants, which are read in blocks of whole chunks of ``site_chunk`` rows
    sites: Callable[[slice], pd.DataFrame]
    site_chunk: int
    asked_ploidy: int = 0

    def check(self) -> None:
        """Refuse an array that holds no calls.

        Raises InputError if its elements are not signed integers, or its shape is not that of calls.
        """
        if self.array.dtype.kind != "i":
            raise InputError(
                f"{self.array.place} holds {self.array.dtype}, not signed integers: it holds no called alleles."
            )
        if len(self.array.shape) not in (2, 3) or not 1 <= self._width <= LARGEST_PLOIDY:
            raise InputError(
                f"{self.array.place} has the shape {self.array.shape}; it should be (variants, samples, ploidy), of "
                f"ploidy 1 to {LARGEST_PLOIDY}."
            )
        if self.ploidy > self._width:
            raise InputError(f"{self.array.place} holds calls of {self._width} alleles at most, but the ploidy is set "
                             f"to {self.ploidy}. Set it to {self._width} or less.")  # fmt: skip

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
        return self.asked_ploidy or self._width

    @property
    def _width(self) -> int:
        """The number of alleles that the array has room for in a call."""
        return int(self.array.shape[2]) if len(self.array.shape) == 3 else 1

    @cached_property
    def block(self) -> tuple[int, int]:
        """Variants of a range, and samples of a block of it: whole chunks, several where they are small."""
        variants, samples = (max(1, int(size)) for size in self.array.chunks[:2])
        samples = min(samples, max(1, self.samples))
        chunk, rows = variants * samples * self._width, variants * max(1, self.samples)
        variants *= max(1, min(BLOCK_BYTES // chunk, BLOCK_BYTES // rows))
        samples *= max(1, BLOCK_BYTES // (variants * samples * self._width))
        return min(variants, max(1, self.variants)), min(samples, max(1, self.samples))

    @property
    def rows(self) -> int:
        """Variants of a range."""
        return self.block[0]

    @property
    def block_bytes(self) -> int:
        """Bytes of a block."""
        variants, samples = self.block
        return variants * samples * self._width * self.array.dtype.itemsize

    def tables(self) -> Iterator[pd.DataFrame]:
        """Yield the table of the variants in blocks, see `Part.tables`."""
        return (self.sites(slice(*block)) for block in row_blocks(self.variants, chunk=self.site_chunk))

    def encode(self, start: int, stop: int, codes: npt.NDArray[Any], tally: Tally) -> None:
        """Encode a range, see `Part.encode`. A call with a missing allele, or of another ploidy, is missing."""
        from whitewater.genotypes.encode import encode_alleles

        size = self.block[1]
        for first in range(0, self.samples, size):
            alleles = self._read(start, stop, first, min(first + size, self.samples), tally.uneven)
            encode_alleles(alleles, first_sample=first, codes=codes, counts=tally.counts, missing=tally.missing)
            for allele in range(min(self.alleles, tally.seen.shape[1])):
                tally.seen[:, allele] |= (alleles == allele).any(axis=(1, 2))

    def _read(
        self, start: int, stop: int, first: int, last: int, uneven: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int8]:
        """Read calls as int8 (variants, samples, ploidy); count those of each variant that are of another ploidy."""
        block = self.array.read((slice(start, stop), slice(first, last)))
        lowest = block.min()
        if block.max() >= self.alleles or lowest < NOT_CALLED:
            raise InputError(
                f"{self.array.place} holds the alleles {lowest} to {block.max()} in variants {start} to {stop - 1}, "
                f"but the variants have at most {self.alleles} alleles, and -1 and -2 are missing ones. The store is "
                "damaged, or of another layout."
            )
        if block.dtype != np.int8:
            # A dosage depends on the sign of an allele only, so that the cut loses nothing.
            block = block.clip(NOT_CALLED, np.iinfo(np.int8).max).astype(np.int8)
        block = block.reshape(stop - start, last - first, self._width)
        if self._width < self.ploidy:
            lowest, beyond = NOT_CALLED, self.ploidy - self._width
            block = np.pad(block, ((0, 0), (0, 0), (0, beyond)), constant_values=NOT_CALLED)
        if self.ploidy == self._width and lowest > NOT_CALLED:
            return block
        # Calls with more alleles become missing; those with fewer are so as they are.
        used, longer = block[:, :, : self.ploidy], (block[:, :, self.ploidy :] != NOT_CALLED).any(axis=2)
        uneven += ((block[:, :, 0] >= 0) & (longer | (used[:, :, -1] == NOT_CALLED))).sum(axis=1)
        return np.where(longer[:, :, None], np.int8(MISSING_ALLELE), used)
