"""Genotypes of many samples: two bits each where they are diploid, and what a pass over them looks up.

Two-bit code: bits ``2k`` and ``2k + 1`` of byte ``b`` of a variant hold the dosage of sample ``4b + k``: 0, 1 or 2, or
3 where the call is missing; codes behind the last sample are 3. Other ploidies are int8 dosages, -1 where missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from whitewater.engines import Array

GENOTYPES_A_BYTE = 4
MISSING_CODE = 3
MISSING_DOSAGE = -1
_GPU_THREADS = 256


@dataclass(frozen=True)
class Genotypes:
    """Dosages of the non-reference allele.

    ``codes`` is uint8 (variants, ceil(samples / 4)) where genotypes are packed, else int8 (variants, samples); on any
    device.
    """

    codes: Array
    samples: int
    ploidy: int = 2

    @property
    def packed(self) -> bool:
        """Whether a byte holds four genotypes."""
        return bool(self.codes.dtype == np.uint8)

    @property
    def variants(self) -> int:
        """The number of variants."""
        return int(self.codes.shape[0])

    @property
    def columns(self) -> int:
        """Columns of an expanded matrix: `samples`, or where packed the next multiple of four."""
        return int(self.codes.shape[1]) * (GENOTYPES_A_BYTE if self.packed else 1)

    def between(self, start: int, stop: int) -> Genotypes:
        """Return the variants from ``start`` to before ``stop``, without a copy."""
        return Genotypes(self.codes[start:stop], self.samples, self.ploidy)


def rows_in_column_order(rows: Array, genotypes: Genotypes, xp: ModuleType) -> Array:
    """Bring rows of samples into the order of the columns of an expanded matrix, those behind the last sample 0.

    Packed genotypes are expanded bit by bit of whole bytes, which a processor does with many at once: first all samples
    ``4b``, then all ``4b + 1`` and so on.

    ``rows`` are (samples, k); the result is (columns, k), of the same dtype, in C order.
    """
    if not genotypes.packed:
        return rows
    padded = xp.zeros((genotypes.columns, rows.shape[1]), rows.dtype)
    padded[: genotypes.samples] = rows
    planes = padded.reshape(genotypes.codes.shape[1], GENOTYPES_A_BYTE, rows.shape[1]).transpose(1, 0, 2)
    ordered: Array = xp.ascontiguousarray(planes).reshape(genotypes.columns, rows.shape[1])
    return ordered


def rows_in_sample_order(rows: Array, genotypes: Genotypes, xp: ModuleType) -> Array:
    """Undo `rows_in_column_order`: (columns, k) -> (samples, k)."""
    if not genotypes.packed:
        return rows
    planes = rows.reshape(GENOTYPES_A_BYTE, genotypes.codes.shape[1], rows.shape[1]).transpose(1, 0, 2)
    ordered: Array = xp.ascontiguousarray(planes).reshape(genotypes.columns, rows.shape[1])[: genotypes.samples]
    return ordered


def cpu_expand_genotypes(genotypes: Genotypes, table: Array, out: Array | None = None) -> Array:
    """Look up each genotype in the table of its variant; see `whitewater.engines.device.Device.expand_genotypes`."""
    from whitewater.genotypes.kernels import expand_dosages, expand_packed

    if out is None:
        out = np.empty((genotypes.variants, genotypes.columns), np.float32)
    if genotypes.packed:
        expand_packed(genotypes.codes, table, out)
    else:
        expand_dosages(genotypes.codes, table, out)
    return out


def gpu_expand_genotypes(genotypes: Genotypes, table: Array, out: Array | None = None) -> Array:
    """Look up each genotype in the table of its variant, a thread to each byte."""
    import cupy

    from whitewater.engines.gpu_kernels import gpu_expand_dosages, gpu_expand_packed

    if out is None:
        out = cupy.empty((genotypes.variants, genotypes.columns), np.float32)
    blocks = -(-genotypes.codes.size // _GPU_THREADS)
    if blocks and genotypes.packed:
        gpu_expand_packed[blocks, _GPU_THREADS](genotypes.codes, table, out)
    elif blocks:
        gpu_expand_dosages[blocks, _GPU_THREADS](genotypes.codes, table, out)
    return out


def cpu_count_genotypes(genotypes: Genotypes, chosen: Array | None = None) -> Array:
    """Count the dosages of each variant; see `whitewater.engines.device.Device.count_genotypes`."""
    from whitewater.genotypes.kernels import count_dosages, count_packed, lanes_of, whole_words

    codes, counts = genotypes.codes, np.zeros((genotypes.variants, genotypes.ploidy + 2), np.int32)
    counting = np.ones(genotypes.samples, bool) if chosen is None else chosen
    if genotypes.packed:
        lanes = lanes_of(counting, codes.shape[1], np)
        words = whole_words(np.zeros_like(lanes))
        count_packed(codes, words, whole_words(lanes), int(np.count_nonzero(counting)), counts)
    else:
        count_dosages(codes, counting, counts)
    return counts


def gpu_count_genotypes(genotypes: Genotypes, chosen: Array | None = None) -> Array:
    """Count the dosages of each variant."""
    import cupy

    counting = cupy.ones(genotypes.samples, np.bool_) if chosen is None else chosen
    counts: Array = cupy.zeros((genotypes.variants, genotypes.ploidy + 2), np.int32)
    if genotypes.packed:
        _gpu_count_packed(genotypes.codes, counting, counts)
    else:
        for dosage in range(genotypes.ploidy + 1):
            counts[:, dosage] = ((genotypes.codes == dosage) & counting).sum(axis=1)
        counts[:, -1] = ((genotypes.codes < 0) & counting).sum(axis=1)
    return counts


def _gpu_count_packed(codes: Array, counting: Array, counts: Array) -> None:
    import cupy

    from whitewater.engines.gpu_kernels import GPU_STRIPS, gpu_count_packed
    from whitewater.genotypes.kernels import lanes_of

    blocks = -(-len(codes) * GPU_STRIPS // _GPU_THREADS)
    if blocks:
        lanes = lanes_of(counting, codes.shape[1], cupy)
        gpu_count_packed[blocks, _GPU_THREADS](codes, lanes, counts)
