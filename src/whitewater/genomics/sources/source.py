"""What the step `ingest` asks of a source of genotypes, whichever format it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from whitewater.devices.genotypes import GENOTYPES_A_BYTE, MISSING_CODE, MISSING_DOSAGE

if TYPE_CHECKING:
    import pandas as pd

# Bytes of a block of calls that is read at once, and about those of a range's codes, unless a chunk is larger.
BLOCK_BYTES = 8 << 20

Dosages = npt.NDArray[np.int8]


class Source(Protocol):
    """Genotypes of many samples, read a range of variants at a time by any number of workers."""

    @property
    def variants(self) -> int:
        """The number of variants."""

    @property
    def samples(self) -> tuple[str, ...]:
        """The names of the samples, in the order of the calls."""

    @property
    def ploidy(self) -> int:
        """The number of alleles of a call."""

    @property
    def block_bytes(self) -> int:
        """Bytes of the largest block of calls that is read at once."""

    def origins(self) -> tuple[str, ...]:
        """Return the files, directories and URLs that are read."""

    def variants_table(self) -> pd.DataFrame:
        """Return a row a variant: contig, position, id, reference, alternate, alleles, filter_pass."""

    def ranges(self) -> list[tuple[int, int]]:
        """Cut the variants into the units that are read at once; together they are all variants."""

    def encode(
        self,
        start: int,
        stop: int,
        codes: npt.NDArray[Any],
        counts: npt.NDArray[np.int32],
        missing: npt.NDArray[np.int64],
        *,
        uneven: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_] | None:
        """Write the genotypes of the variants from ``start`` to before ``stop``, and count them.

        Parameters
        ----------
        codes
            Rows of a folder of genotypes; all calls are missing at first.
        counts
            int32 (variants, ploidy + 2), added to: the samples of each dosage, missing ones last.
        missing
            int64 (samples,), added to: missing calls of each sample.
        uneven
            int64 (variants,), added to: calls that are missing only because they have another number of alleles.

        Returns
        -------
        array or None
            bool (variants, alleles): which alleles the calls hold, of a source whose table lists every allele that a
            variant might have; None of other sources.
        """


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
