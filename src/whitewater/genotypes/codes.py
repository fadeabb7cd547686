"""Genotype codes: encode called alleles and PLINK bytes, expand codes to a matrix of floats, count them."""

import numpy as np

from whitewater.engines import Array, Device
from whitewater.engines.kernel import kernel, ones, uint64
from whitewater.genotypes.genotypes import GENOTYPES_A_BYTE, MISSING_CODE, MISSING_DOSAGE, Genotypes, extract_dosages

# Cells of the float32 matrix that genotypes are expanded to at once. CPU: 256 variants of 2,500 samples, 2.5 MB, stay
# in the cache of a core between two products. GPU: 1 GiB, since products of long matrices keep it busy.
SLAB_CELLS = {"cpu": 640_000, "gpu": 2**28}
# Rows of a slab. With fewer, adding its product to the total takes longer than the product. With more, float32 adds up
# too many numbers.
LEAST_ROWS, MOST_ROWS = 128, 4096
# Variants whose missing calls fit into a counter of one byte per sample.
BYTE = 255
BYTES_A_WORD = 8


def slab_rows(device: Device, columns: int) -> int:
    """Return the variants per slab: those that are expanded to float32 and multiplied at once."""
    return min(max(LEAST_ROWS, SLAB_CELLS[device.name] // max(1, columns)), MOST_ROWS)


def expand_genotypes(device: Device, genotypes: Genotypes, table: Array, out: Array | None = None) -> Array:
    """Look up each genotype in the table of its variant.

    ``table`` is float32 (variants, ploidy + 2): the values of dosages 0 to ploidy, then that of a missing call.
    Returns ``out``, float32 (variants, genotypes.columns), in the columns of `Genotypes.sample_columns`. Columns after
    the last sample get the value of a missing call.
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


def count_genotypes(device: Device, genotypes: Genotypes, used: Array | None = None) -> Array:
    """Count the dosages 0 to ploidy, then the missing calls, of each variant: int32 (variants, ploidy + 2).

    ``used``, bool (samples,), selects the samples to count; default: all.
    """
    used = device.xp.ones(genotypes.samples, np.bool_) if used is None else used
    if genotypes.packed and device.name == "cpu":
        return count_packed(genotypes.codes, used)
    counts: Array = device.xp.zeros((genotypes.variants, genotypes.ploidy + 2), np.int32)
    all_samples, rows = device.xp.arange(genotypes.samples), slab_rows(device, genotypes.samples)
    for start in range(0, genotypes.variants, rows):
        slab = genotypes.slice(start, start + rows)
        dosages = extract_dosages(slab, all_samples) if genotypes.packed else slab.codes
        for column, dosage in enumerate([*range(genotypes.ploidy + 1), MISSING_DOSAGE]):
            counts[start : start + rows, column] = ((dosages == dosage) & used).sum(axis=1)
    return counts


def count_missing(genotypes: Genotypes) -> Array:
    """Count the missing calls of each sample, on the host: int64 (samples,)."""
    codes, missing = genotypes.codes, np.zeros(genotypes.samples, np.int64)
    if not genotypes.packed:
        return (codes == MISSING_DOSAGE).sum(axis=0, out=missing)
    for first in range(0, len(codes), BYTE):
        planes = np.zeros((GENOTYPES_A_BYTE, codes.shape[1]), np.uint8)
        add_missing(codes[first : first + BYTE], planes)
        missing += planes.T.ravel()[: len(missing)]
    return missing


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
    for variant in range(len(dosages)):
        row, result, values = dosages[variant], out[variant], table[variant]
        for sample in range(len(row)):
            result[sample] = values[row[sample]]  # -1, a missing call, is the last one


def count_packed(codes: Array, used: Array) -> Array:
    """Count each code among the samples that are true in ``used``, bool (samples,): int32 (variants, 4)."""
    # A mask of the lower bit of each genotype that counts.
    bits = np.zeros((-(-codes.shape[1] // BYTES_A_WORD), 64), np.bool_)
    bits.reshape(-1)[: 2 * len(used) : 2] = used
    return _count_codes(codes, np.packbits(bits, bitorder="little").view(np.uint64), int(np.count_nonzero(used)))


@kernel
def _count_codes(codes: Array, mask: Array, samples: int) -> Array:
    counts, copied = np.empty((len(codes), 4), np.int32), np.zeros(BYTES_A_WORD * len(mask), np.uint8)
    words = copied.view(np.uint64)
    for variant in range(len(codes)):
        row = codes[variant]
        for byte in range(len(row)):
            copied[byte] = row[byte]
        lower, upper, both = 0, 0, 0
        for word in range(len(words)):
            low = words[word] & mask[word]
            high = (words[word] >> uint64(1)) & mask[word]
            lower += ones(low)
            upper += ones(high)
            both += ones(low & high)
        counts[variant, 0] = samples - lower - upper + both
        counts[variant, 1] = lower - both
        counts[variant, 2] = upper - both
        counts[variant, 3] = both
    return counts


def encode_alleles(alleles: Array, *, first_sample: int, codes: Array) -> None:
    """Write the dosages of a chunk of called alleles, int8 (variants, samples, ploidy), into rows of codes.

    A dosage is the number of alleles above 0; a call with a negative allele is missing. ``first_sample`` is the chunk's
    first sample. ``codes`` are dosages, int8 (variants, samples), or, for ploidy 2, packed: uint8 (variants,
    ceil(samples / 4)), with the chunk's samples still missing. The chunk may share its first and last byte with its
    neighbors, so do not encode two chunks of the same variants at once.
    """
    variants, samples, ploidy = alleles.shape
    if codes.dtype == np.int8:
        dosages = np.where((alleles < 0).any(axis=2), np.int8(MISSING_DOSAGE), (alleles > 0).sum(axis=2, dtype=np.int8))
        codes[:, first_sample : first_sample + samples] = dosages
        return
    if ploidy != 2:
        raise ValueError(f"two bits hold genotypes of ploidy 2, not of {ploidy}")
    first_byte, lead = divmod(first_sample, GENOTYPES_A_BYTE)
    packed = np.empty((variants, -(-(lead + samples) // GENOTYPES_A_BYTE)), np.uint8)
    # Compilers vectorize loops over rows of consecutive bytes.
    pack_alleles(np.ascontiguousarray(alleles).reshape(variants, 2 * samples), lead, packed)
    codes[:, first_byte : first_byte + packed.shape[1]] &= packed  # a missing call has all bits set


def encode_bed(bed: Array, *, samples: int) -> Array:
    """Return the genotypes of a PLINK bed file as packed dosages of A1; both are uint8 (variants, ceil(samples / 4)).

    PLINK's code of sample ``4b + k``, in bits ``2k`` and ``2k + 1`` of byte ``b``, is 0 for two copies of A1, 1 for a
    missing call, 2 for one copy and 3 for none (https://www.cog-genomics.org/plink/1.9/formats#bed). Bits after the
    last sample are ignored.
    """
    # Our upper bit is the inverse of PLINK's; our lower one is set where PLINK's two bits differ.
    codes: Array = (~bed & 0b10101010) | ((bed ^ bed >> 1) & 0b01010101)
    if samples % GENOTYPES_A_BYTE:
        codes[:, -1] |= 0xFF << 2 * (samples % GENOTYPES_A_BYTE) & 0xFF
    return codes


@kernel
def pack_alleles(alleles: Array, lead: int, packed: Array) -> None:
    """Fill ``packed`` with diploid calls, int8 (variants, 2 x samples), after ``lead`` missing ones."""
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
