"""The pagerank application, as its entry point declares it."""

from whitewater.application import Application, Operation
from whitewater_apps.pagerank.config import PageRank

PAGERANK = Application(
    "pagerank",
    settings=PageRank,
    package="whitewater_apps.pagerank",
    steps=(
        "simulate", "fetch", "parse", "edges", "renumber", "rank", "communities", "index", "search", "plot", "manifest",
    ),
    operations={
        "renumber": Operation(cpu="NumPy, Numba", dask="pandas, NumPy", gpu="cuDF, CuPy"),
        "rank": Operation(cpu="NumPy, Numba", gpu="CuPy, CUDA by Numba, on one GPU; cuGraph finds where to start"),
        "communities": Operation(cpu="SciPy, Numba", gpu="cuGraph; components alone by Numba"),
    },
    commands={"query": "whitewater_apps.pagerank.query:main"},
    headline="whitewater_apps.pagerank.headline:headline",
    check="whitewater_apps.pagerank.steps.fetch:check",
)  # fmt: skip
