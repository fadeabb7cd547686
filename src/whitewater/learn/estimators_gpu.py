"""The estimators of `whitewater.learn.estimators` on a GPU, from cuML; each is imported when it is used."""

from collections.abc import Callable
from typing import Any

from whitewater.engines import Array


def ridge(*, alpha: float) -> Any:
    """Return linear least squares with an L2 penalty."""
    from cuml.linear_model import Ridge

    return Ridge(alpha=alpha, solver="auto", copy_X=False)


def random_forest(**options: Any) -> Any:
    """Return a random forest that minimizes the squared error; scikit-learn has the same options."""
    from cuml.ensemble import RandomForestRegressor

    return RandomForestRegressor(**options)


def forest_predictions(model: Any) -> Callable[[Array], Array]:
    """Return the prediction function of a treelite forest."""
    import nvforest

    return nvforest.load_from_treelite_model(model, device="gpu").predict


def umap(**options: Any) -> Any:
    """Return UMAP; umap-learn has the same options."""
    from cuml.manifold import UMAP

    # Exact neighbors: those of nn_descent, the default for many points, differ between runs.
    return UMAP(**options, build_algo="brute_force_knn")


def logistic_regression(*, penalty: float, iterations: int) -> Any:
    """Return a logistic regression with an intercept."""
    from cuml.linear_model import LogisticRegression

    return LogisticRegression(C=1 / penalty, penalty="l2", max_iter=iterations)
