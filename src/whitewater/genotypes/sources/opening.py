"""Opens the source of genotypes that the settings name."""

from collections.abc import Mapping
from pathlib import Path

from whitewater.errors import InputError, redact
from whitewater.genotypes.config import GenotypeSource
from whitewater.genotypes.sources.plink import open_plink
from whitewater.genotypes.sources.source import Source


def open_source(settings: GenotypeSource, simulated: Mapping[str, Path], *, scratch: Path, threads: int = 1) -> Source:
    """Open the source that the settings name.

    ``simulated`` are files of the simulation by name, read where the source is ``generated``. VCF files are converted
    by ``threads`` processes in the directory ``scratch``, which is needed as long as the source is.

    Raises InputError if the source is missing, not of the form that its format demands, or without variants or samples.
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
    """Return where a file of the simulation is. Raises InputError if it was not given."""
    if name not in simulated:
        raise InputError(f"genomics.ingest.source is 'generated', but {name} was not given: name it in --simulated.")
    return simulated[name]
