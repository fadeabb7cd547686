"""Step `predict`: predict the tip fraction of each trip by a stored model."""

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from whitewater.errors import InputError
from whitewater.io.store import remove_unfinished, write_json
from whitewater.learn.trained import Models
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.partitions import write_table
from whitewater_apps.taxi import tip_model
from whitewater_apps.taxi.config import Predict, Service
from whitewater_apps.taxi.data_sets import RowGroup, row_groups, services
from whitewater_apps.taxi.schema import TARGET, columns_of
from whitewater_apps.taxi.tip_model import FeatureSet
from whitewater_apps.taxi.zones import read_zones

logger = logging.getLogger(__name__)
# Readers of Parquet directories skip names that begin with an underscore.
SUMMARY = "_summary.json"
FILE_ROWS = 250_000  # on every device, so that it writes the same files


def predict(run: Run[Predict], *, trips: Path, zones: Path, model: Path, predictions: Output) -> None:
    """Predict the tip fraction of cleaned trips, a partitioned directory or one Parquet file.

    Writes Parquet files below ``service=.../``, in the order of the trips: pickup_datetime, observed (null without a
    recorded tip), ridge and forest (null for a service without a model). `SUMMARY` counts the trips of each service
    with and without a prediction.

    Raises InputError if no trip can be predicted.
    """
    (feature_set, models), groups = tip_model.load(model, read_zones(zones)), row_groups(trips)
    if not groups:
        raise InputError(f"{trips} holds no trips to predict. Give cleaned trips.")
    predictions.mkdir()
    with run.workers() as workers:
        shared = {"feature_set": feature_set, "models": models}
        work = partial(_predict_row_group, directory=predictions, run=run)
        counts = list(workers.map(work, groups, label="predict", shared=shared))
    without_model = f"the model was fitted on trips of {', '.join(models) or 'no service'}"
    summary, faults, total, total_predicted = {}, [], 0, 0
    for service in services(groups):
        rows, predicted = np.sum([numbers for name, *numbers in counts if name == service], axis=0).tolist()
        missing, reason = rows - predicted, None if service in models else without_model
        summary[service] = {"trips": rows, "predicted": predicted, "not_predicted": missing, "reason": reason}
        total, total_predicted = total + rows, total_predicted + predicted
        if missing:
            faults.append(f"{missing} of {service}, as {reason or 'the models give no finite number'}")
    if not total_predicted:
        raise InputError(f"none of the {total} trips in {trips} can be predicted by {model}: {'; '.join(faults)}. Fit "
                         "a model on trips of the same service.")  # fmt: skip
    logger.info("%d of %d trips predicted", total_predicted, total)
    if faults:
        logger.warning("not predicted: %s", "; ".join(faults))
    remove_unfinished(predictions)
    write_json(predictions / SUMMARY, summary)
    run.note(services=summary)


def _predict_row_group(
    group: RowGroup, *, feature_set: FeatureSet, models: Mapping[str, Models], directory: Path, run: Run[Predict]
) -> tuple[Service, int, int]:
    """Write the predictions of a row group; return its service, and the numbers of trips and of predicted ones."""
    names = (*tip_model.columns_read(feature_set.features), "pickup_datetime", "payment_type", *columns_of(TARGET))
    device, folder, trips, predicted = run.device, directory / f"service={group.service}", 0, 0
    for number, columns in enumerate(tip_model.read_trips(group, names, rows=FILE_ROWS, run=run)):
        features = tip_model.feature_matrix(columns, feature_set, device)
        fractions = dict.fromkeys(tip_model.FRACTIONS, device.xp.full(len(features), np.nan))
        if group.service in models:
            fractions |= models[group.service].predict(features, feature_set, device)
        fractions["observed"] = tip_model.recorded_tip_fraction(columns, group.service, device)
        finite = device.xp.isfinite(fractions["ridge"]) & device.xp.isfinite(fractions["forest"])
        # NaN is null.
        pickup = pa.array(device.to_host(columns["pickup_datetime"]), from_pandas=True).cast(pa.int64())
        values = [pa.array(device.to_host(fractions[name]), from_pandas=True) for name in tip_model.FRACTIONS]
        table = pa.table([pickup.cast(tip_model.PREDICTIONS.types[0]), *values], tip_model.PREDICTIONS)
        write_table(table, folder / f"part-{group.number:05d}-{number:03d}.parquet")
        trips, predicted = trips + len(finite), predicted + int(finite.sum())
    return group.service, trips, predicted


if __name__ == "__main__":
    main(predict)
