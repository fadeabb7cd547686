"""What the step `ingest` asks of a source of genotypes, whichever format it has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError
from whitewater.redaction import redacted

if TYPE_CHECKING:
    import pandas as pd

    from whitewater.config.genomics import GenotypeSource

# Bytes of a block of calls that is read at once, and about those of a range's codes, unless a chunk is larger.
BLOCK_BYTES = 8 << 20


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


def open_source(settings: GenotypeSource, simulated: Mapping[str, Path], *, scratch: Path, threads: int = 1) -> Source:
    """Open the source that the settings name.

    Parameters
    ----------
    simulated
        Files of the simulation by name, read where the source is ``generated``.
    scratch
        Directory in which VCF files are converted; it is made if need be, and needed as long as the source is.
    threads
        Processes that convert VCF files.

    Raises
    ------
    InputError
        If it is missing, not of the form that its format demands, or without variants or samples.
    """
    source = _open(settings, simulated, scratch=scratch, threads=threads)
    if not source.variants or not source.samples:
        raise InputError(f"{redacted(source.origins()[0])}: there are {source.variants} variants and "
                         f"{len(source.samples)} samples. The source is empty; give another.")  # fmt: skip
    return source


def _open(settings: GenotypeSource, simulated: Mapping[str, Path], *, scratch: Path, threads: int) -> Source:
    if settings.source == "plink":
        from whitewater.genomics.sources.plink import open_plink

        return open_plink(settings.plink.prefix)
    if settings.source == "malariagen":
        from whitewater.genomics.sources.malariagen import open_malariagen

        return open_malariagen(settings.malariagen)
    if settings.source == "vcf":
        from whitewater.genomics.sources.vcf import open_vcf

        return open_vcf(settings.vcf, scratch=scratch, threads=threads)
    from whitewater.genomics.sources.vcz import open_vcz

    if settings.source == "generated":
        return open_vcz(settings.vcz.model_copy(update={"store": str(simulated_file(simulated, "simulated.vcz"))}))
    return open_vcz(settings.vcz)


def named_places(settings: GenotypeSource) -> list[str]:
    """Return the files and stores that the settings name for the source."""
    prefix, malariagen = settings.plink.prefix, settings.malariagen
    named = {
        "vcz": [settings.vcz.store],
        "malariagen": [malariagen.store, malariagen.sites],
        "plink": [f"{prefix}{suffix}" for suffix in (".bed", ".bim", ".fam")],
        "vcf": settings.vcf.paths,
    }
    return [*named.get(settings.source, [])]


def simulated_file(simulated: Mapping[str, Path], name: str) -> Path:
    """Return where a file of the simulation is.

    Raises
    ------
    InputError
        If it was not given.
    """
    if name not in simulated:
        raise InputError(f"genomics.ingest.source is 'generated', but {name} was not given: name it in --simulated.")
    return simulated[name]
