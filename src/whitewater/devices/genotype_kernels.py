"""The kernels of `whitewater.devices.genotypes` for the CPU."""

from __future__ import annotations

import numpy as np

from whitewater.devices.genotype_bits import add_counts
from whitewater.devices.kernel import kernel
from whitewater.devices.protocol import Array


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
def count_packed(codes: Array, words: Array, lanes: Array, samples: int, counts: Array) -> None:
    """Add to ``counts``, int32 (variants, 4), the genotypes of each code; ``words`` is memory of a row, 0 before."""
    copied = words.view(np.uint8)
    for variant in range(len(codes)):
        row = codes[variant]
        for byte in range(len(row)):
            copied[byte] = row[byte]
        add_counts(words, lanes, samples, counts[variant])


@kernel
def count_dosages(dosages: Array, chosen: Array, counts: Array) -> None:
    """Add to ``counts``, int32 (variants, ploidy + 2), the chosen samples of each dosage, missing ones last."""
    last = counts.shape[1] - 1
    for variant in range(len(dosages)):
        row = dosages[variant]
        for place in range(last + 1):
            dosage = place if place < last else -1
            counted = 0
            for sample in range(len(row)):
                counted += (row[sample] == dosage) & chosen[sample]
            counts[variant, place] += counted
