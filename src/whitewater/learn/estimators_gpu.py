"""The estimators of `whitewater.learn.estimators` on a GPU: cuML's, each of which is imported where it is made."""

from collections.abc import Callable
from typing import Any

from whitewater.engines import Array


def ridge(*, alpha: float) -> Any:
    """Return linear least squares with an L2 penalty."""
    from cuml.linear_model import Ridge

    return Ridge(alpha=alpha, solver="auto", copy_X=False)


def random_forest(**options: Any) -> Any:
    """Return a random forest that minimizes the squared error; its options are those that scikit-learn has, too."""
    from cuml.ensemble import RandomForestRegressor

    return RandomForestRegressor(**options)


def forest_predictions(model: Any) -> Callable[[Array], Array]:
    """Return the predictions of a forest of treelite."""
    import nvforest

    return nvforest.load_from_treelite_model(model, device="gpu").predict


def umap(**options: Any) -> Any:
    """Return UMAP; its options are those that umap-learn has, too."""
    from cuml.manifold import UMAP

    # Exact neighbors: those of nn_descent, which many points would get, differ from run to run.
    return UMAP(**options, build_algo="brute_force_knn")


def logistic_regression(*, penalty: float, iterations: int) -> Any:
    """Return a logistic regression with an intercept."""
    from cuml.linear_model import LogisticRegression

    return LogisticRegression(C=1 / penalty, penalty="l2", max_iter=iterations)
