"""The genomics application, as its entry point declares it."""

from whitewater.application import Application, Operation
from whitewater_apps.genomics.config import Genomics

OF_ARRAYS = Operation(cpu="NumPy, Numba", gpu="CuPy, CUDA by Numba")
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
    operations={
        **dict.fromkeys(("ld_prune", "relatedness", "outliers", "pca", "project"), OF_ARRAYS),
        "umap": Operation(cpu="umap-learn, in the step's process", gpu="cuML, on one GPU"),
    },
    headline="whitewater_apps.genomics.headline:headline",
    check="whitewater_apps.genomics.steps.ingest:check",
)
