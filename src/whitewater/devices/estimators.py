"""Estimators of scikit-learn, umap-learn, cuML and XGBoost with the same meaning; forests stored as treelite models.

A forest's splits differ between the libraries: scikit-learn tries every threshold, cuML 128 quantiles of each feature.
So forests agree in quality only; ridge regression is solved in closed form by both and agrees to rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from whitewater.devices.blocks import Array
from whitewater.devices.protocol import Classifier, Embedding, Regressor
from whitewater.errors import DeviceError

# A third of the features at each split and leaves of at least 5: Hastie, Tibshirani and Friedman, "The Elements of
# Statistical Learning", 2nd edition, section 15.3, for regression.
FEATURES_PER_SPLIT = 1 / 3
ROWS_PER_LEAF = 5
_ITERATIONS = 1000
# Rounds without a better log loss on the validation rows, after which no tree is added.
_PATIENCE = 10


def cpu_ridge(*, alpha: float) -> Regressor:
    """Return a ridge regression, solved by Cholesky factorisation of the normal equations; `fit` overwrites its X."""
    from sklearn.linear_model import Ridge

    ridge: Regressor = Ridge(alpha=alpha, solver="cholesky", copy_X=False)
    return ridge


def gpu_ridge(*, alpha: float) -> Regressor:
    """Return a ridge regression, solved by eigendecomposition (one column: by SVD); `fit` overwrites its X."""
    from cuml.linear_model import Ridge

    ridge: Regressor = Ridge(alpha=alpha, solver="auto", copy_X=False)
    return ridge


def cpu_random_forest(*, trees: int, depth: int, sample_fraction: float, seed: int) -> Regressor:
    """Return a random forest on one thread: the workers are parallel already."""
    from sklearn.ensemble import RandomForestRegressor

    forest: Regressor = RandomForestRegressor(
        n_estimators=trees,
        max_depth=depth,
        max_features=FEATURES_PER_SPLIT,
        min_samples_leaf=ROWS_PER_LEAF,
        bootstrap=True,
        max_samples=sample_fraction,
        random_state=seed,
        n_jobs=1,
    )
    return forest


def gpu_random_forest(*, trees: int, depth: int, sample_fraction: float, seed: int) -> Regressor:
    """Return a random forest with the parameters of `cpu_random_forest`."""
    from cuml.ensemble import RandomForestRegressor

    forest: Regressor = RandomForestRegressor(
        n_estimators=trees,
        max_depth=depth,
        max_features=FEATURES_PER_SPLIT,
        min_samples_leaf=ROWS_PER_LEAF,
        bootstrap=True,
        max_samples=sample_fraction,
        random_state=seed,
    )
    return forest


def cpu_forest_as_treelite(forest: Any) -> bytes:
    """Return a forest of scikit-learn as a serialised treelite model, which is stored and read without pickle."""
    import treelite.sklearn

    serialised: bytes = treelite.sklearn.import_model(forest).serialize_bytes()
    return serialised


def gpu_forest_as_treelite(forest: Any) -> bytes:
    """Return a forest of cuML as a serialised treelite model."""
    serialised: bytes = forest.as_treelite().serialize_bytes()
    return serialised


def cpu_forest_from_treelite(serialised: bytes) -> Callable[[Array], Array]:
    """Return the predictions of a stored forest as a function, evaluated on one thread by treelite's own reference.

    The function takes float32 (rows, features), as the forest was fitted on, and returns float64 (rows,).
    """
    import treelite

    model = treelite.Model.deserialize_bytes(serialised)

    def predict(rows: Array) -> Array:
        return _flat(treelite.gtil.predict(model, rows.astype(model.input_type), nthread=1))

    return predict


def gpu_forest_from_treelite(serialised: bytes) -> Callable[[Array], Array]:
    """Return the predictions of a stored forest as a function, evaluated on the GPU by nvForest."""
    import nvforest
    import treelite

    model = treelite.Model.deserialize_bytes(serialised)
    forest = nvforest.load_from_treelite_model(model, device="gpu")

    def predict(rows: Array) -> Array:
        return _flat(forest.predict(rows.astype(model.input_type)))

    return predict


def cpu_umap(*, neighbors: int, minimum_distance: float, seed: int) -> Embedding:
    """Return UMAP to two dimensions on one thread, which a seed that decides all demands.

    Leland McInnes, John Healy and James Melville, "UMAP: Uniform Manifold Approximation and Projection for Dimension
    Reduction", 2018, https://arxiv.org/abs/1802.03426.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Tensorflow not installed", ImportWarning)
        from umap import UMAP

    embedding: Embedding = UMAP(
        n_neighbors=neighbors,
        min_dist=minimum_distance,
        n_components=2,
        init="spectral",
        random_state=seed,
        n_jobs=1,
    )
    return embedding


