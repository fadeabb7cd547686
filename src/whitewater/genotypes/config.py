"""Settings of what reads genotypes and computes with them: sources, kinship, principal components."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from whitewater.config.base import Section, Sourced

Share = Annotated[float, Field(ge=0, le=1)]
PLOIDY = Field(
    0,
    ge=0,
    le=127,
    description="Alleles of a call; 0: as many as the call with most has. Calls of other ploidies are missing. Where "
    "those outnumber the others, the run stops unless this is set.",
)


class Vcz(Section):
    """A store of VCF Zarr, format 2 or 3."""

    store: str = Field("", description="Path or URL (file, gs, s3, https) of the store.")
    anonymous: bool = Field(True, description="Read gs:// and s3:// without credentials.")
    endpoint: str = Field("", description="URL of another server that speaks the protocol of gs:// or s3://.")
    retries: int = Field(5, ge=0, description="Further tries of a read that broke.")
    timeout: float = Field(60.0, gt=0, description="Seconds after which a read without an answer is given up.")
    filled_arrays: tuple[str, ...] = Field(
        (),
        description="Arrays whose absent chunks hold the fill value, because their writer leaves out chunks of zeros. "
        "Those of bio2zarr's variant_contig, variant_id_mask and variant_filter are known. An absent chunk of another "
        "array stops the run.",
    )
    ploidy: int = PLOIDY


class Malariagen(Vcz):
    """Stores in the layout of MalariaGEN: one of genotypes (calldata/GT by contig) and one of sites (variants/POS)."""

    sites: str = Field("", description="Path or URL of the store of sites; empty: it is the store of genotypes.")
    contigs: tuple[str, ...] = Field((), description="Contigs to read; empty: all that the store holds.")


class Plink(Section):
    """PLINK 1 files of one data set."""

    prefix: str = Field("", description="Path of the files without their suffixes .bed, .bim and .fam.")


class Vcf(Section):
    """VCF files, read by cyvcf2."""

    paths: tuple[str, ...] = Field((), description="Paths of VCF or BCF files, compressed and indexed.")
    ploidy: int = PLOIDY


class GenotypeSource(Sourced):
    """Where genotypes come from."""

    source: str = Field("", description="Which of the sources below is used.")
    vcz: Vcz = Vcz()
    malariagen: Malariagen = Malariagen()
    plink: Plink = Plink()
    vcf: Vcf = Vcf()

    needed: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "vcz": ("vcz.store",), "malariagen": ("malariagen.store",), "plink": ("plink.prefix",), "vcf": ("vcf.paths",)
    }  # fmt: skip


class Relatedness(Section):
    """Kinship of all pairs (KING-robust), and the largest set of samples found without relatives in it."""

    method: Literal["king", "none"] = Field(
        "king",
        description="king: KING-robust, for diploids; none: relatives are not looked for, as other ploidies need.",
    )
    maximum_kinship: float = Field(
        0.0884, gt=0, lt=0.5, description="Kinship above which two samples are relatives: 2**-3.5 is the second degree."
    )
    minimum_samples: int = Field(
        10,
        ge=2,
        description="king: fewer samples are refused. Variants chosen because they differ among a few samples make "
        "their kinship too small: by 0.5 among 3 of them, 0.1 among 6, 0.02 among 12.",
    )
    maximum_chance_relatives: float = Field(
        1.0,
        gt=0,
        description="king: relatives that a sample may have by chance, by the standard error of the kinship of "
        "strangers, which is about 0.9 / sqrt(variants). More, and the variants are refused as too few.",
    )
    minimum_call_rate: Share = Field(0.9, description="Share of variants with a call that a sample needs.")
    exclude: tuple[str, ...] = Field((), description="Names of samples that the components are not computed from.")
    hold_out_labels: tuple[str, ...] = Field((), description="Labels whose samples are projected only.")


class Scaling(Section):
    """How dosages are centered and scaled."""

    frequency: Literal["observed", "patterson"] = Field(
        "observed",
        description="p in the variance, of a alternate alleles among c called ones. observed: a / c; patterson: "
        "(1 + a) / (2 + c), as smartpca.",
    )
    variance: Literal["binomial", "none"] = Field(
        "binomial", description="binomial: divide by sqrt(ploidy p (1 - p)); none: center only."
    )


class Pca(Section):
    """Principal components of the samples."""

    components: int = Field(10, ge=1, description="Components computed.")
    scaling: Scaling = Scaling()
    solver: Literal["auto", "gram", "randomized"] = Field(
        "auto",
        description="gram: exact, for few samples; randomized: block Krylov, in few passes; auto: gram "
        "where it needs fewer operations, or a second, else randomized.",
    )
    oversampling: int = Field(
        4, ge=1, description="randomized: columns besides the components, at least; all are a multiple of eight."
    )
    tolerance: float = Field(
        1e-4,
        gt=0,
        description="randomized: residual, relative to the eigenvalue, at which a component of structure is converged; "
        "those in the noise need only 0.9999 of the variance.",
    )
    maximum_passes: int = Field(30, ge=2, description="randomized: passes over the genotypes at most.")
    seed: int = Field(0, ge=0, description="randomized: seed of the first block; results agree to the tolerance.")
    significance: float = Field(0.01, gt=0, lt=1, description="Level of the Tracy-Widom test.")
