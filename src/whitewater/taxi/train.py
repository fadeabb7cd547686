"""From the sampled trips of each service to models, what they are worth, and their predictions of held-out trips."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from whitewater.config.taxi import Model
from whitewater.devices import Array, Device
from whitewater.taxi.artefact import ServiceModel, TipModel
from whitewater.taxi.evaluate import constant_prediction, evaluate, hour_mean_prediction
from whitewater.taxi.features import FeatureSet
from whitewater.taxi.fit import Fitted, fit_best
from whitewater.taxi.sample import RULE, RunTasks, Sample
from whitewater.taxi.schema import Service
from whitewater.taxi.search import FoldScore, best, candidates, parameters, report, score_fold

MINIMUM_TRIPS = 200
MINIMUM_HELD_OUT = 20


@dataclass(frozen=True)
class Split:
    """The sampled trips of a service before a moment (microseconds), to learn from, and those from it on."""

    moment: int
    training: Sample
    held_out: Sample


@dataclass(frozen=True)
class Evaluation:
    """What the models of a service were worth on its held-out trips, and what they predicted there, on the host."""

    service: Service
    scores: dict[str, Any]
    ridge: Array
    forest: Array


@dataclass(frozen=True)
class Trained:
    """The models, and for each service what `metrics.json` says and the held-out trips with their predictions."""

    model: TipModel
    metrics: dict[Service, dict[str, Any]]
    held_out: dict[Service, dict[str, Array]]


def split_by_time(sample: Sample, test_fraction: float) -> Split:
    """Hold out the latest trips; trips of one moment stay together, and both parts stay in the order of the hash."""
    position = min(int(len(sample) * (1 - test_fraction)), max(0, len(sample) - 1))
    moment = int(np.sort(sample.pickup)[position]) if len(sample) else 0
    return Split(moment, sample.take(sample.pickup < moment), sample.take(sample.pickup >= moment))


def reason_to_skip(sample: Sample, split: Split, settings: Model) -> str | None:
    """Say why a service has too few trips to fit and test a model, or return None."""
    if sample.eligible < MINIMUM_TRIPS:
        return f"{sample.eligible} trips with a recorded tip, fewer than {MINIMUM_TRIPS}"
    if len(split.training) < max(MINIMUM_TRIPS // 2, 2 * settings.folds):
        return f"{len(split.training)} trips before the held-out ones, too few for {settings.folds} folds"
    if len(split.held_out) < MINIMUM_HELD_OUT:
        return f"{len(split.held_out)} trips are held out, fewer than {MINIMUM_HELD_OUT}"
    return None


def train(
    samples: Mapping[Service, Sample],
    *,
    which: FeatureSet,
    settings: Model,
    device: Device,
    run_tasks: RunTasks,
    place: Callable[[Array], Any],
) -> Trained:
    """Search, fit and test a ridge regression and a random forest for each service.

    Parameters
    ----------
    samples
        The trips of each service, in the order of their hash.
    which
        The features and boroughs.
    settings
        Section ``taxi.model`` of the configuration.
    device
        Where models are fitted and tested.
    run_tasks
        Runs one task for each candidate and fold, and then for each model.
    place
        Puts an array of the host on the workers, and returns what stands for it in a task.
    """
    splits = {service: split_by_time(sample, settings.test_fraction) for service, sample in samples.items()}
    reasons = {service: reason_to_skip(samples[service], split, settings) for service, split in splits.items()}
    data = {service: _place(splits[service], place) for service, reason in reasons.items() if reason is None}
    bound = {"which": which, "settings": settings, "device": device}
    found = _search(data, partial(score_fold, **bound), settings, run_tasks)
    chosen = {service: best(scores) for service, scores in found.items()}
    fitted = _fit(data, partial(fit_best, **bound), chosen, run_tasks)
    models = {service: ServiceModel(each["ridge"].model, each["forest"].model) for service, each in fitted.items()}
    tests = [(service, models[service], each) for service, each in data.items()]
    tested = {each.service: each for each in run_tasks(partial(test, **bound), tests, label="test")}
    metrics = {service: _sampling(sample, settings) | {"status": "skipped", "reason": reasons[service]}
               for service, sample in samples.items()}  # fmt: skip
    for service in data:
        metrics[service] |= {"status": "fitted"}
    return Trained(TipModel(which, models), metrics, {})
