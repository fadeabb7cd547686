"""From the sampled trips of a service to its models, what they are worth, and their predictions of later trips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from whitewater.config.taxi import Model
from whitewater.devices import Array, Device
from whitewater.taxi.evaluate import constant_prediction, evaluate, hour_mean_prediction
from whitewater.taxi.features import FeatureSet, linear_columns
from whitewater.taxi.fit import ServiceModel, fit_forest, fit_ridge, store_forest
from whitewater.taxi.sample import Sample
from whitewater.taxi.schema import Service
from whitewater.taxi.search import Chosen

MINIMUM_TRIPS = 200
MINIMUM_HELD_OUT = 20


@dataclass(frozen=True)
class Split:
    """The sampled trips of a service before a moment (microseconds), to learn from, and those from it on."""

    moment: int
    training: Sample
    held_out: Sample

    @property
    def trips(self) -> int:
        """Number of trips in both parts."""
        return len(self.training) + len(self.held_out)


@dataclass(frozen=True)
class Trained:
    """The models of a service, and how they predict its held-out trips.

    ``effects``: what a standard deviation of each column adds to the ridge's prediction; ``importances``: the share of
    each feature in what the forest's splits explain; ``scores``: see `whitewater.taxi.evaluate.evaluate`; ``ridge`` and
    ``forest``: predictions of the held-out trips, float64 (trips,) on the host.
    """

    service: Service
    model: ServiceModel
    effects: dict[str, float]
    importances: dict[str, float]
    scores: dict[str, Any]
    ridge: Array
    forest: Array


# A service, its candidates, and features, target and pickup time of its training trips and of its held-out trips.
TrainTask = tuple[Service, Chosen, Array, Array, Array, Array, Array, Array]


def split_by_time(sample: Sample, test_fraction: float) -> Split:
    """Hold out the latest trips; trips of one moment stay together, and both parts stay in the order of the hash."""
    if not len(sample):
        return Split(0, sample, sample)
    position = min(int(len(sample) * (1 - test_fraction)), len(sample) - 1)
    moment = int(np.sort(sample.pickup)[position])
    return Split(moment, sample.take(sample.pickup < moment), sample.take(sample.pickup >= moment))


def reason_to_skip(split: Split, settings: Model) -> str | None:
    """Say why a service has too few trips to fit and test a model, or return None."""
    least = max(MINIMUM_TRIPS // 2, 2 * settings.folds)
    if split.trips < MINIMUM_TRIPS:
        return f"{split.trips} trips with a recorded tip, fewer than {MINIMUM_TRIPS}"
    if len(split.training) < least:
        return f"{len(split.training)} trips before those held out, fewer than {least}"
    if len(split.held_out) < MINIMUM_HELD_OUT:
        return f"{len(split.held_out)} trips held out, fewer than {MINIMUM_HELD_OUT}"
    return None


def train_service(task: TrainTask, *, which: FeatureSet, settings: Model, device: Device) -> Trained:
    """Fit the chosen candidates on all training trips of a service, and test them on its held-out trips.

    The scores are those of the models as they are stored.
    """
    service, chosen, features, target, pickup, later_features, observed, later_pickup = task
    ridge, effects = fit_ridge(features, target, chosen.ridge, which=which, device=device)
    fitted = fit_forest(features, target, chosen.forest, settings=settings, device=device)
    forest, importances = store_forest(fitted, device)
    predictions = {
        "constant": constant_prediction(target, len(observed), device),
        "hour_mean": hour_mean_prediction(target, pickup, later_pickup, device),
        "ridge": ridge.predict(later_features, which, device),
        "forest": forest.predict(later_features, device),
    }
    return Trained(
        service,
        ServiceModel(ridge, forest),
        _named(linear_columns(which), effects, device),
        _named(which.features, importances, device),
        evaluate(observed, predictions, replicates=settings.bootstrap, seed=settings.seed, device=device),
        device.to_host(predictions["ridge"]),
        device.to_host(predictions["forest"]),
    )


def _named(names: tuple[str, ...], values: Array, device: Device) -> dict[str, float]:
    numbers = device.to_host(values).tolist()
    return {name: float(number) for name, number in zip(names, numbers, strict=True)}
