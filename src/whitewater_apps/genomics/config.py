"""Configuration of the genomics application: one section for each step, which gets exactly its section."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from whitewater.config.base import Section
from whitewater.genotypes.config import GenotypeSource, Pca, Relatedness, Share

LAST_POSITION = 2**63 - 1


def parse_region(region: str) -> tuple[str, int, int]:
    """Read ``contig`` or ``contig:first-last``: the positions are 1-based, both included."""
    contig, _, positions = region.partition(":")
    first, _, last = positions.partition("-")
    return contig, int(first or 1), int(last or LAST_POSITION)


def _begins_before_it_ends(region: str) -> str:
    contig, first, last = parse_region(region)
    if last < first:
        raise ValueError(f"the region ends before it begins: write it as {contig}:{last}-{first}")
    return region


Region = Annotated[str, Field(pattern=r"^[^:\s]+(:\d+-\d+)?$"), AfterValidator(_begins_before_it_ends)]


class Simulate(Section):
    """Genotypes simulated by msprime, as VCF Zarr: American admixture (Browning et al. 2018), relatives, missing calls.

    The defaults make about 25,000 variants. They are spread over 22 chromosomes, because linked variants tell the same
    about two people however many they are: on a tenth of that length, strangers look like second-degree relatives.
    """

    samples_by_population: dict[Literal["AFR", "EUR", "ASIA", "ADMIX"], Annotated[int, Field(ge=0)]] = Field(
        {"AFR": 90, "EUR": 90, "ASIA": 90, "ADMIX": 90},
        description="Unrelated samples of each population; 0: none. One that is not given keeps its default.",
    )
    families: int = Field(6, ge=0, description="Pairs of the samples above that have two children each.")
    duplicates: int = Field(1, ge=0, description="Samples above that are there twice, as if genotyped again.")
    chromosomes: int = Field(22, ge=1, le=22, description="Chromosomes, simulated independently.")
    chromosome_length: float = Field(2e6, gt=1e4, description="Length of each chromosome, in bases.")
    mutation_rate: float = Field(
        1.25e-9,
        gt=0,
        description="Mutations a base and generation; the default is a tenth of the human rate, as if one variant in "
        "ten had been genotyped.",
    )
    missing_fraction: float = Field(
        0.02, ge=0, lt=1, description="Mean share of calls that are missing; two samples miss far more, unless it is 0."
    )
    seed: int = Field(2018, ge=0, lt=2**31, description="Seed of the simulation; equal seeds give equal stores.")

    @model_validator(mode="after")
    def _samples_suffice(self) -> Self:
        counts = self.samples_by_population.values()
        couples = sum(count // 2 for count in counts)
        if self.families > couples:
            raise ValueError(
                f"families is {self.families}, but the samples of the populations make {couples} pairs only"
            )
        if not 0 <= self.duplicates < sum(counts):
            raise ValueError(f"duplicates is {self.duplicates}, but samples_by_population has {sum(counts)} in all")
        return self


class Labels(Section):
    """A table with a label for each sample, which colors the pictures; CSV, tab- or space-separated, or Parquet."""

    table: str = Field("", description="Path or URL of the table; empty: the samples have no labels.")
    sample_column: str = Field("sample", description="Column that holds the names of the samples.")
    label_column: str = Field("population", description="Column that holds the labels.")


class Ingest(GenotypeSource):
    """Where the genotypes come from, and how they become dosages of the non-reference allele."""

    source: Literal["generated", "vcz", "malariagen", "plink", "vcf"] = Field(
        "generated", description="Which of the sources below is used."
    )
    labels: Labels = Labels()
    multiallelic: Literal["exclude", "collapse"] = Field(
        "exclude",
        description="Variants with several alternate alleles: exclude them, or count any of the alternates as one.",
    )


class VariantQc(Section):
    """Which variants are kept; every other one is listed with its reasons."""

    minimum_call_rate: Share = Field(0.95, description="Share of samples with a call.")
    minimum_allele_frequency: float = Field(
        0.05, ge=0, le=0.5,
        description="Frequency of the rarer allele. Rarer variants tell of families more than of ancestry.",
    )  # fmt: skip
    minimum_allele_count: int = Field(
        2,
        ge=1,
        description="Copies of the rarer allele. Variants of one genotype, which may be the heterozygous one, are left "
        "out whatever is set.",
    )
    hwe_p_value: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Exact test of Hardy-Weinberg equilibrium: smaller p-values are rejected; 0 switches it off, as "
        "structured samples need.",
    )
    contigs: tuple[str, ...] = Field((), description="Contigs to keep; empty: all.")
    regions: tuple[Region, ...] = Field((), description="Regions to keep, contig or contig:first-last; empty: all.")
    exclude_regions: tuple[Region, ...] = Field((), description="Regions to leave out, such as those of long-range LD.")
    only_filter_pass: bool = Field(
        True, description="Leave out variants that the source's filter or accessibility mask marks as failed."
    )


class LdPrune(Section):
    """Thinning of variants in linkage disequilibrium."""

    method: Literal["r2", "distance", "none"] = Field(
        "r2", description="r2: greedily in windows, as PLINK's --indep-pairwise; distance: by `minimum_distance` only."
    )
    window: int = Field(200, ge=2, description="Variants in a window.")
    step: int = Field(20, ge=1, description="Variants that the window moves by.")
    r2: float = Field(0.2, gt=0, le=1, description="Squared correlation above which one of two variants is removed.")
    minimum_distance: int = Field(0, ge=0, description="distance: bases between neighbors that are kept.")

    @model_validator(mode="after")
    def _windows_overlap(self) -> Self:
        if self.method == "r2" and self.step > self.window:
            raise ValueError(
                f"step is {self.step}, larger than window, {self.window}: variants between two windows would not be "
                "compared. Set a smaller step"
            )
        return self


class Outliers(Section):
    """Samples far from all others are removed and the components computed again, as smartpca does."""

    iterations: int = Field(0, ge=0, description="Rounds at most; 0 switches it off, smartpca's default is 5.")
    components: int = Field(10, ge=1, description="Components looked at; scaling and solver are the defaults of `pca`.")
    standard_deviations: float = Field(6.0, gt=0, description="Distance from the mean at which a sample is an outlier.")


class Second(GenotypeSource):
    """A second data set, described as the source of `ingest`, or by its place alone: `second: ~/data/others`.

    A place alone is a store of VCF Zarr if it is a directory, a URL, or ends with .vcz or .zarr; else it is a prefix
    of PLINK files.
    """

    source: Literal["none", "vcz", "malariagen", "plink", "vcf"] = Field(
        "none", description="Which of the sources below is used; none: there is no second data set."
    )


def _of_path(given: Any) -> Any:
    """Return the description of a source that is given as a path alone."""
    if not isinstance(given, str):
        return given
    if not given:
        return {}
    path = Path(given).expanduser()
    is_store = "://" in given or path.suffix in {".vcz", ".zarr"} or path.is_dir()
    if is_store and not path.with_name(f"{path.name}.bed").exists():
        return {"source": "vcz", "vcz": {"store": given}}
    return {"source": "plink", "plink": {"prefix": given}}


class Project(Section):
    """Samples that the components were not computed from: relatives, held-out samples, and a second data set."""

    method: Literal["oadp", "regression", "simple"] = Field(
        "oadp",
        description="oadp: online augmentation, decomposition and Procrustes (Zhang, Dey and Lee 2020), free of "
        "shrinkage; regression: least squares on the called variants; simple: product with the loadings.",
    )
    second: Annotated[Second, BeforeValidator(_of_path, json_schema_input_type=Second | str)] = Second()
    minimum_matched: Share = Field(0.5, description="Share of the variants that the second data set must hold.")
    ambiguous: Literal["keep", "exclude"] = Field(
        "exclude", description="Variants A/T and C/G of the second data set, whose strand their alleles do not tell."
    )


class Umap(Section):
    """A map of the samples in two dimensions, of their principal components."""

    components: int | None = Field(
        None,
        ge=2,
        description="Principal components that it is made from; null: the first 10, or all if they are fewer.",
    )
    neighbors: int = Field(
        15, ge=2, description="Neighbors of a sample, itself among them; of no more samples than that no map is made."
    )
    minimum_distance: float = Field(0.5, ge=0, lt=1, description="Least distance of points on the map.")
    seed: int = Field(7, ge=0, lt=2**32, description="Seed of the layout.")


class Plot(Section):
    """How the pictures are drawn."""

    formats: tuple[Literal["png", "svg"], ...] = Field(("png", "svg"), min_length=1, description="File formats.")
    components: int = Field(4, ge=2, description="Components drawn in pairs: 1 against 2, 3 against 4, ...")


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
        if self.umap.components is not None and self.umap.components > self.pca.components:
            raise ValueError(
                f"umap.components is {self.umap.components}, but pca.components is {self.pca.components}: a map can be "
                "made only from components that are computed"
            )
        return self
