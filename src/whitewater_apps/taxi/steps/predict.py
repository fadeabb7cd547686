"""Step `predict`: the tip fraction that a stored model expects of each trip."""

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
from whitewater_apps.taxi.zones import read_zones

logger = logging.getLogger(__name__)
# Readers of Parquet folders skip a file whose name begins so.
SUMMARY = "_summary.json"
FILE_ROWS = 250_000


def predict(run: Run[Predict], *, trips: Path, zones: Path, model: Path, predictions: Output) -> None:
    """Predict the tip fraction of cleaned trips, in a directory of partitions or in one Parquet file.

    Writes Parquet files below ``service=.../``, in the order of the trips: pickup_datetime, observed (null where no tip
    was recorded), ridge and forest (null for a service that the model does not know). `SUMMARY` beside them counts the
    trips of each service that are predicted, and those that are not.

    Raises InputError if there are no trips, or none of them can be predicted.
    """
    (which, models), groups = tip_model.load(model, read_zones(zones)), row_groups(trips)
    if not groups:
        raise InputError(f"{trips} holds no trips to predict. Give cleaned trips.")
    predictions.mkdir()
    with run.workers() as workers:
        work = partial(predict_row_group, directory=predictions, run=run)
        counts = list(workers.map(work, groups, label="predict", shared={"which": which, "models": models}))
    of_others = f"the model was fitted on trips of {', '.join(models) or 'no service'}"
    summary, faults = {}, []
    for service in services(groups):
        rows, finite = np.sum([counted for each, *counted in counts if each == service], axis=0).tolist()
        reason = None if service in models else of_others
        summary[service] = {"trips": rows, "predicted": finite, "not_predicted": rows - finite, "reason": reason}
        if rows > finite:
            faults.append(f"{rows - finite} of {service}, as {reason or 'the models give no finite number'}")
    total, predicted = (sum(each[key] for each in summary.values()) for key in ("trips", "predicted"))
    if not predicted:
        raise InputError(f"none of the {total} trips in {trips} can be predicted by {model}: {'; '.join(faults)}. Fit "
                         "a model on trips of the same service.")  # fmt: skip
    logger.info("%d of %d trips predicted", predicted, total)
    if faults:
        logger.warning("not predicted: %s", "; ".join(faults))
    remove_unfinished(predictions)
    write_json(predictions / SUMMARY, summary)
    run.note(services=summary)


def predict_row_group(
    group: RowGroup, *, which: tip_model.FeatureSet, models: Mapping[str, Models], directory: Path, run: Run[Predict]
) -> tuple[Service, int, int]:
    """Write the predictions of the trips of a row group, at most `FILE_ROWS` a file, in the order of the trips.

    Returns the service, its trips, and those of them that both models predict.
    """
    others = ("pickup_datetime", "payment_type", *columns_of(TARGET))
    names = (*tip_model.columns_read(which.features), *others)
    device, known = run.device, models.get(group.service)
    folder, trips, predicted = directory / f"service={group.service}", 0, 0
    for number, columns in enumerate(tip_model.read_trips(group, names, rows=FILE_ROWS, run=run)):
        features = tip_model.feature_matrix(columns, which, device)
        fractions = dict.fromkeys(tip_model.FRACTIONS, device.xp.full(len(features), np.nan))
        if known:
            fractions |= known.predict(features, which, device)
        fractions["observed"] = tip_model.known_tip_fraction(columns, group.service, device)
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
