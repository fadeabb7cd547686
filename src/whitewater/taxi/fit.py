"""Fitting: ridge regression as coefficients in the units of the data, a random forest as a treelite model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from whitewater.config.taxi import Model
from whitewater.devices import Array, Device
from whitewater.devices.protocol import Regressor
from whitewater.taxi.features import FeatureSet, linear_columns, linear_matrix, tree_matrix
from whitewater.taxi.schema import Service

# A column that varies less than this, relative to its mean, is constant but for rounding.
_CONSTANT = 1e-9

Family = Literal["ridge", "forest"]
FAMILIES: tuple[Family, ...] = ("ridge", "forest")


@dataclass(frozen=True)
class RidgeCandidate:
    """A ridge regression of the grid."""

    alpha: float
    family: Family = "ridge"


@dataclass(frozen=True)
class ForestCandidate:
    """A random forest of the grid."""

    trees: int
    depth: int
    family: Family = "forest"


Candidate = RidgeCandidate | ForestCandidate


@dataclass(frozen=True)
class LinearModel:
    """A linear model of the columns of `whitewater.taxi.features.linear_matrix`, in their order and units."""

    coefficients: tuple[float, ...]
    intercept: float

    def predict(self, features: Array, which: FeatureSet, device: Device) -> Array:
        """Return predictions as float64 (trips,) for float64 (trips, features); slices bound the memory."""
        xp = device.xp
        coefficients = device.from_host(np.array(self.coefficients))
        predictions = xp.empty(len(features), xp.float64)
        for start in range(0, len(features), device.slice_rows):
            columns = linear_matrix(features[start : start + device.slice_rows], which, device)
            predictions[start : start + device.slice_rows] = columns @ coefficients + self.intercept
        result: Array = predictions
        return result


@dataclass(frozen=True)
class ForestModel:
    """A random forest as treelite serialises it."""

    serialised: bytes

    def predict(self, features: Array, device: Device) -> Array:
        """Return predictions as float64 (trips,) for float64 (trips, features); slices bound the memory."""
        xp = device.xp
        predict = device.forest_from_treelite(self.serialised)
        predictions = xp.empty(len(features), xp.float64)
        for start in range(0, len(features), device.slice_rows):
            rows = tree_matrix(features[start : start + device.slice_rows], device)
            predictions[start : start + device.slice_rows] = predict(rows)
        result: Array = predictions
        return result


@dataclass(frozen=True)
class Fitted:
    """A model fitted on all training trips of a service.

    ``weights`` by column what one standard deviation adds to the prediction (ridge), or by feature the share of what the
    splits explain (forest).
    """

    service: Service
    family: Family
    model: LinearModel | ForestModel
    weights: dict[str, float]


def fit_best(
    task: tuple[Service, Candidate, Array, Array], *, which: FeatureSet, settings: Model, device: Device
) -> Fitted:
    """Fit the chosen candidate of a service on the features and the target of all its training trips."""
    service, candidate, features, target = task
    if isinstance(candidate, RidgeCandidate):
        ridge = fit_ridge(features, target, which=which, alpha=candidate.alpha, device=device)
        deviations = device.to_host(linear_matrix(features, which, device).std(axis=0))
        effects = deviations * np.array(ridge.coefficients)
        return Fitted(service, "ridge", ridge, dict(zip(linear_columns(which), effects.tolist(), strict=True)))
    forest: Any = fit_forest(features, target, candidate=candidate, settings=settings, device=device)
    shares = [float(share) for share in device.to_host(forest.feature_importances_)]
    stored = ForestModel(device.forest_as_treelite(forest))
    return Fitted(service, "forest", stored, dict(zip(which.features, shares, strict=True)))


def fit_ridge(features: Array, target: Array, *, which: FeatureSet, alpha: float, device: Device) -> LinearModel:
    """Fit a ridge regression on columns that are standardised by their own mean and standard deviation.

    Parameters
    ----------
    features
        float64 (trips, features).
    target
        float64 (trips,).
    which
        The features and boroughs.
    alpha
        Weight of the sum of squared coefficients, beside the sum of squared errors.
    device
        Where the arrays are.
    """
    xp = device.xp
    columns = linear_matrix(features, which, device)
    mean, scale = columns.mean(axis=0), columns.std(axis=0)
    scale = xp.where(scale > _CONSTANT * (1 + xp.abs(mean)), scale, 1.0)
    columns -= mean
    columns /= scale
    fitted = device.ridge(alpha=alpha).fit(columns, target)
    coefficients = fitted.coef_ / scale
    return LinearModel(
        coefficients=tuple(device.to_host(coefficients).tolist()),
        intercept=float(fitted.intercept_) - float(mean @ coefficients),
    )


def fit_forest(
    features: Array, target: Array, *, candidate: ForestCandidate, settings: Model, device: Device
) -> Regressor:
    """Fit a random forest of which each tree sees ``rows_per_tree`` trips at most, drawn with replacement."""
    forest = device.random_forest(
        trees=candidate.trees,
        depth=candidate.depth,
        sample_fraction=min(1.0, settings.forest.rows_per_tree / len(target)),
        seed=settings.seed,
    )
    forest.fit(tree_matrix(features, device), target.astype(device.xp.float32))
    return forest

