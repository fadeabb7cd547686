"""Settings of genotype sources, kinship and principal components."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from whitewater.config.base import Section, Sourced

Fraction = Annotated[float, Field(ge=0, le=1)]
PLOIDY = Field(
    0,
    ge=0,
    le=127,
    description="Alleles per call; 0: as many as the longest call has. Calls of another ploidy count as missing. If "
    "they are the majority, the run stops unless this is set.",
)


class Vcz(Section):
    """A store of VCF Zarr, format 2 or 3."""

    store: str = Field("", description="Path or URL (file, gs, s3, https) of the store.")
    anonymous: bool = Field(True, description="Read gs:// and s3:// without credentials.")
    endpoint: str = Field("", description="URL of another server with the protocol of gs:// or s3://.")
    retries: int = Field(5, ge=0, description="Retries of a failed read.")
    timeout: float = Field(60.0, gt=0, description="Seconds to wait for an answer to a read.")
    filled_arrays: tuple[str, ...] = Field(
        (),
        description="Arrays whose missing chunks hold the fill value, because their writer omits chunks of zeros. "
        "Those of bio2zarr's variant_contig, variant_id_mask and variant_filter need no entry. A missing chunk of any "
        "other array stops the run.",
    )
    ploidy: int = PLOIDY


class Malariagen(Vcz):
    """Stores in the MalariaGEN layout: one of genotypes (calldata/GT by contig) and one of sites (variants/POS)."""

    sites: str = Field("", description="Path or URL of the store of sites; empty: the store of genotypes.")
    contigs: tuple[str, ...] = Field((), description="Contigs to read; empty: all in the store.")


class Plink(Section):
    """PLINK 1 files of one data set."""

    prefix: str = Field("", description="Path of the files without the suffixes .bed, .bim and .fam.")


class Vcf(Section):
    """VCF files, read by cyvcf2."""

    paths: tuple[str, ...] = Field((), description="Paths of VCF or BCF files, compressed and indexed.")
    ploidy: int = PLOIDY


class GenotypeSource(Sourced):
    """Where genotypes come from."""

    source: str = Field("", description="Which of the sources below to use.")
    vcz: Vcz = Vcz()
    malariagen: Malariagen = Malariagen()
    plink: Plink = Plink()
    vcf: Vcf = Vcf()

    needed: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "vcz": ("vcz.store",), "malariagen": ("malariagen.store",), "plink": ("plink.prefix",), "vcf": ("vcf.paths",)
    }  # fmt: skip


class Relatedness(Section):
    """Kinship of all pairs (KING-robust), and a large set of samples without relatives among them."""

    method: Literal["king", "none"] = Field(
        "king", description="king: KING-robust, for diploids; none: do not look for relatives (other ploidies)."
    )
    maximum_kinship: float = Field(
        0.0884, gt=0, lt=0.5, description="Kinship above which two samples are relatives: 2**-3.5 is the second degree."
    )
    minimum_samples: int = Field(
        10,
        ge=2,
        description="king: refuse fewer samples. Variants selected because they vary among a few samples bias kinship "
        "downward: by 0.5 among 3 samples, 0.1 among 6, 0.02 among 12.",
    )
    maximum_chance_relatives: float = Field(
        1.0,
        gt=0,
        description="king: refuse variants so few that a sample is expected to have more relatives by chance. The "
        "standard error of the kinship of unrelated samples is about 0.9 / sqrt(variants).",
    )
    minimum_call_rate: Fraction = Field(0.9, description="Call rate below which a sample is not used.")
    exclude: tuple[str, ...] = Field((), description="Names of samples to leave out of the components.")
    hold_out_labels: tuple[str, ...] = Field((), description="Labels whose samples are only projected.")


class Scaling(Section):
    """How dosages are centered and scaled."""

    frequency: Literal["observed", "patterson"] = Field(
        "observed",
        description="Allele frequency p in the variance, with a alternate alleles of c called ones. observed: a / c; "
        "patterson: (1 + a) / (2 + c), as in smartpca.",
    )
    variance: Literal["binomial", "none"] = Field(
        "binomial", description="binomial: divide by sqrt(ploidy p (1 - p)); none: center only."
    )


class Pca(Section):
    """Principal components of the samples."""

    components: int = Field(10, ge=1, description="Number of components.")
    scaling: Scaling = Scaling()
    solver: Literal["auto", "gram", "randomized"] = Field(
        "auto", description="gram: exact; randomized: block Krylov, in few passes; auto: gram if cheaper or within 1 s."
    )
    oversampling: int = Field(
        4, ge=1, description="randomized: least number of extra columns; the total is rounded up to a multiple of 8."
    )
    tolerance: float = Field(
        1e-4,
        gt=0,
        description="randomized: residual, relative to the eigenvalue, at which a component of structure converged. "
        "Components in the noise need only 0.9999 of the variance.",
    )
    maximum_passes: int = Field(30, ge=2, description="randomized: most passes over the genotypes.")
    seed: int = Field(0, ge=0, description="randomized: seed of the first block; results agree within the tolerance.")
    significance: float = Field(0.01, gt=0, lt=1, description="Level of the Tracy-Widom test.")
