"""Settings of the genomics application, a section per step."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from whitewater.config.base import Section
from whitewater.genotypes.config import Fraction, GenotypeSource, Pca, Relatedness

LAST_POSITION = 2**63 - 1


def parse_region(region: str) -> tuple[str, int, int]:
    """Parse ``contig`` or ``contig:first-last``: positions are 1-based and inclusive."""
    contig, _, positions = region.partition(":")
    first, _, last = positions.partition("-")
    return contig, int(first or 1), int(last or LAST_POSITION)


def _check_region(region: str) -> str:
    contig, first, last = parse_region(region)
    if last < first:
        raise ValueError(f"the region ends before it begins: write it as {contig}:{last}-{first}")
    return region


Region = Annotated[str, Field(pattern=r"^[^:\s]+(:\d+-\d+)?$"), AfterValidator(_check_region)]


class Simulate(Section):
    """Genotypes simulated by msprime, as VCF Zarr: American admixture (Browning et al. 2018), relatives, missing calls.

    The defaults make about 25,000 variants, as if a tenth of all were genotyped. They are spread over 22 chromosomes,
    because linked variants repeat each other: on fewer, unrelated people look like second-degree relatives.
    """

    samples_by_population: dict[Literal["AFR", "EUR", "ASIA", "ADMIX"], Annotated[int, Field(ge=0)]] = Field(
        {"AFR": 90, "EUR": 90, "ASIA": 90, "ADMIX": 90},
        description="Unrelated samples of each population; 0: none. A population that is not listed keeps its default.",
    )
    families: int = Field(6, ge=0, description="Number of couples among these samples that have two children each.")
    duplicates: int = Field(1, ge=0, description="Number of these samples that are genotyped a second time.")
    chromosomes: int = Field(22, ge=1, le=22, description="Chromosomes, simulated independently.")
    chromosome_length: float = Field(2e6, gt=1e4, description="Length of each chromosome, in bases.")
    mutation_rate: float = Field(
        1.25e-9, gt=0, description="Mutations per base and generation; by default a tenth of the rate in humans."
    )
    missing_fraction: float = Field(
        0.02, ge=0, lt=1, description="Mean fraction of missing calls; two samples have far more, unless it is 0."
    )
    seed: int = Field(2018, ge=0, lt=2**31, description="Seed of the simulation; equal seeds give equal stores.")

    @model_validator(mode="after")
    def _samples_suffice(self) -> Self:
        counts = self.samples_by_population.values()
        couples = sum(count // 2 for count in counts)
        if self.families > couples:
            raise ValueError(f"families is {self.families}, but samples_by_population makes only {couples} pairs")
        if not 0 <= self.duplicates < sum(counts):
            raise ValueError(f"duplicates is {self.duplicates}, but samples_by_population has {sum(counts)} in all")
        return self


class Labels(Section):
    """A table with a label for each sample, for colors in pictures: CSV, tab- or space-separated, or Parquet."""

    table: str = Field("", description="Path or URL of the table; empty: no labels.")
    sample_column: str = Field("sample", description="Column of the sample names.")
    label_column: str = Field("population", description="Column of the labels.")


class Ingest(GenotypeSource):
    """Where the genotypes come from, and how they become dosages of the non-reference allele."""

    source: Literal["generated", "vcz", "malariagen", "plink", "vcf"] = Field(
        "generated", description="Which of the sources below to use."
    )
    labels: Labels = Labels()
    multiallelic: Literal["exclude", "collapse"] = Field(
        "exclude", description="Variants with several alternates: exclude them, or count all alternates as one allele."
    )


class VariantQc(Section):
    """Rules that variants must pass to be kept; the others are listed with their reasons."""

    minimum_call_rate: Fraction = Field(0.95, description="Fraction of samples with a call.")
    minimum_allele_frequency: float = Field(
        0.05, ge=0, le=0.5, description="Frequency of the rarer allele. Rare variants reveal families, not ancestry."
    )
    minimum_allele_count: int = Field(
        2, ge=1, description="Copies of the rarer allele. Variants of a single genotype are rejected in any case."
    )
    hwe_p_value: float = Field(
        0.0, ge=0, lt=1, description="Least p-value of the exact Hardy-Weinberg test; 0: none, for structured samples."
    )
    contigs: tuple[str, ...] = Field((), description="Contigs to keep; empty: all.")
    regions: tuple[Region, ...] = Field((), description="Regions to keep, contig or contig:first-last; empty: all.")
    exclude_regions: tuple[Region, ...] = Field((), description="Regions to leave out, such as those of long-range LD.")
    only_filter_pass: bool = Field(
        True, description="Reject variants that failed the source's filter or accessibility mask."
    )


class LdPrune(Section):
    """Thinning of variants in linkage disequilibrium."""

    method: Literal["r2", "distance", "none"] = Field(
        "r2", description="r2: greedily in windows, as PLINK's --indep-pairwise; distance: by `minimum_distance` only."
    )
    window: int = Field(200, ge=2, description="Variants per window.")
    step: int = Field(20, ge=1, description="Variants by which the window moves.")
    r2: float = Field(0.2, gt=0, le=1, description="Squared correlation above which one of two variants is removed.")
    minimum_distance: int = Field(0, ge=0, description="distance: least number of bases between kept variants.")

    @model_validator(mode="after")
    def _windows_overlap(self) -> Self:
        if self.method == "r2" and self.step > self.window:
            raise ValueError(
                f"step is {self.step}, larger than window, {self.window}: it skips variants. Set a smaller step"
            )
        return self


class Outliers(Section):
    """Remove samples far from all others and compute the components again, as smartpca does."""

    iterations: int = Field(0, ge=0, description="Most rounds; 0: keep all samples. The default of smartpca is 5.")
    components: int = Field(10, ge=1, description="Components to check, with the default scaling and solver of `pca`.")
    standard_deviations: float = Field(6.0, gt=0, description="Distance from the mean above which a sample is removed.")


class Second(GenotypeSource):
    """A second data set, given like the source of `ingest`, or by its path alone: `second: ~/data/others`.

    Such a path is a VCF Zarr store if it is a folder, a URL, or ends in .vcz or .zarr; else a prefix of PLINK files.
    """

    source: Literal["none", "vcz", "malariagen", "plink", "vcf"] = Field(
        "none", description="Which of the sources below to use; none: no second data set."
    )


def _expand_path(value: Any) -> Any:
    """Return the settings of a source that is given as a path."""
    if not isinstance(value, str):
        return value
    if not value:
        return {}
    path = Path(value).expanduser()
    is_store = "://" in value or path.suffix in {".vcz", ".zarr"} or path.is_dir()
    if is_store and not path.with_name(f"{path.name}.bed").exists():
        return {"source": "vcz", "vcz": {"store": value}}
    return {"source": "plink", "plink": {"prefix": value}}


class Project(Section):
    """Project samples on the components: relatives, held-out samples, and a second data set."""

    method: Literal["oadp", "regression", "simple"] = Field(
        "oadp",
        description="oadp: online augmentation, decomposition and Procrustes (Zhang, Dey and Lee 2020), without "
        "shrinkage; regression: least squares on the called variants; simple: product with the loadings.",
    )
    second: Annotated[Second, BeforeValidator(_expand_path, json_schema_input_type=Second | str)] = Second()
    minimum_matched: Fraction = Field(0.5, description="Fraction of the variants that the second data set must have.")
    ambiguous: Literal["keep", "exclude"] = Field(
        "exclude", description="A/T and C/G variants of the second data set: their alleles do not show the strand."
    )


class Umap(Section):
    """A two-dimensional map of the samples, from their principal components."""

    components: int | None = Field(
        None, ge=2, description="Number of leading principal components to use; null: 10, or all if there are fewer."
    )
    neighbors: int = Field(
        15, ge=2, description="Neighbors of a sample, including itself. Without more samples than this, no map is made."
    )
    minimum_distance: float = Field(0.5, ge=0, lt=1, description="Least distance between points on the map.")
    seed: int = Field(7, ge=0, lt=2**32, description="Seed of the layout.")


class Plot(Section):
    """How the pictures are drawn."""

    formats: tuple[Literal["png", "svg"], ...] = Field(("png", "svg"), min_length=1, description="File formats.")
    components: int = Field(4, ge=2, description="Components to draw in pairs: 1 against 2, 3 against 4, ...")


class Genomics(Section):
    """Where do people come from: the ancestry of samples from their genotypes."""

    simulate: Simulate = Simulate()
    ingest: Ingest = Ingest()
    variant_qc: VariantQc = VariantQc()
    ld_prune: LdPrune = LdPrune()
    relatedness: Relatedness = Relatedness()
    outliers: Outliers = Outliers()
    pca: Pca = Pca()
    project: Project = Project()
    umap: Umap = Umap()
    plot: Plot = Plot()

    @model_validator(mode="after")
    def _components_suffice(self) -> Self:
        umap, pca = self.umap.components, self.pca.components
        if umap is not None and umap > pca:
            raise ValueError(
                f"umap.components is {umap}, but pca.components is {pca}: lower the first or raise the second"
            )
        return self
