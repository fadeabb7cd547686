"""The genomics application, as its entry point declares it."""

from whitewater.application import Application
from whitewater_apps.genomics.config import Genomics

GENOMICS = Application(
    "genomics",
    settings=Genomics,
    package="whitewater_apps.genomics",
    steps=(
        "simulate",
        "ingest",
        "variant_qc",
        "ld_prune",
        "relatedness",
        "pack",
        "outliers",
        "pca",
        "project",
        "umap",
        "plot",
        "manifest",
    ),
    headline="whitewater_apps.genomics.headline:headline",
)
