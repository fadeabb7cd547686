"""Called alleles and PLINK's bytes become the codes of a folder of genotypes, counted in the same pass.

Of the kernels, ``tallies`` are the counts, int32 (variants, codes), and the missing calls of each sample, int64
(samples,), added to; ``memory`` is a row of packed codes, and the lanes of its samples (see
`whitewater.genotypes.decode_cpu`), both uint64.
"""

from __future__ import annotations

import numpy as np

from whitewater.engines.device import Array
from whitewater.engines.kernel import kernel, part
from whitewater.genotypes.decode_cpu import add_counts, lanes_of, whole_words
from whitewater.genotypes.genotypes import GENOTYPES_A_BYTE, MISSING_CODE, MISSING_DOSAGE

# Missing calls of a sample are counted in a byte, many at once, before they are added up.
_BYTE = 255


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
    chunk_codes = codes[:, first_byte : first_byte + _bytes(lead + samples)]
    # Rows of consecutive bytes are what a compiler makes vectors of.
    rows = np.ascontiguousarray(alleles).reshape(variants, 2 * samples)
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
    recode_bed(bed, codes, (counts, missing[:samples]), _memory(samples))


def _memory(samples: int, *, lead: int = 0) -> tuple[Array, Array]:
    """Return memory for a row of packed codes, and the lanes of the samples that stand in it behind ``lead`` others."""
    lanes = whole_words(lanes_of(np.repeat([False, True], [lead, samples]), _bytes(lead + samples), np))
    return np.zeros_like(lanes), lanes


def _bytes(samples: int) -> int:
    return -(-samples // GENOTYPES_A_BYTE)


@kernel
def encode_packed(
    alleles: Array, lead: int, codes: Array, tallies: tuple[Array, Array], memory: tuple[Array, Array]
) -> None:
    """Encode diploid calls, int8 (variants, 2 x samples), before which ``lead`` samples stand in ``codes``."""
    (counts, missing), (words, lanes) = tallies, memory
    size, samples, packed = codes.shape[1], len(missing), words.view(np.uint8)
    unpacked = np.full(4 * size, MISSING_CODE, np.uint8)
    planes = np.zeros((4, size), np.uint8)
    for variant in range(len(alleles)):
        _fill_codes(alleles[variant], unpacked[lead : lead + samples])
        _pack(unpacked, packed)
        add_counts(words, lanes, samples, counts[variant])
        _merge(packed, lead, samples, codes[variant])
        _gather_missing(packed, planes)
        if (variant + 1) % _BYTE == 0:
            _add_missing(planes, lead, missing)
    _add_missing(planes, lead, missing)


@kernel
def recode_bed(bed: Array, codes: Array, tallies: tuple[Array, Array], memory: tuple[Array, Array]) -> None:
    """Encode PLINK's code."""
    (counts, missing), (words, lanes) = tallies, memory
    size, samples, packed = codes.shape[1], len(missing), words.view(np.uint8)
    planes = np.zeros((4, size), np.uint8)
    for variant in range(len(bed)):
        _recode(bed[variant], samples, packed)
        add_counts(words, lanes, samples, counts[variant])
        _copy(packed, codes[variant])
        _gather_missing(packed, planes)
        if (variant + 1) % _BYTE == 0:
            _add_missing(planes, 0, missing)
    _add_missing(planes, 0, missing)


@part
def _fill_codes(alleles: Array, unpacked: Array) -> None:
    for sample in range(len(unpacked)):
        first, second = alleles[2 * sample], alleles[2 * sample + 1]
        unpacked[sample] = MISSING_CODE if (first | second) < 0 else (first > 0) + (second > 0)


@part
def _pack(unpacked: Array, packed: Array) -> None:
    for byte in range(len(unpacked) // 4):
        first = 4 * byte
        packed[byte] = unpacked[first] | unpacked[first + 1] << 2 | unpacked[first + 2] << 4 | unpacked[first + 3] << 6


@part
def _recode(bed: Array, samples: int, packed: Array) -> None:
    """Make our code of PLINK's: the upper bit is the inverse of theirs, the lower one is set where their two differ."""
    for byte in range(len(bed)):
        packed[byte] = (~bed[byte] & 0b10101010) | ((bed[byte] ^ bed[byte] >> 1) & 0b01010101)
    if samples % 4:
        packed[len(bed) - 1] |= 0xFF << 2 * (samples % 4)


@part
def _merge(packed: Array, lead: int, samples: int, codes: Array) -> None:
    """Write a row of codes but for what stands before and behind its samples."""
    last = len(codes) - 1
    before, behind = (1 << 2 * lead) - 1, 0xFF << 2 * ((lead + samples - 1) % 4 + 1)
    first_code, last_code = codes[0], codes[last]
    _copy(packed, codes)
    codes[0] = (codes[0] & ~before) | (first_code & before)
    codes[last] = (codes[last] & ~behind) | (last_code & behind)


@part
def _copy(packed: Array, codes: Array) -> None:
    for byte in range(len(codes)):
        codes[byte] = packed[byte]


@part
def _gather_missing(packed: Array, planes: Array) -> None:
    for place in range(4):
        plane = planes[place]
        for byte in range(len(plane)):
            plane[byte] += (packed[byte] & packed[byte] >> 1) >> 2 * place & 1


@part
def _add_missing(planes: Array, lead: int, missing: Array) -> None:
    """Add the missing calls of samples to ``missing``, and begin anew."""
    for sample in range(len(missing)):
        missing[sample] += planes[(lead + sample) % 4, (lead + sample) // 4]
    planes[:] = 0
