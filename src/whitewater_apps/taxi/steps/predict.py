"""Step `predict`: the tip fraction that a stored model expects of each trip."""

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from whitewater.engines import Array, Device
from whitewater.engines.config import Engine
from whitewater.errors import InputError
from whitewater.io.store import remove_unfinished, write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.partitions import write_table
from whitewater_apps.taxi.artifact import TipModel, load
from whitewater_apps.taxi.config import Predict, Service
from whitewater_apps.taxi.features import Columns, columns_read, feature_matrix, known_tip_fraction
from whitewater_apps.taxi.operations import operations
from whitewater_apps.taxi.schema import TARGET, columns_of
from whitewater_apps.taxi.trip_files import RowGroup, row_groups, services
from whitewater_apps.taxi.zones import read_zones

logger = logging.getLogger(__name__)
# Readers of Parquet folders skip a file whose name begins so.
SUMMARY = "_summary.json"
FILE_ROWS = 250_000
FRACTIONS = ("observed", "ridge", "forest")
PREDICTED = pa.schema({"pickup_datetime": pa.timestamp("us"), **dict.fromkeys(FRACTIONS, pa.float64())})


def predict(run: Run[Predict], *, trips: Path, zones: Path, model: Path, predictions: Output) -> None:
    """Predict the tip fraction of cleaned trips, in a directory of partitions or in one Parquet file.

    Writes Parquet files below ``service=.../``, in the order of the trips: pickup_datetime, observed (null where no tip
    was recorded), ridge and forest (null for a service that the model does not know). `SUMMARY` beside them counts the
    trips of each service that are predicted, and those that are not.

    Raises InputError if there are no trips, or none of them can be predicted.
    """
    stored, groups = load(model, read_zones(zones)), row_groups(trips)
    if not groups:
        raise InputError(f"{trips} holds no trips to predict. Give cleaned trips.")
    predictions.mkdir()
    summary: dict[Service, dict[str, Any]] = {}
    with run.workers() as workers:
        work = partial(predict_row_group, directory=predictions, engine=run.engine, device=run.device)
        counts = list(workers.map(work, groups, label="predict", shared={"model": stored}))
    for service in services(groups):
        rows = sum(trips for each, trips, _ in counts if each == service)
        finite = sum(predicted for each, _, predicted in counts if each == service)
        known = ", ".join(stored.services) or "no service"
        reason = None if service in stored.services else f"the model was fitted on trips of {known}"
        if rows:
            summary[service] = {
                "trips": rows, "predicted": finite, "not_predicted": rows - finite, "reason": reason
            }  # fmt: skip
    _report(summary, trips=trips, model=model)
    remove_unfinished(predictions)
    write_json(predictions / SUMMARY, summary)
    run.note(services=summary)


def predict_row_group(
    group: RowGroup, *, model: TipModel, directory: Path, engine: Engine, device: Device
) -> tuple[Service, int, int]:
    """Write the predictions of the trips of a row group, at most `FILE_ROWS` a file, in the order of the trips.

    Returns the service, its trips, and those of them that both models predict.
    """
    others = ("pickup_datetime", "payment_type", *columns_of(TARGET))
    names = tuple(dict.fromkeys((*columns_read(model.which.features), *others)))
    folder, trips, predicted = directory / f"service={group.service}", 0, 0
    for number, columns in enumerate(operations(engine).read(group, names, rows=FILE_ROWS, device=device)):
        fractions = _predict(columns, group.service, model, device)
        finite = device.xp.isfinite(fractions["ridge"]) & device.xp.isfinite(fractions["forest"])
        pickup = pa.array(device.to_host(columns["pickup_datetime"]), from_pandas=True)  # NaN is null
        values = [pa.array(device.to_host(fractions[name]), from_pandas=True) for name in FRACTIONS]
        table = pa.table([pickup.cast(pa.int64()).cast(PREDICTED.types[0]), *values], PREDICTED)
        write_table(table, folder / f"part-{group.number:05d}-{number:03d}.parquet")
        trips, predicted = trips + len(finite), predicted + int(finite.sum())
    return group.service, trips, predicted


def _predict(trips: Columns, service: Service, model: TipModel, device: Device) -> dict[str, Array]:
    """Return the observed and the predicted tip fraction of trips of one service, NaN where they are unknown."""
    features, known = feature_matrix(trips, model.which, device), model.services.get(service)
    unknown = dict.fromkeys(FRACTIONS, device.xp.full(len(features), float("nan")))
    predicted = known.predict(features, model.which, device) if known else {}
    return {**unknown, **predicted, "observed": known_tip_fraction(trips, service, device)}


def _report(summary: Mapping[Service, Mapping[str, Any]], *, trips: Path, model: Path) -> None:
    """Say how many trips are predicted, and which are not and why; refuse a model that predicts none."""
    total, predicted = (sum(each[key] for each in summary.values()) for key in ("trips", "predicted"))
    reasons = "; ".join(
        f"{each['not_predicted']} of {service}, as {each['reason'] or 'the models give no finite number'}"
        for service, each in summary.items()
        if each["not_predicted"]
    )
    if not predicted:
        raise InputError(f"none of the {total} trips in {trips} can be predicted by {model}: {reasons}. Fit a model on "
                         "trips of the same service.")  # fmt: skip
    logger.info("%d of %d trips predicted", predicted, total)
    if reasons:
        logger.warning("not predicted: %s", reasons)


if __name__ == "__main__":
    main(predict)
