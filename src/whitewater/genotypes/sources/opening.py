"""Opens the source of genotypes that the settings name."""

from collections.abc import Mapping
from pathlib import Path

from whitewater.errors import InputError, redact
from whitewater.genotypes.config import GenotypeSource
from whitewater.genotypes.sources.plink import open_plink
from whitewater.genotypes.sources.source import Source


def open_source(settings: GenotypeSource, simulated: Mapping[str, Path], *, scratch: Path, threads: int = 1) -> Source:
    """Open the source that the settings name.

    ``simulated`` maps names to files of the simulation, which the source ``generated`` reads. VCF files are converted
    in ``scratch`` by ``threads`` processes; keep it as long as the source is used.

    Raises InputError if the source is missing, malformed, or without variants or samples.
    """
    if settings.source == "plink":
        source = open_plink(settings.plink.prefix)
    elif settings.source == "vcf":
        from whitewater.genotypes.sources.vcf import open_vcf

        source = open_vcf(settings.vcf, scratch=scratch, threads=threads)
    else:
        from whitewater.genotypes.sources.stores import open_malariagen, open_vcz

        vcz = settings.vcz
        if settings.source == "generated":
            vcz = vcz.model_copy(update={"store": str(simulated_file(simulated, "simulated.vcz"))})
        source = open_malariagen(settings.malariagen) if settings.source == "malariagen" else open_vcz(vcz)
    if not source.variants or not source.samples:
        raise InputError(f"{redact(source.origins[0])}: there are {source.variants} variants and "
                         f"{len(source.samples)} samples. The source is empty; give another.")  # fmt: skip
    return source


def list_paths(settings: GenotypeSource) -> list[str]:
    """Return the paths and URLs of the source in the settings."""
    paths = {
        "vcz": [settings.vcz.store],
        "malariagen": [settings.malariagen.store, settings.malariagen.sites],
        "plink": [f"{settings.plink.prefix}{suffix}" for suffix in (".bed", ".bim", ".fam")],
        "vcf": settings.vcf.paths,
    }
    return [*paths.get(settings.source, [])]


def simulated_file(simulated: Mapping[str, Path], name: str) -> Path:
    """Return the path of a file of the simulation. Raises InputError if it was not given."""
    if name not in simulated:
        raise InputError(f"genomics.ingest.source is 'generated', but {name} was not given: name it in --simulated.")
    return simulated[name]
