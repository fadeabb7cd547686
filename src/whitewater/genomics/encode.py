"""Called alleles and PLINK's bytes become the codes of a folder of genotypes, counted in the same pass."""

from __future__ import annotations

import numpy as np

from whitewater.devices.genotype_kernels import lanes_of, whole_words
from whitewater.devices.genotypes import GENOTYPES_A_BYTE
from whitewater.devices.protocol import Array


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
        Packed: uint8 (variants, ceil(samples / 4)), ploidy 2 only; or dosages: int8 (variants, samples).
    counts
        int32 (variants, ploidy + 2), added to: samples of each dosage, then missing calls.
    missing
        int64 (samples,), added to: missing calls of each sample.
    """
    from whitewater.genomics.encode_kernels import encode_dosages, encode_packed

    variants, samples, ploidy = alleles.shape
    if not samples:
        return
    # Rows of consecutive bytes are what a compiler makes vectors of.
    alleles = np.ascontiguousarray(alleles)
    chunk_missing = missing[first_sample : first_sample + samples]
    if codes.dtype == np.int8:
        encode_dosages(alleles, codes[:, first_sample : first_sample + samples], counts, chunk_missing)
        return
    if ploidy != 2:
        raise ValueError(f"two bits hold genotypes of ploidy 2, not of {ploidy}")
    first_byte, lead = divmod(first_sample, GENOTYPES_A_BYTE)
    chunk_codes = codes[:, first_byte : first_byte + _bytes(lead + samples)]
    rows = alleles.reshape(variants, 2 * samples)
    encode_packed(rows, lead, chunk_codes, (counts, chunk_missing), _memory(samples, lead=lead))


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
    from whitewater.genomics.encode_kernels import recode_bed

    recode_bed(bed, codes, (counts, missing[:samples]), _memory(samples))


def _memory(samples: int, *, lead: int = 0) -> tuple[Array, Array]:
    """Return memory for a row of packed codes, and the lanes of the samples that stand in it behind ``lead`` others."""
    lanes = whole_words(lanes_of(np.repeat([False, True], [lead, samples]), _bytes(lead + samples), np))
    return np.zeros_like(lanes), lanes


def _bytes(samples: int) -> int:
    return -(-samples // GENOTYPES_A_BYTE)
