"""Called alleles, of an array in a Zarr store or of a VCF file, read and encoded in blocks of whole chunks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.errors import InputError
from whitewater.genotypes.sources.source import BLOCK_BYTES, Part, Tally, row_blocks

if TYPE_CHECKING:
    import pandas as pd

    from whitewater.io.zarr_arrays import Array

LARGEST_PLOIDY = 127
MISSING_ALLELE, NOT_CALLED = -1, -2
CODEC = "lz4"


@dataclass(frozen=True)
class Block:
    """Records of a VCF file that follow each other: their calls, read as an array of one chunk, and their table.

    Both are in files; ``place`` is that of the records. ``shape`` may have room for more alleles than were ``written``.
    """

    place: str
    path: Path
    contig: str
    first: int
    last: int
    alleles: int
    written: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: ClassVar[np.dtype[np.int8]] = np.dtype(np.int8)

    @property
    def chunks(self) -> tuple[int, ...]:
        return self.shape

    def read(self, selection: tuple[slice, slice]) -> npt.NDArray[np.int8]:
        data = pa.decompress(self.path.read_bytes(), math.prod(self.written), codec=CODEC)
        calls = np.frombuffer(data, np.int8).reshape(self.written)[selection]
        room = ((0, 0), (0, 0), (0, self.shape[2] - self.written[2]))
        return np.pad(calls, room, constant_values=NOT_CALLED) if room[2][1] else calls


def part_of_calls(
    array: Array | Block, sites: Callable[[slice], pd.DataFrame], *, alleles: int, site_chunk: int, ploidy: int = 0
) -> Part:
    """Return the variants of an array of called alleles, integers (variants, samples, ploidy), as a part of a source.

    An array of ploidy 1 may be (variants, samples). 0 is the reference, 1 ... are its alternates, -1 is a missing
    allele, and -2 pads a call of a lower ploidy. Calls of another ploidy are missing: than ``ploidy``, or, where that
    is 0, than the largest that the array has room for.

    ``sites`` returns rows of the table of the variants, which are read in blocks of whole chunks of ``site_chunk``
    rows; a variant has at most so many ``alleles``.

    Raises InputError if the elements of the array are not signed integers, or its shape is not that of calls.
    """
    if array.dtype.kind != "i":
        raise InputError(f"{array.place} holds {array.dtype}, not signed integers: it holds no called alleles.")
    width = array.shape[2] if len(array.shape) == 3 else 1
    if len(array.shape) not in (2, 3) or not 1 <= width <= LARGEST_PLOIDY:
        raise InputError(f"{array.place} has the shape {array.shape}; it should be (variants, samples, ploidy), of "
                         f"ploidy 1 to {LARGEST_PLOIDY}.")  # fmt: skip
    if ploidy > width:
        raise InputError(f"{array.place} holds calls of {width} alleles at most, but the ploidy is set to {ploidy}. "
                         f"Set it to {width} or less.")  # fmt: skip
    rows, samples = block_shape(array.shape[:2], array.chunks[:2], width=width)
    return Part(
        variants=array.shape[0],
        ploidy=ploidy or width,
        alleles=alleles,
        rows=rows,
        block_bytes=rows * samples * width * array.dtype.itemsize,
        tables=partial(_tables, sites, array.shape[0], site_chunk),
        encode=partial(_encode, array=array, alleles=alleles, ploidy=ploidy or width, width=samples),
    )


def block_shape(shape: tuple[int, ...], chunks: tuple[int, ...], *, width: int) -> tuple[int, int]:
    """Return the variants of a range, and the samples of a block of it: whole chunks, several where they are small."""
    (variants, samples), (all_variants, all_samples) = (tuple(max(1, size) for size in of) for of in (chunks, shape))
    samples = min(samples, all_samples)
    variants *= max(1, min(BLOCK_BYTES // (variants * samples * width), BLOCK_BYTES // (variants * all_samples)))
    samples *= max(1, BLOCK_BYTES // (variants * samples * width))
    return min(variants, all_variants), min(samples, all_samples)


def _tables(sites: Callable[[slice], pd.DataFrame], variants: int, chunk: int) -> Iterator[pd.DataFrame]:
    return (sites(slice(*block)) for block in row_blocks(variants, chunk=chunk))


def _encode(
    start: int, stop: int, codes: npt.NDArray[Any], tally: Tally, *, array: Array | Block, alleles: int, ploidy: int,
    width: int,
) -> None:  # fmt: skip
    """Encode a range, ``width`` samples at a time. A call with a missing allele, or of another ploidy, is missing."""
    from whitewater.genotypes.encode import encode_alleles

    for first in range(0, array.shape[1], width):
        called = array.read((slice(start, stop), slice(first, first + width)))
        lowest, highest = called.min(), called.max()
        if highest >= alleles or lowest < NOT_CALLED:
            raise InputError(
                f"{array.place} holds the alleles {lowest} to {highest} in variants {start} to {stop - 1}, but the "
                f"variants have at most {alleles} alleles, and -1 and -2 are missing ones. The store is damaged, or of "
                "another layout."
            )
        # A dosage depends on the sign of an allele only, so that the cut loses nothing.
        called = called.clip(NOT_CALLED, np.iinfo(np.int8).max).astype(np.int8) if called.dtype != np.int8 else called
        called = called.reshape(*called.shape[:2], -1)
        if ploidy < called.shape[2] or lowest == NOT_CALLED:
            # Calls with more alleles become missing; those with fewer are so as they are.
            used, longer = called[:, :, :ploidy], (called[:, :, ploidy:] != NOT_CALLED).any(axis=2)
            tally.uneven[:] += ((called[:, :, 0] >= 0) & (longer | (used[:, :, -1] == NOT_CALLED))).sum(axis=1)
            called = np.where(longer[:, :, None], np.int8(MISSING_ALLELE), used)
        encode_alleles(called, first_sample=first, codes=codes, counts=tally.counts, missing=tally.missing)
        for allele in range(min(alleles, tally.seen.shape[1])):
            tally.seen[:, allele] |= (called == allele).any(axis=(1, 2))
