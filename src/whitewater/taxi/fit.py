"""Fitting: ridge regression as coefficients in the units of the data, a random forest as a treelite model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from whitewater.config.taxi import Model
from whitewater.devices import Array, Device
from whitewater.devices.protocol import Regressor
from whitewater.taxi.features import FeatureSet, linear_matrix, tree_matrix

# A column that varies less than this, relative to its mean, is constant but for rounding.
_CONSTANT = 1e-9


@dataclass(frozen=True)
class RidgeCandidate:
    """A ridge regression of the grid."""

    alpha: float


@dataclass(frozen=True)
class ForestCandidate:
    """A random forest of the grid."""

    trees: int
    depth: int


@dataclass(frozen=True)
class LinearModel:
    """A linear model of the columns of `whitewater.taxi.features.linear_matrix`, in their order and units."""

    coefficients: tuple[float, ...]
    intercept: float

    def predict(self, features: Array, which: FeatureSet, device: Device) -> Array:
        """Return predictions as float64 (trips,) for float64 (trips, features)."""
        coefficients = device.from_host(np.array(self.coefficients))
        return _by_slices(
            lambda rows: linear_matrix(rows, which, device) @ coefficients + self.intercept, features, device
        )


@dataclass(frozen=True)
class ForestModel:
    """A random forest as treelite serialises it."""

    serialised: bytes

    def predict(self, features: Array, device: Device) -> Array:
        """Return predictions as float64 (trips,) for float64 (trips, features)."""
        predict = device.forest_from_treelite(self.serialised)
        return _by_slices(lambda rows: predict(tree_matrix(rows, device)), features, device)


def _by_slices(predict: Callable[[Array], Array], features: Array, device: Device) -> Array:
    """Predict slice by slice, which bounds the memory of the models' own forms of the features."""
    predictions: Array = device.xp.empty(len(features), device.xp.float64)
    for start in range(0, len(features), device.slice_rows):
        part = slice(start, start + device.slice_rows)
        predictions[part] = predict(features[part])
    return predictions


@dataclass(frozen=True)
class ServiceModel:
    """The two models of a service."""

    ridge: LinearModel
    forest: ForestModel


def fit_ridge(
    features: Array, target: Array, candidate: RidgeCandidate, *, which: FeatureSet, device: Device
) -> tuple[LinearModel, Array]:
    """Fit a ridge regression on columns that are standardised by their own mean and standard deviation.

    Returns the model in the units of the columns of ``features``, float64 (trips, features), and float64 (columns,) on
    the device: what one standard deviation of each column adds to the prediction.
    """
    xp = device.xp
    columns = linear_matrix(features, which, device)
    mean = columns.mean(axis=0)
    columns -= mean
    # Without a temporary array of the size of all columns, which `std` would make.
    scale = xp.sqrt(xp.einsum("ij,ij->j", columns, columns) / len(columns))
    scale = xp.where(scale > _CONSTANT * (1 + xp.abs(mean)), scale, 1.0)
    columns /= scale
    fitted = device.ridge(alpha=candidate.alpha).fit(columns, target)
    coefficients = fitted.coef_ / scale
    intercept = float(fitted.intercept_) - float(mean @ coefficients)
    return LinearModel(tuple(device.to_host(coefficients).tolist()), intercept), fitted.coef_


def fit_forest(
    features: Array, target: Array, candidate: ForestCandidate, *, settings: Model, device: Device
) -> Regressor:
    """Fit a random forest of which each tree sees ``rows_per_tree`` trips at most, drawn with replacement.

    It predicts from the form that `whitewater.taxi.features.tree_matrix` gives.
    """
    forest = device.random_forest(
        trees=candidate.trees,
        depth=candidate.depth,
        sample_fraction=min(1.0, settings.forest.rows_per_tree / len(target)),
        seed=settings.seed,
    )
    forest.fit(tree_matrix(features, device), target.astype(device.xp.float32))
    return forest


def store_forest(forest: Any, device: Device) -> tuple[ForestModel, Array]:
    """Return a fitted forest in the form in which it is stored, and float (features,): the importance of each."""
    return ForestModel(device.forest_as_treelite(forest)), forest.feature_importances_
