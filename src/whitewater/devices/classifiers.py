"""Classifiers of scikit-learn, cuML and XGBoost, made with the same meaning on both devices.

A regression agrees to its tolerance. Trees agree in quality: XGBoost adds gradients up in another order on a GPU.
"""

from __future__ import annotations

from typing import Any, Literal

from whitewater.devices.protocol import Array, Classifier
from whitewater.errors import DeviceError

_ITERATIONS = 1000
# Rounds without a better log loss on the validation rows, after which no tree is added.
_PATIENCE = 10


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
