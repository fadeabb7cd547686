"""Genotypes expanded to a matrix of floats, or counted, in one pass."""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array, Device
from whitewater.genotypes.genotypes import MISSING_DOSAGE, Genotypes, dosages_of
from whitewater.genotypes.kernels_cpu import count_packed, expand_dosages, expand_packed

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
    counting = device.xp.ones(genotypes.samples, np.bool_) if chosen is None else chosen
    of_bits = genotypes.packed and device.name == "cpu"
    return count_packed(genotypes.codes, counting) if of_bits else _count_dosages(device, genotypes, counting)


def _count_dosages(device: Device, genotypes: Genotypes, counting: Array) -> Array:
    counts: Array = device.xp.zeros((genotypes.variants, genotypes.ploidy + 2), np.int32)
    everyone, rows = device.xp.arange(genotypes.samples), max(1, SLAB_CELLS[device.name] // genotypes.samples)
    for start in range(0, genotypes.variants, rows):
        part = genotypes.between(start, start + rows)
        dosages = dosages_of(part, everyone) if genotypes.packed else part.codes
        for place, dosage in enumerate([*range(genotypes.ploidy + 1), MISSING_DOSAGE]):
            counts[start : start + rows, place] = ((dosages == dosage) & counting).sum(axis=1)
    return counts
