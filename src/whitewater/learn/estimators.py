"""Equivalent estimators of scikit-learn, umap-learn, cuML and XGBoost; forests are stored as treelite models.

Ridge regressions agree up to rounding. Forests agree in quality only: scikit-learn tries every threshold of a split,
cuML 128 quantiles of each feature.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from whitewater.engines import Array
from whitewater.engines.device import Device
from whitewater.errors import DeviceError
from whitewater.learn import estimators_gpu

# For regression: Hastie, Tibshirani and Friedman, "The Elements of Statistical Learning", 2nd edition, section 15.3.
FEATURES_PER_SPLIT = 1 / 3
ROWS_PER_LEAF = 5
_ITERATIONS = 1000


def ridge(device: Device, *, alpha: float) -> Any:
    """Return linear least squares with an L2 penalty and an intercept; `fit` overwrites its X.

    The solver is a Cholesky factorization of the normal equations, on a GPU an eigendecomposition (SVD for one column).
    """
    if device.name == "gpu":
        return estimators_gpu.ridge(alpha=alpha)
    from sklearn.linear_model import Ridge

    return Ridge(alpha=alpha, solver="cholesky", copy_X=False)


def random_forest(device: Device, *, trees: int, depth: int, sample_fraction: float, seed: int) -> Any:
    """Return a random forest that minimizes the squared error; a tree draws ``sample_fraction`` of the rows."""
    options = {
        "n_estimators": trees, "max_depth": depth, "max_features": FEATURES_PER_SPLIT,
        "min_samples_leaf": ROWS_PER_LEAF, "bootstrap": True, "max_samples": sample_fraction, "random_state": seed,
    }  # fmt: skip
    if device.name == "gpu":
        return estimators_gpu.random_forest(**options)
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(**options)


def forest_as_treelite(forest: Any, device: Device) -> bytes:
    """Serialize a fitted random forest as a treelite model, which needs no pickle."""
    import treelite.sklearn

    model = forest.as_treelite() if device.name == "gpu" else treelite.sklearn.import_model(forest)
    return bytes(model.serialize_bytes())


def forest_from_treelite(serialized: bytes, device: Device) -> Callable[[Array], Array]:
    """Return the prediction function of a serialized forest: float32 (rows, features) -> float64 (rows,)."""
    import treelite

    model = treelite.Model.deserialize_bytes(serialized)
    on_gpu = device.name == "gpu"
    predict = estimators_gpu.forest_predictions(model) if on_gpu else partial(treelite.gtil.predict, model, nthread=1)
    return lambda rows: predict(rows.astype(model.input_type)).reshape(-1).astype(np.float64)


def umap(device: Device, *, neighbors: int, minimum_distance: float, seed: int) -> Any:
    """Return UMAP to two dimensions, reproducible by its seed on the CPU (on one thread), or on the same GPU.

    L. McInnes, J. Healy and J. Melville, "UMAP", 2018, https://arxiv.org/abs/1802.03426.
    """
    options = {"n_neighbors": neighbors, "min_dist": minimum_distance, "n_components": 2, "init": "spectral"}
    if device.name == "gpu":
        return estimators_gpu.umap(random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Tensorflow not installed", ImportWarning)
        from umap import UMAP

    return UMAP(random_state=seed, n_jobs=1, **options)


def logistic_regression(device: Device, *, penalty: float) -> Any:
    """Return a logistic regression with an intercept, fitted by L-BFGS; ``penalty`` weighs half the squared L2 norm."""
    if device.name == "gpu":
        return estimators_gpu.logistic_regression(penalty=penalty, iterations=_ITERATIONS)
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1 / penalty, solver="lbfgs", max_iter=_ITERATIONS)


def fit_boosted_trees(
    device: Device, rows: tuple[Array, Array], later: tuple[Array, Array], *, trees: int, depth: int,
    learning_rate: float, seed: int, threads: int,
) -> tuple[Callable[[Array], Array], int]:  # fmt: skip
    """Fit gradient-boosted trees to rows (X, y) with labels 0 and 1; stop early by the log loss of ``later`` rows.

    Without later rows, all ``trees`` are fitted. They are the same for any number of threads; each split learns where
    NaN goes. Returns a function that predicts the probability of label 1, float32 (rows,), and its number of trees.

    T. Chen and C. Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016, https://arxiv.org/abs/1603.02754.
    """
    import xgboost

    if device.name == "gpu" and not xgboost.build_info()["USE_CUDA"]:
        raise DeviceError(
            "device gpu: the installed XGBoost computes on CPUs only. Install envs/gpu.lock again: it has xgboost, "
            "not xgboost-cpu; both have the same files."
        )
    stops_early = len(later[1]) > 0
    model = xgboost.XGBClassifier(
        n_estimators=trees, max_depth=depth, learning_rate=learning_rate, random_state=seed, n_jobs=threads,
        tree_method="hist", device="cuda" if device.name == "gpu" else "cpu",
        early_stopping_rounds=10 if stops_early else None,
    )  # fmt: skip
    model.fit(*rows, eval_set=[later] if stops_early else None, verbose=False)
    return lambda X: model.predict_proba(X)[:, 1], model.best_iteration + 1 if stops_early else trees
