"""The steps of the genomics application: where each one is, and the section of the configuration that it gets."""

from whitewater.config import genomics
from whitewater.config.base import Section
from whitewater.registry import Step

STEPS = {
    "simulate": Step("whitewater.genomics.simulate:simulate", genomics.Simulate),
    "ingest": Step("whitewater.genomics.ingest:ingest", genomics.Ingest),
    "variant_qc": Step("whitewater.genomics.variant_qc:variant_qc", genomics.VariantQc),
    "ld_prune": Step("whitewater.genomics.ld_prune:ld_prune", genomics.LdPrune),
    "relatedness": Step("whitewater.genomics.relatedness:relatedness", genomics.Relatedness),
    "pack": Step("whitewater.genomics.pack:pack", Section),
    "outliers": Step("whitewater.genomics.outliers:outliers", genomics.Outliers),
    "pca": Step("whitewater.genomics.pca:pca", genomics.Pca),
    "project": Step("whitewater.genomics.project:project", genomics.Project),
    "umap": Step("whitewater.genomics.umap:umap", genomics.Umap),
    "plot": Step("whitewater.genomics.plot:plot", genomics.Plot),
    "manifest": Step("whitewater.manifest:manifest", genomics.Genomics),
}
