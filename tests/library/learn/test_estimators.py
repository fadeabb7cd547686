"""Estimators solve what they say, are the same on both devices by their parameters, and survive storage."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from whitewater.engines import Array, Device
from whitewater.engines.gpu import GpuDevice
from whitewater.learn.estimators import forest_as_treelite, forest_from_treelite, random_forest, ridge, umap

CPU, GPU = Device(), GpuDevice()


def data(rows: int = 2_000) -> tuple[Array, Array]:
    random = np.random.default_rng(0)
    features = random.normal(size=(rows, 5)).astype(np.float32)
    return features, np.sin(features[:, 0]) + features[:, 1] * features[:, 2] + random.normal(0, 0.1, rows)


def forest(**options: Any) -> Any:
    return random_forest(CPU, **{"trees": 10, "depth": 6, "sample_fraction": 0.5, "seed": 1} | options)


@pytest.mark.parametrize("alpha", [0.1, 10.0, 1_000.0])
def test_ridge_solves_the_penalized_normal_equations(alpha: float) -> None:
    features, target = data()
    columns = features.astype(np.float64) + 3
    centered, offset = columns - columns.mean(axis=0), target - target.mean()
    expected = np.linalg.solve(centered.T @ centered + alpha * np.eye(5), centered.T @ offset)
    fitted = ridge(CPU, alpha=alpha).fit(columns.copy(), target)
    np.testing.assert_allclose(fitted.coef_, expected, rtol=1e-9)
    np.testing.assert_allclose(fitted.intercept_, target.mean() - columns.mean(axis=0) @ expected, rtol=1e-9)


def test_a_stored_forest_predicts_what_the_fitted_one_does() -> None:
    features, target = data()
    fitted = forest()
    fitted.fit(features, target)
    stored = forest_from_treelite(forest_as_treelite(fitted, CPU), CPU)
    np.testing.assert_allclose(stored(features), fitted.predict(features), rtol=0, atol=1e-6)


def test_a_forest_depends_on_its_seed_alone() -> None:
    features, target = data()
    first, again, other = (forest(seed=seed).fit(features, target).predict(features) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_each_tree_sees_the_given_share_of_the_rows() -> None:
    features, target = data()
    fitted = forest(sample_fraction=0.05).fit(features, target)
    assert [tree.tree_.weighted_n_node_samples[0] for tree in fitted.estimators_] == [100] * 10


class Recorded:
    """Takes the place of an estimator of cuML."""

    def __init__(self, **parameters: Any) -> None:
        self.parameters = parameters


@pytest.fixture
def _cuml(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        ("cuml.ensemble", "RandomForestRegressor"),
        ("cuml.linear_model", "Ridge"),
        ("cuml.manifold", "UMAP"),
    ):
        stand_in = ModuleType(module)
        setattr(stand_in, name, Recorded)
        monkeypatch.setitem(sys.modules, module, stand_in)
    monkeypatch.setitem(sys.modules, "cuml", ModuleType("cuml"))


@pytest.mark.usefixtures("_cuml")
def test_forests_of_both_devices_have_the_same_parameters() -> None:
    gpu: Any = random_forest(GPU, trees=30, depth=9, sample_fraction=0.25, seed=4)
    cpu = random_forest(CPU, trees=30, depth=9, sample_fraction=0.25, seed=4)
    assert isinstance(cpu, RandomForestRegressor)
    ours = {name: value for name, value in cpu.get_params().items() if name in gpu.parameters}
    assert ours == gpu.parameters
    assert {"max_features", "bootstrap", "max_samples", "min_samples_leaf", "random_state"} <= ours.keys()


@pytest.mark.usefixtures("_cuml")
def test_ridges_of_both_devices_have_the_same_penalty() -> None:
    gpu: Any = ridge(GPU, alpha=3.0)
    cpu: Any = ridge(CPU, alpha=3.0)
    assert cpu.alpha == gpu.parameters["alpha"] == 3.0


@pytest.mark.usefixtures("_cuml")
# Importing umap compiles for 20 seconds where nothing is cached yet.
@pytest.mark.slow
def test_maps_of_both_devices_have_the_same_parameters_and_exact_neighbors() -> None:
    gpu: Any = umap(GPU, neighbors=12, minimum_distance=0.25, seed=4)
    cpu: Any = umap(CPU, neighbors=12, minimum_distance=0.25, seed=4)
    assert gpu.parameters.pop("build_algo") == "brute_force_knn"
    assert {name: getattr(cpu, name) for name in gpu.parameters} == gpu.parameters
    assert {"n_neighbors", "min_dist", "random_state", "init", "n_components"} == gpu.parameters.keys()
