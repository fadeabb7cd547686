"""Tip models of a service: a ridge regression and a random forest, tested on later trips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whitewater.engines import Array, Device
from whitewater.learn.estimators import forest_as_treelite
from whitewater.learn.evaluate import evaluate
from whitewater.learn.search import Chosen, ForestModel, LinearModel, fit_forest, fit_ridge
from whitewater_apps.taxi.config import Model, Service
from whitewater_apps.taxi.features import HOUR, FeatureSet

# The baseline: the mean of the hour.
REFERENCE = "hour_mean"
# A service, its candidates, and features, target and pickup time of its training trips and of its held-out trips: a
# tuple, because Dask puts data in the place of futures within tuples.
TrainTask = tuple[Service, Chosen, Array, Array, Array, Array, Array, Array]


@dataclass(frozen=True)
class ServiceModel:
    """The two models of a service."""

    ridge: LinearModel
    forest: ForestModel


@dataclass(frozen=True)
class Trained:
    """The models of a service, and how they predict its held-out trips.

    ``effects``: what a standard deviation of each column adds to the ridge's prediction; ``importances``: the share of
    each feature in what the forest's splits explain; ``scores``: see `whitewater.learn.evaluate.evaluate`;
    ``ridge`` and ``forest``: predictions of the held-out trips, float64 (trips,) on the host.
    """

    service: Service
    model: ServiceModel
    effects: dict[str, float]
    importances: dict[str, float]
    scores: dict[str, Any]
    ridge: Array
    forest: Array


def train_service(task: TrainTask, *, which: FeatureSet, settings: Model, device: Device) -> Trained:
    """Fit the chosen candidates on all training trips of a service, and test them on its held-out trips.

    The scores are those of the models as they are stored.
    """
    service, chosen, *data = task
    features, target, pickup, later_features, observed, later_pickup = map(device.to_device, data)
    ridge, effects = fit_ridge(features, target, chosen[0], forms=which, device=device)
    fitted: Any = fit_forest(features, target, chosen[1], forms=which, settings=settings, device=device)
    forest = ForestModel(forest_as_treelite(fitted, device))
    predictions = {
        "constant": device.xp.full(len(observed), target.mean()),
        REFERENCE: hour_mean_prediction(target, pickup, later_pickup, device),
        "ridge": ridge.predict(later_features, which, device),
        "forest": forest.predict(later_features, which, device),
    }
    importances = device.to_host(fitted.feature_importances_).tolist()
    return Trained(
        service,
        ServiceModel(ridge, forest),
        dict(zip(which.linear_columns(), device.to_host(effects).tolist(), strict=True)),
        dict(zip(which.features, importances, strict=True)),
        evaluate(
            observed, predictions, reference=REFERENCE, replicates=settings.bootstrap, seed=settings.seed, device=device
        ),
        device.to_host(predictions["ridge"]),
        device.to_host(predictions["forest"]),
    )


def hour_mean_prediction(target: Array, pickup: Array, held_out_pickup: Array, device: Device) -> Array:
    """Return the mean of the training trips of the same hour of pickup; of all, where an hour has none.

    Times are int64 microseconds.
    """
    xp = device.xp
    hours = pickup // HOUR % 24
    trips = xp.bincount(hours, minlength=24)
    total = xp.bincount(hours, weights=target, minlength=24)
    means = xp.where(trips > 0, total / xp.maximum(trips, 1), target.mean())
    prediction: Array = means[held_out_pickup // HOUR % 24]
    return prediction
