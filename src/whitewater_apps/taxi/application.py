"""The taxi application, as its entry point declares it."""

from whitewater.application import Application, Operation
from whitewater_apps.taxi.config import Taxi

TAXI = Application(
    "taxi",
    settings=Taxi,
    package="whitewater_apps.taxi",
    steps=("fetch", "standardize", "clean", "tips", "model", "predict", "plot", "manifest"),
    operations={
        "standardize": Operation(cpu="Polars, pyarrow", dask="pandas, pyarrow", gpu="cuDF; the host parses text"),
        "clean": Operation(cpu="Polars", dask="pandas, Polars", gpu="cuDF, Polars; the host writes quarantine"),
        "tips": Operation(cpu="Polars", dask="pandas", gpu="cuDF"),
        "model": Operation(
            cpu="Polars, NumPy, scikit-learn, treelite",
            dask="pandas, NumPy, scikit-learn, treelite",
            gpu="cuDF, CuPy, cuML, nvForest",
        ),
        "predict": Operation(cpu="Polars, NumPy, treelite", dask="pandas, NumPy, treelite", gpu="cuDF, CuPy, nvForest"),
    },
    headline="whitewater_apps.taxi.headline:headline",
    check="whitewater_apps.taxi.steps.fetch:check",
)
