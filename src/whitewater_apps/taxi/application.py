"""The taxi application, as its entry point declares it."""

from whitewater.application import Application, Operation
from whitewater_apps.taxi.config import Taxi

TAXI = Application(
    "taxi",
    settings=Taxi,
    package="whitewater_apps.taxi",
    steps=("fetch", "standardise", "clean", "tips", "model", "predict", "plot", "manifest"),
    operations={
        "standardise": Operation(cpu="NumPy, pyarrow, Numba", gpu="CuPy, cuDF; the host parses text"),
        "clean": Operation(cpu="NumPy, pyarrow, Numba", gpu="CuPy, cuDF"),
        "tips": Operation(cpu="NumPy, pyarrow, Numba", gpu="CuPy, cuDF, CUDA by Numba"),
        "model": Operation(cpu="NumPy, Numba, scikit-learn, treelite", gpu="CuPy, cuDF, cuML, nvForest"),
        "predict": Operation(cpu="NumPy, Numba, treelite", gpu="CuPy, cuDF, nvForest"),
    },
    headline="whitewater_apps.taxi.headline:headline",
    check="whitewater_apps.taxi.check:check",
)
