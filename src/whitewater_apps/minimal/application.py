"""The minimal application, as its entry point declares it."""

from whitewater.application import Application, Operation
from whitewater_apps.minimal.config import Minimal

MINIMAL = Application(
    "minimal",
    settings=Minimal,
    package="whitewater_apps.minimal",
    steps=("fetch", "read", "aggregate", "plot", "manifest"),
    operations={
        "read": Operation(cpu="Polars, pyarrow", dask="pandas, pyarrow", gpu="cuDF; the host reads and writes files"),
        "aggregate": Operation(cpu="Polars", dask="pandas", gpu="cuDF"),
    },
    headline="whitewater_apps.minimal.headline:headline",
    apart=True,
)
