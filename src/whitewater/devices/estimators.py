"""Estimators of scikit-learn, umap-learn and cuML, made with the same meaning, and forests stored as treelite models.

A forest's splits differ between the libraries: scikit-learn tries every threshold, cuML 128 quantiles of each feature.
So forests agree in quality only; ridge regression is solved in closed form by both and agrees to rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from whitewater.devices.protocol import Array, Embedding, Regressor

# A third of the features at each split and leaves of at least 5: Hastie, Tibshirani and Friedman, "The Elements of
# Statistical Learning", 2nd edition, section 15.3, for regression.
FEATURES_PER_SPLIT = 1 / 3
ROWS_PER_LEAF = 5


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
    """Return a random forest on one thread: the workers are parallel already.

    Parameters
    ----------
    trees, depth
        Number of trees, and their depth at most.
    sample_fraction
        Rows drawn with replacement for each tree, as a share of the rows, in (0, 1].
    seed
        Seed of the rows and features drawn.
    """
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

    Parameters
    ----------
    neighbors, minimum_distance
        Neighbours of a point, and the least distance of points on the map.
    seed
        Seed of the layout.
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
