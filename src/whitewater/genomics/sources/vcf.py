"""VCF files, converted to VCF Zarr by bio2zarr, which reads them with cyvcf2."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from whitewater.config.genomics import Vcf, Vcz
from whitewater.genomics.sources.vcf_conversion import convert
from whitewater.genomics.sources.vcf_header import check_headers
from whitewater.genomics.sources.vcz import VczSource, open_vcz


@dataclass(frozen=True)
class VcfSource(VczSource):
    """Converted VCF files, see `Source`."""

    paths: tuple[str, ...] = ()

    def origins(self) -> tuple[str, ...]:
        """Return the VCF files."""
        return self.paths


def open_vcf(settings: Vcf, *, scratch: Path, threads: int) -> VcfSource:
    """Convert VCF or BCF files to VCF Zarr, and open that.

    Parameters
    ----------
    settings
        Paths of files of the same samples, and their ploidy. A file of several contigs must be compressed by bgzip and
        indexed (.tbi or .csi).
    scratch
        Directory for the conversion; the source needs it as long as it is read.
    threads
        Processes that convert.

    Raises
    ------
    InputError
        If a file is missing, unreadable, cut off, without genotypes, or not indexed although it must be: see
        `check_headers` and `convert`.
    """
    files = [Path(path).expanduser() for path in settings.paths]
    check_headers(files)
    source = open_vcz(Vcz(store=str(convert(files, scratch, threads=threads)), ploidy=settings.ploidy))
    return VcfSource(**{**vars(source), "paths": tuple(map(str, files))})