def gpu_umap(*, neighbors: int, minimum_distance: float, seed: int) -> Embedding:
    """Return UMAP with the parameters of `cpu_umap`, the same layout for a seed on the same GPU."""
    from cuml.manifold import UMAP

    embedding: Embedding = UMAP(
        n_neighbors=neighbors,
        min_dist=minimum_distance,
        n_components=2,
        init="spectral",
        random_state=seed,
        # Exact neighbours: those of nn_descent, which many points would get, differ from run to run.
        build_algo="brute_force_knn",
    )
    return embedding


def _flat(predictions: Array) -> Array:
    flat: Array = predictions.reshape(-1).astype(np.float64)
    return flat


def cpu_logistic_regression(*, penalty: float) -> Classifier:
    """Return a logistic regression with an intercept, fitted by L-BFGS; ``penalty`` is that of half the squared L2."""
    from sklearn.linear_model import LogisticRegression

    model: Classifier = LogisticRegression(C=1 / penalty, solver="lbfgs", max_iter=_ITERATIONS)
    return model


def gpu_logistic_regression(*, penalty: float) -> Classifier:
    """Return the logistic regression of `cpu_logistic_regression`, fitted by quasi-Newton steps."""
    from cuml.linear_model import LogisticRegression

    model: Classifier = LogisticRegression(C=1 / penalty, penalty="l2", max_iter=_ITERATIONS)
    return model


class XgboostTrees:
    """Gradient-boosted trees by histograms.

    Tianqi Chen and Carlos Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016, https://arxiv.org/abs/1603.02754.
    The trees are the same for any number of threads.
    """

    def __init__(
        self, device: Literal["cpu", "cuda"], *, trees: int, depth: int, learning_rate: float, seed: int, threads: int
    ) -> None:
        self._trees, self._threads = trees, threads
        self._parameters: dict[str, Any] = {
            "objective": "binary:logistic",
            "eval_metric": "logloss",
            "tree_method": "hist",
            "device": device,
            "max_depth": depth,
            "learning_rate": learning_rate,
            "seed": seed,
            "nthread": threads,
            "verbosity": 1,
        }
        self._model: Any = None
        self._used = 0

    def fit(self, X: Array, y: Array, later: tuple[Array, Array]) -> int:
        import xgboost

        if self._parameters["device"] == "cuda" and not xgboost.build_info()["USE_CUDA"]:
            raise DeviceError(
                "device gpu: the installed XGBoost computes on CPUs only. Install envs/gpu.lock again: its package is "
                "xgboost, not xgboost-cpu: both have the same files."
            )
        rows = xgboost.QuantileDMatrix(X, label=y, nthread=self._threads)
        watched: dict[str, Any] = {}
        if len(later[1]):
            judge = xgboost.QuantileDMatrix(later[0], label=later[1], ref=rows, nthread=self._threads)
            watched = {"evals": [(judge, "later")], "early_stopping_rounds": _PATIENCE}
        self._model = xgboost.train(self._parameters, rows, self._trees, verbose_eval=False, **watched)
        self._used = self._model.best_iteration + 1 if watched else self._trees
        return self._used

    def predict(self, X: Array) -> Array:
        found: Array = self._model.inplace_predict(X, iteration_range=(0, self._used))
        return found
