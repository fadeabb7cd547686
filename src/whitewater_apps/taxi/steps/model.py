"""Step `model`: fit models of the tip fraction of each service, and test them on later trips.

`metrics.json` has for each service its ``sample`` (rule, limit, eligible and used trips) and a ``status``: ``skipped``
with the ``reason``, or ``fitted`` with

- ``split``: the time from which trips are held out, and the numbers of trips before and after it;
- ``search``: each candidate with R2 and mean absolute error of each fold, and the ``best`` parameters;
- ``held_out``: R2, mean absolute error and the gain over the hour's mean, of `constant`, `hour_mean`, `ridge` and
  `forest`, with 95 % intervals;
- ``effects``: what a standard deviation of each column adds, in the ridge;
- ``importances``: the importance of each feature in the forest; they add up to 1.

`predictions.parquet` has the held-out trips: service, pickup_datetime, observed, ridge, forest.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines.workers import Workers
from whitewater.io.store import write_json
from whitewater.learn.sample import Sample, split_by_time
from whitewater.learn.trained import CONFIDENCE, Trained, fit_groups, grid
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.taxi.config import Model, Service
from whitewater_apps.taxi.data_sets import RowGroup, row_groups, services
from whitewater_apps.taxi.tip_model import PREDICTED, PREDICTIONS, RULE, FeatureSet, draw_sample, save
from whitewater_apps.taxi.zones import read_zones

logger = logging.getLogger(__name__)
MINIMUM_TRIPS = 200
MINIMUM_HELD_OUT = 20
# The training trips, and those held out.
Split = tuple[Sample, Sample]


def model(run: Run[Model], *, trips: Path, zones: Path, model: Output) -> None:
    """Fit a ridge regression and a random forest of the tip fraction for each service, and test them on later trips."""
    table = read_zones(zones)
    feature_set = FeatureSet(run.settings.features, table.borough_names, table)
    groups = row_groups(trips)
    limit, splits = run.settings.max_rows, {}
    with run.workers() as workers:
        forecast(groups, feature_set, run, workers)
        logger.info("at most %d trips of each service are used: %s", limit, RULE)
        for service in services(groups):
            drawn = draw_sample(groups, service, feature_set=feature_set, run=run, workers=workers)
            logger.info("%s: %d of %d eligible trips are used", service, len(drawn), drawn.eligible)
            splits[service] = split_by_time(drawn, run.settings.test_fraction)
        reasons = {service: _reason_to_skip(*split, run.settings) for service, split in splits.items()}
        to_fit = {service: splits[service] for service, reason in reasons.items() if reason is None}
        results = fit_groups(to_fit, run, forms=feature_set, workers=workers)
    model.mkdir()
    save(feature_set, {service: result.models for service, result in results.items()}, model)
    metrics: dict[str, dict[str, Any]] = {}
    used = {service: len(training) + len(held_out) for service, (training, held_out) in splits.items()}
    for service, (training, held_out) in splits.items():
        sample = {"rule": RULE, "limit": limit, "eligible": training.eligible, "used": used[service]}
        if service in results:
            start = str(np.datetime64(int(held_out.time.min()), "us"))
            split = {"held_out_from": start, "training_trips": len(training), "held_out_trips": len(held_out)}
            metrics[service] = {"sample": sample, "status": "fitted", "split": split, **results[service].metrics}
        else:
            metrics[service] = {"sample": sample, "status": "skipped", "reason": reasons[service]}
            logger.warning("%s: no model: %s", service, reasons[service])
    write_json(model / "metrics.json", {"target": PREDICTED, "confidence": CONFIDENCE, "services": metrics})
    _write_predictions(model / "predictions.parquet", splits, results)
    run.note(trips=used, fitted=list(to_fit))


def forecast(groups: Sequence[RowGroup], feature_set: FeatureSet, run: Run[Model], workers: Workers) -> None:
    """Raise ResourceError if the work does not fit into memory."""
    settings = run.settings
    width, columns = len(feature_set.features), len(feature_set.linear_columns())
    rows = [sum(group.rows for group in groups if group.service == service) for service in services(groups)]
    samples = [min(count, settings.max_rows) for count in rows]
    largest = max(samples, default=0)
    # A sampling task holds a dozen columns of a row group, and a copy of a block of them: 150 bytes a row.
    reading = max((group.rows for group in groups), default=0) * 150
    # A ridge task holds its features, its columns, and a few temporary columns.
    fitting = largest * (2 * width + columns + 4) * 8
    row_bytes = (width + 3) * 8
    workers.forecast(
        run.device,
        a_task=max(reading, fitting),
        tasks=max(len(groups), len(grid(settings)) * settings.folds * len(samples)),
        shared=sum(samples) * row_bytes,
        # Drawing a sample holds up to three times its rows, and copies them.
        here=(sum(samples) + 6 * largest) * row_bytes,
        what="the tip model",
        remedy="Set taxi.model.max_rows to fewer trips.",
    )


def _write_predictions(path: Path, splits: Mapping[Service, Split], results: Mapping[Service, Trained]) -> None:
    """Write the held-out trips with their predictions, sorted by pickup."""
    schema = PREDICTIONS.insert(0, pa.field("service", pa.string()))
    tables = [schema.empty_table()]
    for service, result in results.items():
        _, held_out = splits[service]
        columns = (held_out.time.view("datetime64[us]"), held_out.target, *result.predictions.values())
        order = np.argsort(held_out.time, kind="stable")
        tables.append(pa.table([[service] * len(order), *(column[order] for column in columns)], schema=schema))
    pq.write_table(pa.concat_tables(tables), path, compression="zstd")


def _reason_to_skip(training: Sample, held_out: Sample, settings: Model) -> str | None:
    """Say why a service has too few trips for a model, or return None."""
    requirements = (
        ("trips with a recorded tip", len(training) + len(held_out), MINIMUM_TRIPS),
        ("trips before those held out", len(training), max(MINIMUM_TRIPS // 2, 2 * settings.folds)),
        ("trips held out", len(held_out), MINIMUM_HELD_OUT),
    )
    return next((f"{trips} {what}, fewer than {least}" for what, trips, least in requirements if trips < least), None)


if __name__ == "__main__":
    main(model)
