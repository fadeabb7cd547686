"""Dosages of a source, or of codes, for all samples or some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater.devices.genotypes import GENOTYPES_A_BYTE, MISSING_CODE, MISSING_DOSAGE

if TYPE_CHECKING:
    from whitewater.genomics.sources import Source

Dosages = npt.NDArray[np.int8]


def dosages_of(codes: npt.NDArray[np.uint8], chosen: npt.NDArray[np.intp]) -> Dosages:
    """Unpack some samples of two-bit codes: int8 (variants, chosen samples), -1 where missing."""
    unpacked = (codes[:, chosen // GENOTYPES_A_BYTE] >> (2 * (chosen % GENOTYPES_A_BYTE)).astype(np.uint8)) & 3
    dosages = unpacked.astype(np.int8)
    dosages[unpacked == MISSING_CODE] = MISSING_DOSAGE
    return dosages


def read_dosages(
    source: Source, start: int, stop: int, *, counts: npt.NDArray[np.int32], uneven: npt.NDArray[np.int64]
) -> Dosages:
    """Return the dosages of all samples, int8 (variants, samples); see `Source.encode`, also for what is counted."""
    variants, samples = stop - start, len(source.samples)
    missing = np.zeros(samples, np.int64)
    if source.ploidy != 2:
        dosages = np.full((variants, samples), MISSING_DOSAGE, np.int8)
        source.encode(start, stop, dosages, counts, missing, uneven=uneven)
        return dosages
    codes = np.full((variants, -(-samples // GENOTYPES_A_BYTE)), 0xFF, np.uint8)
    source.encode(start, stop, codes, counts, missing, uneven=uneven)
    return dosages_of(codes, np.arange(samples))
