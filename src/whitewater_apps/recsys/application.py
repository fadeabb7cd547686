"""The recsys application, as its entry point declares it."""

from whitewater.application import Application, Operation
from whitewater_apps.recsys.config import Recsys

RECSYS = Application(
    "recsys",
    settings=Recsys,
    package="whitewater_apps.recsys",
    steps=("simulate", "fetch", "split", "fit", "features", "drift", "train", "plot", "manifest"),
    operations={
        "fit": Operation(cpu="NumPy, pyarrow, Numba", dask="pandas, NumPy, pyarrow", gpu="cuDF, CuPy"),
        "features": Operation(
            cpu="NumPy, pyarrow, Numba",
            dask="pandas, NumPy, pyarrow; the host shuffles",
            gpu="cuDF, CuPy; the host shuffles, and has lists",
        ),
        "train": Operation(cpu="scikit-learn, XGBoost, in the step's process", gpu="cuML, XGBoost, on one GPU"),
    },
    commands={"transform": "whitewater_apps.recsys.cli:main"},
    headline="whitewater_apps.recsys.headline:headline",
    check="whitewater_apps.recsys.steps.fetch:check",
)
