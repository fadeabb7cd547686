"""Checks of the sources of genotypes, for ``whitewater doctor``."""

from __future__ import annotations

from pathlib import Path

from whitewater.genotypes.config import GenotypeSource
from whitewater.genotypes.sources.opening import open_source
from whitewater.io.download import Downloads
from whitewater.io.places import try_files
from whitewater_apps.genomics.config import Genomics


def check(settings: Genomics, downloads: Downloads) -> str:
    """Say how many samples and variants the data sets have; of VCF, which would have to be read whole, which files."""
    ingest, second = settings.ingest, settings.project.second
    parts = [] if ingest.source == "generated" else [_check_source(ingest, downloads, "genomics.ingest")]
    if second.source != "none":
        parts.append(f"second: {_check_source(second, downloads, 'genomics.project.second')}")
    if ingest.labels.table:
        try_files([ingest.labels.table], downloads=downloads, key="genomics.ingest.labels.table")
        parts.append("a table of labels")
    return "; ".join(parts)


def _check_source(settings: GenotypeSource, downloads: Downloads, key: str) -> str:
    if settings.source == "vcf":
        return f"files of VCF: {len(try_files(settings.vcf.paths, downloads=downloads, key=f'{key}.vcf'))}"
    source = open_source(settings, {}, scratch=Path())
    return f"{source.variants:,} variants of {len(source.samples):,} samples"
