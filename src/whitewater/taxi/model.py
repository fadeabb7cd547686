"""Step `model`: predict the tip fraction of trips with a recorded tip, for each service.

`metrics.json` holds, for each service, a ``status``: ``skipped`` with the ``reason``, or ``fitted`` with ``sample`` (the
rule, the eligible and the sampled trips), ``split`` (the moment, the trips before and from it on), ``search`` (each
candidate with the R2 and mean absolute error of each fold, and the ``best`` parameters), ``held_out`` (R2, mean absolute
error and the gain over the hour's mean, of `constant`, `hour_mean`, `ridge` and `forest`, with 95 % intervals),
``effects`` (what a standard deviation of each column adds by the ridge) and ``importances`` (of each feature, in the
forest). `predictions.parquet` holds the held-out trips: service, pickup_datetime, observed, ridge, forest.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater import memory
from whitewater.config.taxi import Model
from whitewater.devices import Array, Device
from whitewater.store import write_json
from whitewater.taxi.artefact import TARGET, ServiceModel, TipModel, save
from whitewater.taxi.evaluate import CONFIDENCE, constant_prediction, evaluate, hour_mean_prediction
from whitewater.taxi.features import FeatureSet, linear_columns
from whitewater.taxi.fit import Fitted, fit_best
from whitewater.taxi.row_groups import BLOCK_ROWS, row_groups
from whitewater.taxi.sample import RULE, RunTasks, Sample, draw
from whitewater.taxi.schema import SERVICES, Service
from whitewater.taxi.search import FoldScore, best, candidates, parameters, report, score_fold
from whitewater.taxi.zones import read_zones

if TYPE_CHECKING:
    from distributed import Client

    from whitewater.step import Output, Run

logger = logging.getLogger(__name__)
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
    """What the models of a service were worth on its held-out trips, and their predictions."""

    service: Service
    held_out: dict[str, Any]
    ridge: Array
    forest: Array


def model(run: Run[Model], *, trips: Path, zones: Path, model: Output) -> None:
    """Fit a ridge regression and a random forest of the tip fraction for each service, and test them on later trips."""
    settings, device = run.settings, run.device
    table = read_zones(zones)
    which = FeatureSet(settings.features, table.boroughs)
    groups = row_groups(trips)
    memory.forecast(
        expected_memory({service: sum(group.rows for group in groups if group.service in (None, service))
                         for service in SERVICES}, which, settings, threads=run.threads),
        what="The tip model", remedy="Set taxi.model.max_rows to fewer trips.",
    )  # fmt: skip
    model.mkdir()
    with run.cluster() as client:
        run_tasks: RunTasks = partial(run.map, client=client)
        metrics: dict[str, Any] = {}
        splits: dict[Service, Split] = {}
        for service in SERVICES:
            sample = draw(groups, service, which=which, zones=table, device=device, max_rows=settings.max_rows,
                          run_tasks=run_tasks)  # fmt: skip
            split = split_by_time(sample, settings.test_fraction)
            ...
