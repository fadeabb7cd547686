"""Step `predict`: the tip fraction that a stored model expects of each trip."""

import logging
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from whitewater.engines import Array, Device
from whitewater.errors import InputError
from whitewater.io.store import write_json, write_whole
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.blocks import Block, Kind
from whitewater.tables.parquet.blocks import write_parquet
from whitewater_apps.taxi.artefact import TipModel, load
from whitewater_apps.taxi.blocks import RowGroup, blocks, row_groups
from whitewater_apps.taxi.config import Predict
from whitewater_apps.taxi.features import columns_read, feature_matrix, known_tip_fraction
from whitewater_apps.taxi.schema import KINDS, SERVICES, Service
from whitewater_apps.taxi.zones import Zones, read_zones

logger = logging.getLogger(__name__)
# Readers of Parquet folders skip a file whose name begins so.
SUMMARY = "_summary.json"
PREDICTED: dict[str, Kind] = {
    "pickup_datetime": "timestamp",
    "observed": "float64",
    "ridge": "float64",
    "forest": "float64",
}


def predict(run: Run[Predict], *, trips: Path, zones: Path, model: Path, predictions: Output) -> None:
    """Predict the tip fraction of cleaned trips, in a directory of partitions or in one Parquet file.

    Writes Parquet files below ``service=.../``, in the order of the trips: pickup_datetime, observed (null where no tip
    was recorded), ridge and forest (null for a service that the model does not know). `SUMMARY` beside them counts the
    trips of each service that are predicted, and those that are not.

    Raises InputError if there are no trips, or none of them can be predicted.
    """
    work = partial(predict_row_group, zones=read_zones(zones), device=run.device, predictions=predictions)
    stored, groups = load(model), row_groups(trips)
    if not groups:
        raise InputError(f"{trips} holds no trips to predict. Give cleaned trips.")
    predictions.mkdir()
    trips_of: Counter[Service] = Counter()
    predicted: Counter[Service] = Counter()
    with run.workers() as workers:
        placed = workers.place(stored)
        tasks = [(number, group, placed) for number, group in enumerate(groups)]
        for more_trips, more_predicted in workers.map(work, tasks, label="predict"):
            trips_of.update(more_trips)
            predicted.update(more_predicted)
    summary = summarise(trips_of, predicted, stored)
    _check(summary, trips=trips, model=model)
    write_json(predictions / SUMMARY, summary)
    run.note(services=summary)


def summarise(
    trips: Mapping[Service, int], predicted: Mapping[Service, int], model: TipModel
) -> dict[str, dict[str, Any]]:
    """Return by service the trips, those predicted, and those that are not with the reason."""
    known = ", ".join(model.services) or "no service"
    return {
        service: {
            "trips": trips[service],
            "predicted": predicted[service],
            "not_predicted": trips[service] - predicted[service],
            "reason": None if service in model.services else f"the model was fitted on trips of {known}",
        }
        for service in SERVICES
        if trips[service]
    }


def _check(summary: Mapping[str, Mapping[str, Any]], *, trips: Path, model: Path) -> None:
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


def predict_row_group(
    task: tuple[int, RowGroup, TipModel], *, zones: Zones, device: Device, predictions: Path
) -> tuple[Counter[Service], Counter[Service]]:
    """Predict the trips of a row group and write a file for each block and service.

    Returns the trips by service, and those of them that both models predict.
    """
    number, group, model = task
    names = (*columns_read(model.which.features), "pickup_datetime", "payment_type", "fare_amount", "tip_amount")
    trips: Counter[Service] = Counter()
    finite: Counter[Service] = Counter()
    for position, block in enumerate(blocks(group, {name: KINDS[name] for name in names}, device)):
        for service, rows in _by_service(block, group):
            path = predictions / f"service={service}" / f"part-{number:05d}-{position:03d}.parquet"
            predicted = predict_block(rows, service, model=model, zones=zones, device=device)
            write_whole(path, partial(write_parquet, device, predicted, kinds=PREDICTED))
            trips[service] += len(rows["service"])
            both = device.xp.isfinite(predicted["ridge"]) & device.xp.isfinite(predicted["forest"])
            finite[service] += int(both.sum())
    return trips, finite


def predict_block(block: Block, service: Service, *, model: TipModel, zones: Zones, device: Device) -> Block:
    """Return the observed and the predicted tip fraction of the trips of one service, NaN where they are unknown."""
    features = feature_matrix(block, model.which, zones, device)
    unknown: Array = device.xp.full(len(features), float("nan"))
    known = model.services.get(service)
    return {
        "pickup_datetime": block["pickup_datetime"],
        "observed": known_tip_fraction(block, device),
        "ridge": known.ridge.predict(features, model.which, device) if known else unknown,
        "forest": known.forest.predict(features, model.which, device) if known else unknown,
    }


def _by_service(block: Block, group: RowGroup) -> list[tuple[Service, Block]]:
    if group.service:
        return [(group.service, block)]
    parts = ((service, block["service"] == code) for code, service in enumerate(SERVICES))
    return [(service, {name: values[rows] for name, values in block.items()}) for service, rows in parts if rows.any()]


if __name__ == "__main__":
    main(predict)
