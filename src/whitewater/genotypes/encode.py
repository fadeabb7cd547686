"""Called alleles and PLINK's bytes become the codes of a folder of genotypes, and are counted."""

from __future__ import annotations

import numpy as np

from whitewater.engines.device import Array, Device
from whitewater.engines.kernel import kernel
from whitewater.genotypes.decode import count_genotypes
from whitewater.genotypes.genotypes import GENOTYPES_A_BYTE, MISSING_CODE, MISSING_DOSAGE, Genotypes

# Missing calls of a sample are counted in a byte, many at once, before they are added up.
BYTE = 255


def encode_alleles(alleles: Array, *, first_sample: int, codes: Array, counts: Array, missing: Array) -> None:
    """Write the dosages of called alleles into rows of codes, and count them.

    The dosage of a call is the number of its alleles above 0; a call with a negative allele is missing. A byte of
    packed codes that holds samples before or behind these, too, is read and written: no two chunks of the same variants
    may be encoded at once.

    Parameters
    ----------
    alleles
        int8 (variants, samples of a chunk, ploidy).
    first_sample
        Column of the chunk's first sample.
    codes
        Packed: uint8 (variants, ceil(samples / 4)), ploidy 2 only, where the chunk's samples are missing before; or
        dosages: int8 (variants, samples).
    counts
        int32 (variants, ploidy + 2), added to: samples of each dosage, then missing calls.
    missing
        int64 (samples,), added to: missing calls of each sample.
    """
    variants, samples, ploidy = alleles.shape
    if not samples:
        return
    chunk_missing = missing[first_sample : first_sample + samples]
    if codes.dtype == np.int8:
        dosages = np.where((alleles < 0).any(axis=2), np.int8(MISSING_DOSAGE), (alleles > 0).sum(axis=2, dtype=np.int8))
        codes[:, first_sample : first_sample + samples] = dosages
        for place, dosage in enumerate([*range(ploidy + 1), MISSING_DOSAGE]):
            counts[:, place] += (dosages == dosage).sum(axis=1)
        chunk_missing += (dosages == MISSING_DOSAGE).sum(axis=0)
        return
    if ploidy != 2:
        raise ValueError(f"two bits hold genotypes of ploidy 2, not of {ploidy}")
    first_byte, lead = divmod(first_sample, GENOTYPES_A_BYTE)
    packed = np.empty((variants, -(-(lead + samples) // GENOTYPES_A_BYTE)), np.uint8)
    # Rows of consecutive bytes are what a compiler makes vectors of.
    pack_alleles(np.ascontiguousarray(alleles).reshape(variants, 2 * samples), lead, packed)
    codes[:, first_byte : first_byte + packed.shape[1]] &= packed  # the bits of a missing call are all 1
    _count(packed, lead, counts, chunk_missing)


def encode_bed(bed: Array, *, samples: int, codes: Array, counts: Array, missing: Array) -> None:
    """Write the genotypes of a PLINK bed file as packed dosages of A1, and count them.

    PLINK's code of sample ``4b + k``, in bits ``2k`` and ``2k + 1`` of byte ``b``, is 0 for two copies of A1, 1 for a
    missing call, 2 for one copy and 3 for none (https://www.cog-genomics.org/plink/1.9/formats#bed).

    Parameters
    ----------
    bed, codes
        uint8 (variants, ceil(samples / 4)). What ``bed`` holds behind the last sample is ignored.
    counts
        int32 (variants, 4), added to: samples with 0, 1 and 2 copies of A1, then missing calls.
    missing
        int64 (samples,), added to: missing calls of each sample.
    """
    # The upper bit is the inverse of theirs; the lower one is set where their two differ.
    codes[:] = (~bed & 0b10101010) | ((bed ^ bed >> 1) & 0b01010101)
    if samples % GENOTYPES_A_BYTE:
        codes[:, -1] |= 0xFF << 2 * (samples % GENOTYPES_A_BYTE) & 0xFF
    _count(codes, 0, counts, missing)


def _count(packed: Array, lead: int, counts: Array, missing: Array) -> None:
    """Add the genotypes of ``packed`` to the counts of variants and samples, which stand behind ``lead`` others."""
    end = lead + len(missing)
    counts += count_genotypes(Device(), Genotypes(packed, end), np.arange(end) >= lead)
    for first in range(0, len(packed), BYTE):
        planes = np.zeros((GENOTYPES_A_BYTE, packed.shape[1]), np.uint8)
        add_missing(packed[first : first + BYTE], planes)
        missing += planes.T.ravel()[lead:end]


@kernel
def pack_alleles(alleles: Array, lead: int, packed: Array) -> None:
    """Fill ``packed`` with diploid calls, int8 (variants, 2 x samples), the first behind ``lead`` missing ones."""
    unpacked = np.full(4 * packed.shape[1], MISSING_CODE, np.uint8)
    filled = unpacked[lead : lead + alleles.shape[1] // 2]
    for variant in range(len(alleles)):
        row, packed_row = alleles[variant], packed[variant]
        for sample in range(len(filled)):
            first, second = row[2 * sample], row[2 * sample + 1]
            filled[sample] = MISSING_CODE if (first | second) < 0 else (first > 0) + (second > 0)
        for byte in range(len(packed_row)):
            at = 4 * byte
            packed_row[byte] = unpacked[at] | unpacked[at + 1] << 2 | unpacked[at + 2] << 4 | unpacked[at + 3] << 6


@kernel
def add_missing(packed: Array, planes: Array) -> None:
    """Add the missing calls of each sample ``4b + k`` to ``planes[k, b]``, uint8."""
    for variant in range(len(packed)):
        row = packed[variant]
        for place in range(4):
            plane = planes[place]
            for byte in range(len(row)):
                plane[byte] += (row[byte] & row[byte] >> 1) >> 2 * place & 1
