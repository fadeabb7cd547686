"""Genotypes of many samples: two bits each where they are diploid.

Two-bit code: bits ``2k`` and ``2k + 1`` of byte ``b`` of a variant hold the dosage of sample ``4b + k``: 0, 1 or 2, or
3 where the call is missing; codes behind the last sample are 3. Other ploidies are int8 dosages, -1 where missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from whitewater.engines import Array, Device

GENOTYPES_A_BYTE = 4
MISSING_CODE = 3
MISSING_DOSAGE = -1


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

    def on(self, device: Device) -> Genotypes:
        """Return the genotypes in the memory of a device."""
        return Genotypes(device.to_device(self.codes), self.samples, self.ploidy)


def dosages_of(genotypes: Genotypes, chosen: Array) -> Array:
    """Return those of some samples: int8 (variants, chosen samples), -1 where missing; all on one device."""
    codes = genotypes.codes
    if not genotypes.packed:
        return codes[:, chosen]
    unpacked = (codes[:, chosen // GENOTYPES_A_BYTE] >> (2 * (chosen % GENOTYPES_A_BYTE)).astype(np.uint8)) & 3
    dosages: Array = unpacked.astype(np.int8)
    dosages[unpacked == MISSING_CODE] = MISSING_DOSAGE
    return dosages


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
