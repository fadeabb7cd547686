"""Estimators of scikit-learn, umap-learn, cuML and XGBoost with the same meaning; forests stored as treelite models.

A forest's splits differ between the libraries: scikit-learn tries every threshold, cuML 128 quantiles of each feature.
So forests agree in quality only; ridge regression is solved in closed form by both and agrees to rounding.
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

# A third of the features at each split and leaves of at least 5: Hastie, Tibshirani and Friedman, "The Elements of
# Statistical Learning", 2nd edition, section 15.3, for regression.
FEATURES_PER_SPLIT = 1 / 3
ROWS_PER_LEAF = 5
_ITERATIONS = 1000
# Rounds without a better log loss on the validation rows, after which no tree is added.
_PATIENCE = 10


def ridge(device: Device, *, alpha: float) -> Any:
    """Return linear least squares with an L2 penalty and an intercept; `fit` overwrites its X.

    Solved by Cholesky factorization of the normal equations, on a GPU by eigendecomposition (of one column: by SVD).
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
    """Return a fitted random forest as a serialized treelite model, which is stored and read without pickle."""
    import treelite.sklearn

    model = forest.as_treelite() if device.name == "gpu" else treelite.sklearn.import_model(forest)
    return bytes(model.serialize_bytes())


def forest_from_treelite(serialized: bytes, device: Device) -> Callable[[Array], Array]:
    """Return the predictions of a stored forest: float32 (rows, features), as it was fitted on -> float64 (rows,)."""
    import treelite

    model = treelite.Model.deserialize_bytes(serialized)
    on_gpu = device.name == "gpu"
    predict = estimators_gpu.forest_predictions(model) if on_gpu else partial(treelite.gtil.predict, model, nthread=1)
    return lambda rows: predict(rows.astype(model.input_type)).reshape(-1).astype(np.float64)


def umap(device: Device, *, neighbors: int, minimum_distance: float, seed: int) -> Any:
    """Return UMAP to two dimensions, on one thread of the CPU, or the same for a seed on the same GPU.

    Leland McInnes, John Healy and James Melville, "UMAP: Uniform Manifold Approximation and Projection for Dimension
    Reduction", 2018, https://arxiv.org/abs/1802.03426.
    """
    options = {"n_neighbors": neighbors, "min_dist": minimum_distance, "n_components": 2, "init": "spectral"}
    if device.name == "gpu":
        return estimators_gpu.umap(random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Tensorflow not installed", ImportWarning)
        from umap import UMAP

    # A seed that decides all demands one thread.
    return UMAP(random_state=seed, n_jobs=1, **options)


def logistic_regression(device: Device, *, penalty: float) -> Any:
    """Return a logistic regression with an intercept, fitted by L-BFGS; ``penalty`` is that of half the squared L2."""
    if device.name == "gpu":
        return estimators_gpu.logistic_regression(penalty=penalty, iterations=_ITERATIONS)
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1 / penalty, solver="lbfgs", max_iter=_ITERATIONS)


def fit_boosted_trees(
    device: Device, rows: tuple[Array, Array], later: tuple[Array, Array], *, trees: int, depth: int,
    learning_rate: float, seed: int, threads: int,
) -> tuple[Callable[[Array], Array], int]:  # fmt: skip
    """Fit gradient-boosted trees to rows (X, y) with labels of 0 and 1 until ``later`` ones are predicted no better.

    NaN is a missing value, which goes the better way. The trees are the same for any number of threads; without later
    rows all ``trees`` are made. Returns what predicts the probability of label 1, float32 (rows,), and by how many
    trees.

    Tianqi Chen and Carlos Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016, https://arxiv.org/abs/1603.02754.
    """
    import xgboost

    if device.name == "gpu" and not xgboost.build_info()["USE_CUDA"]:
        raise DeviceError(
            "device gpu: the installed XGBoost computes on CPUs only. Install envs/gpu.lock again: its package is "
            "xgboost, not xgboost-cpu: both have the same files."
        )
    watch = len(later[1]) > 0
    model = xgboost.XGBClassifier(
        n_estimators=trees, max_depth=depth, learning_rate=learning_rate, random_state=seed, n_jobs=threads,
        tree_method="hist", device="cuda" if device.name == "gpu" else "cpu",
        early_stopping_rounds=_PATIENCE if watch else None,
    )  # fmt: skip
    model.fit(*rows, eval_set=[later] if watch else None, verbose=False)
    return lambda X: model.predict_proba(X)[:, 1], model.best_iteration + 1 if watch else trees
