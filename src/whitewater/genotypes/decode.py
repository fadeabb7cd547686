"""Genotypes expanded to a matrix of floats, or counted, in one pass: two-bit ones many at a time."""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array, Device
from whitewater.engines.kernel import kernel, ones, uint64
from whitewater.genotypes.genotypes import MISSING_DOSAGE, Genotypes, dosages_of

BYTES_A_WORD = 8

# Cells of the float32 matrix that genotypes are expanded to at once. CPU: 256 variants of 2,500 samples, 2.5 MB, stay
# in the cache of a core between two products. GPU: 1 GiB, since products of long matrices keep it busy.
SLAB_CELLS = {"cpu": 640_000, "gpu": 2**28}


def expand_genotypes(device: Device, genotypes: Genotypes, table: Array, out: Array | None = None) -> Array:
    """Look up each genotype in the table of its variant.

    ``table`` is float32 (variants, ploidy + 2): the values of dosages 0 to ploidy, then that of a missing call.
    Returns float32 (variants, genotypes.columns), written into ``out`` where given. The columns are in the order of
    `whitewater.genotypes.genotypes.rows_in_column_order`; columns behind the last sample get the value of a missing
    call.
    """
    if out is None:
        out = device.xp.empty((genotypes.variants, genotypes.columns), np.float32)
    if device.name == "gpu":
        from whitewater.genotypes.kernels_gpu import gpu_expand_genotypes

        gpu_expand_genotypes(genotypes, table, out)
    elif genotypes.packed:
        expand_packed(genotypes.codes, table, out)
    else:
        expand_dosages(genotypes.codes, table, out)
    return out


def count_genotypes(device: Device, genotypes: Genotypes, chosen: Array | None = None) -> Array:
    """Count the dosages 0 to ploidy, then the missing calls, of each variant: int32 (variants, ploidy + 2).

    Only the samples where ``chosen``, bool (samples,), is true are counted where it is given.
    """
    xp, codes = device.xp, genotypes.codes
    counts: Array = xp.zeros((genotypes.variants, genotypes.ploidy + 2), np.int32)
    counting = xp.ones(genotypes.samples, np.bool_) if chosen is None else chosen
    if genotypes.packed and device.name == "cpu":
        row_bytes = -(-codes.shape[1] // BYTES_A_WORD) * BYTES_A_WORD
        count_packed(codes, lanes_of(counting, row_bytes), int(np.count_nonzero(counting)), counts)
        return counts
    columns, rows = xp.flatnonzero(counting), max(1, SLAB_CELLS[device.name] // genotypes.samples)
    for start in range(0, genotypes.variants, rows):
        dosages = dosages_of(genotypes.between(start, start + rows), columns)
        for place, dosage in enumerate([*range(genotypes.ploidy + 1), MISSING_DOSAGE]):
            counts[start : start + rows, place] = (dosages == dosage).sum(axis=1)
    return counts


def lanes_of(chosen: Array, size: int) -> Array:
    """Return a mask of two-bit genotypes, uint64 of so many bytes: the lower bit of each that is chosen."""
    places = np.zeros((size, 4), np.uint8)
    places.reshape(-1)[: len(chosen)] = chosen
    return (places[:, 0] | places[:, 1] << 2 | places[:, 2] << 4 | places[:, 3] << 6).view(np.uint64)


@kernel
def expand_packed(codes: Array, table: Array, out: Array) -> None:
    """Fill ``out``, float32 (variants, 4 x bytes), with the entries of ``table``, float32 (variants, 4)."""
    size = codes.shape[1]
    for variant in range(len(codes)):
        homozygous_reference, heterozygous = table[variant, 0], table[variant, 1]
        homozygous_alternate, missing = table[variant, 2], table[variant, 3]
        row = codes[variant]
        for place in range(4):
            plane = out[variant, place * size : (place + 1) * size]
            for byte in range(size):
                code = (row[byte] >> (2 * place)) & 3
                low = heterozygous if code & 1 else homozygous_reference
                high = missing if code & 1 else homozygous_alternate
                plane[byte] = high if code & 2 else low


@kernel
def expand_dosages(dosages: Array, table: Array, out: Array) -> None:
    """Fill ``out``, float32 (variants, samples), with the entries of ``table``, float32 (variants, ploidy + 2)."""
    # A pass over the row for each dosage chooses among many values at once; a processor looks up one at a time.
    last = table.shape[1] - 1
    for variant in range(len(dosages)):
        row, filled = dosages[variant], out[variant]
        none, one, missing = table[variant, 0], table[variant, 1], table[variant, last]
        for sample in range(len(row)):
            other = one if row[sample] == 1 else missing
            filled[sample] = none if row[sample] == 0 else other
        for dosage in range(2, last):
            value = table[variant, dosage]
            for sample in range(len(row)):
                filled[sample] = value if row[sample] == dosage else filled[sample]


@kernel
def count_packed(codes: Array, lanes: Array, samples: int, counts: Array) -> None:
    """Add to ``counts``, int32 (variants, 4), the genotypes of each code, of ``samples`` lanes, uint64 (words,)."""
    copied = np.zeros(BYTES_A_WORD * len(lanes), np.uint8)
    words = copied.view(np.uint64)
    for variant in range(len(codes)):
        row = codes[variant]
        for byte in range(len(row)):
            copied[byte] = row[byte]
        lower, upper, both = 0, 0, 0
        for word in range(len(words)):
            low = words[word] & lanes[word]
            high = (words[word] >> uint64(1)) & lanes[word]
            lower += ones(low)
            upper += ones(high)
            both += ones(low & high)
        counts[variant, 0] += samples - lower - upper + both
        counts[variant, 1] += lower - both
        counts[variant, 2] += upper - both
        counts[variant, 3] += both
