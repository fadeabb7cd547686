"""What users of the genomics application are promised, asked of whole commands, in the lines that a project writes."""

from whitewater.testing.guarantees import Case, guarantees

TINY = {
    "simulate": {
        "samples_by_population": {"AFR": 12, "EUR": 12, "ASIA": 12, "ADMIX": 6},
        "families": 2,
        "chromosome_length": 1e6,
        "mutation_rate": 2e-9,
    },
    "umap": {"neighbors": 5},
}
# A store of genotypes does not have the labels that are simulated with them.
GENOMICS = Case("genomics", step="pack", output="packed", tables=("pcs.parquet", "kinship.parquet"), files="", disk="")
# No map is made of fewer samples than neighbors: umap compiles for 12 seconds in each run.
TestGenomics = guarantees(GENOMICS, tiny={**TINY, "umap": {"neighbors": 100}})
