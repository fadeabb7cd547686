"""The kinship of all pairs of two tiles of samples: products of matrices on a device.

The entries of the matrices are small integers, and so few of them are added up that float32 is exact (and TF32, too,
which has 11 bits for an entry). So results are equal on every device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from whitewater.devices import Array, Device
from whitewater.devices.genotypes import GENOTYPES_A_BYTE, Genotypes, rows_in_column_order

# Two counts in one product: of a slab of fewer than 2^10 variants, one is in the lower 10 bits, one in those above.
DIGIT_BITS = 10
SLAB_VARIANTS = 2**DIGIT_BITS - 1
# Values by dosage 0, 1, 2, and of a missing call.
Values = tuple[float, float, float, float]
HETEROZYGOUS: Values = (0, 1, 0, 0)
SIGN: Values = (-1, 0, 1, 0)
CALLED: Values = (1, 1, 1, 0)
CALLED_AND_HETEROZYGOUS: Values = (1, 1 + 2**DIGIT_BITS, 1, 0)
Planes = Callable[[Values], Array]
# Bins of the histogram, 1/128 wide, from -1/2 to 1/2; every edge and every product with 128 is exact.
BINS = 128
# Bytes that a pair of samples takes for a while: eight counts of int32 and four values of eight bytes.
BYTES_A_PAIR = 64


@dataclass(frozen=True)
class Pairs:
    """Related pairs of samples, and what all pairs together look like; host arrays.

    ``related``, int64 (pairs, 5): the places of the two samples, the smaller first; the variants with a call in both,
    those heterozygous in both, and those homozygous for different alleles. ``kinship`` is float64 (pairs,).
    ``histogram``, int64 (BINS,), counts all pairs but the ``undefined`` ones, in which a sample has no heterozygous
    call that counts; values below the first bin are in it.
    """

    related: npt.NDArray[np.int64]
    kinship: npt.NDArray[np.float64]
    histogram: npt.NDArray[np.int64]
    undefined: int


@dataclass
class Counts:
    """Variants by what the calls are of a sample of the first tile and one of the second; int32 (first, second).

    ``het_called``: heterozygous in the first, called in the second; ``called_het`` the other way round; ``signs``:
    those homozygous alike less those homozygous for different alleles.
    """

    het_het: Array
    signs: Array
    het_called: Array
    called_het: Array
    called: Array


def columns_of(genotypes: Genotypes, tile: tuple[int, int]) -> Genotypes:
    """Return the calls of the samples from the first of a tile, a multiple of four, to before its end, not copied."""
    cells = GENOTYPES_A_BYTE if genotypes.packed else 1
    start, stop = tile
    return Genotypes(genotypes.codes[:, start // cells : -(-stop // cells)], stop - start)


def places_of(tile: Genotypes, start: int) -> npt.NDArray[np.int64]:
    """Return the place among all samples of each column of an expanded tile, -1 behind its last: int64 (columns,)."""
    counted = np.arange(start + 1, start + 1 + tile.samples)[:, None]
    return np.asarray(rows_in_column_order(counted, tile, np)[:, 0] - 1, np.int64)


def count_pairs(first: Genotypes, second: Genotypes | None, *, complete: int, device: Device) -> Counts:
    """Count the variants of all pairs of two tiles, or of a tile with itself where there is no second.

    The first ``complete`` variants have no missing call, so that two products of three are enough for them.
    """
    xp = device.xp
    shape = (first.columns, (second or first).columns)
    total = Counts(*(xp.zeros(shape, xp.int32) for _ in range(5)))
    step = max(1, min(device.slab_cells // max(shape), SLAB_VARIANTS))
    for low, high in (*_slabs(0, complete, step), *_slabs(complete, first.variants, step)):
        rows = _planes(first.between(low, high), device)
        columns = _planes(second.between(low, high), device) if second else rows
        (_add_complete if low < complete else _add)(total, rows, columns)
    return total


def related_pairs(counts: Counts, first: Array, second: Array, *, threshold: float, device: Device) -> Pairs:
    """Return the pairs of kinship at least ``threshold``; ``first`` and ``second`` are the `places_of` the tiles.

    A pair counts where the place of the first is smaller, and once if the tiles are the same.
    """
    xp = device.xp
    ibs0 = (counts.called - counts.het_called - counts.called_het + counts.het_het - counts.signs) // 2
    fewer = xp.minimum(counts.het_called, counts.called_het)
    differences = 4 * ibs0 + counts.het_called + counts.called_het - 2 * counts.het_het
    kinship = 0.5 - differences / (4.0 * xp.maximum(fewer, 1))
    pairs = (first[:, None] < second[None, :]) & (first[:, None] >= 0)
    defined = pairs & (fewer > 0)
    # Undefined ones get a bin behind the last, so that the array is not empty, which CuPy does not count.
    bins = xp.where(defined, xp.clip(xp.floor(kinship * BINS) + BINS // 2, 0, BINS - 1), BINS).astype(xp.int64)
    rows, columns = xp.nonzero(defined & (kinship >= threshold))
    described = (counts.called[rows, columns], counts.het_het[rows, columns], ibs0[rows, columns])
    return Pairs(
        device.to_host(xp.stack([first[rows], second[columns], *described], axis=1)),
        device.to_host(kinship[rows, columns]),
        device.to_host(xp.bincount(bins.ravel(), minlength=BINS + 1)[:BINS]),
        int(pairs.sum() - defined.sum()),
    )


def _slabs(start: int, stop: int, step: int) -> list[tuple[int, int]]:
    return [(low, min(low + step, stop)) for low in range(start, stop, step)]


def _planes(tile: Genotypes, device: Device) -> Planes:
    """Return a function that expands a slab by values, float32 (variants, columns), once for each."""
    genotypes = Genotypes(device.from_host(np.ascontiguousarray(tile.codes)), tile.samples)

    @cache
    def plane(values: Values) -> Array:
        table = device.from_host(np.tile(np.array(values, np.float32), (tile.variants, 1)))
        return device.expand_genotypes(genotypes, table)

    return plane


def _add(total: Counts, rows: Planes, columns: Planes) -> None:
    """Add the variants of a slab."""
    called, het_called = _digits(_product(rows(CALLED_AND_HETEROZYGOUS), columns(CALLED)))
    called_het, het_het = _digits(_product(rows(CALLED_AND_HETEROZYGOUS), columns(HETEROZYGOUS)))
    total.called += called
    total.het_called += het_called
    total.called_het += called_het
    total.het_het += het_het
    total.signs += _product(rows(SIGN), columns(SIGN))


def _add_complete(total: Counts, rows: Planes, columns: Planes) -> None:
    """Add the variants of a slab without missing calls; a product of a matrix with itself takes NumPy half as long."""
    first, second = rows(HETEROZYGOUS), columns(HETEROZYGOUS)
    total.called += len(first)
    total.het_called += first.sum(axis=0).astype(np.int32)[:, None]
    total.called_het += second.sum(axis=0).astype(np.int32)[None, :]
    total.het_het += _product(first, second)
    total.signs += _product(rows(SIGN), columns(SIGN))


def _product(rows: Array, columns: Array) -> Array:
    product: Array = (rows.T @ columns).astype(np.int32)
    return product


def _digits(packed: Array) -> tuple[Array, Array]:
    return packed & (2**DIGIT_BITS - 1), packed >> DIGIT_BITS
