"""The kernels of `whitewater.genotypes.decode` for the CPU, and two-bit genotypes counted many at a time.

A *lane* is the lower bit of a genotype; a mask of lanes tells which genotypes count.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import kernel, ones, uint64

LANES = 0x5555555555555555
BYTES_A_WORD = 8


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


def lanes_of(chosen: Array, size: int, xp: ModuleType) -> Array:
    """Return the lanes of the chosen genotypes, uint8 (size,), of bool (samples,) and at least the bytes of them."""
    places = xp.zeros((size, 4), np.uint8)
    places.reshape(-1)[: len(chosen)] = chosen
    lanes: Array = places[:, 0] | places[:, 1] << 2 | places[:, 2] << 4 | places[:, 3] << 6
    return lanes
