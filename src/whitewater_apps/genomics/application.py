"""The genomics application, as its entry point declares it."""

from whitewater.application import Application, Operation
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
    operations={
        "ld_prune": Operation(cpu="NumPy, Numba", gpu="CuPy, CUDA by Numba"),
        "relatedness": Operation(cpu="NumPy, Numba", gpu="CuPy, CUDA by Numba"),
        "outliers": Operation(cpu="NumPy, Numba", gpu="CuPy, CUDA by Numba"),
        "pca": Operation(cpu="NumPy, Numba", gpu="CuPy, CUDA by Numba"),
        "project": Operation(cpu="NumPy, Numba", gpu="CuPy, CUDA by Numba"),
        "umap": Operation(cpu="umap-learn, in the step's process", gpu="cuML, on one GPU"),
    },
    headline="whitewater_apps.genomics.headline:headline",
    check="whitewater_apps.genomics.check:check",
)
