"""Step `predict`: the tip fraction that a stored model expects of each trip."""

from __future__ import annotations

import logging
from collections import Counter
from functools import partial
from pathlib import Path

from whitewater.config.taxi import Predict
from whitewater.devices import Array, Block, Device, Kind
from whitewater.errors import InputError
from whitewater.step import Output, Run
from whitewater.taxi.artefact import TipModel, load
from whitewater.taxi.features import columns_read, feature_matrix, known_tip_fraction
from whitewater.taxi.partitions import write_whole
from whitewater.taxi.row_groups import RowGroup, blocks, row_groups
from whitewater.taxi.schema import KINDS, SERVICES, Service
from whitewater.taxi.zones import Zones, read_zones

logger = logging.getLogger(__name__)
PREDICTED: dict[str, Kind] = {
    "pickup_datetime": "timestamp",
    "observed": "float64",
    "ridge": "float64",
    "forest": "float64",
}


def predict(run: Run[Predict], *, trips: Path, zones: Path, model: Path, predictions: Output) -> None:
    """Predict the tip fraction of cleaned trips, in a directory of partitions or in one Parquet file.

    Writes Parquet files below ``service=.../``, in the order of the trips: pickup_datetime, observed (null where no tip
    was recorded), ridge and forest (null for a service that the model does not know).
    """
    work = partial(predict_row_group, zones=read_zones(zones), device=run.device, predictions=predictions)
    stored, groups = load(model), row_groups(trips)
    if not groups:
        raise InputError(f"{trips} holds no trips to predict. Give cleaned trips.")
    predictions.mkdir()
    counts: Counter[str] = Counter()
    with run.cluster() as client:
        placed = client.place(stored)
        tasks = [(number, group, placed) for number, group in enumerate(groups)]
        for each in run.map(work, tasks, client=client, label="predict"):
            counts.update(each)
    run.note(trips=dict(counts))
    logger.info("%d trips predicted", sum(counts.values()))


def predict_row_group(
    task: tuple[int, RowGroup, TipModel], *, zones: Zones, device: Device, predictions: Path
) -> Counter[str]:
    """Predict the trips of a row group, write a file for each block and service, and count the trips by service."""
    number, group, model = task
    names = (*columns_read(model.which.features), "pickup_datetime", "payment_type", "fare_amount", "tip_amount")
    counts: Counter[str] = Counter()
    for position, block in enumerate(blocks(group, {name: KINDS[name] for name in names}, device)):
        for service, rows in _by_service(block, group):
            path = predictions / f"service={service}" / f"part-{number:05d}-{position:03d}.parquet"
            predicted = predict_block(rows, service, model=model, zones=zones, device=device)
            write_whole(path, partial(device.write_parquet, predicted, kinds=PREDICTED))
            counts[service] += len(rows["service"])
    return counts


def predict_block(block: Block, service: Service, *, model: TipModel, zones: Zones, device: Device) -> Block:
    """Return the observed and the predicted tip fraction of the trips of one service, NaN where they are unknown."""
    features = feature_matrix(block, model.which, zones, device)
    unknown: Array = device.xp.full(len(features), float("nan"))
    known = model.services.get(service)
    return {
        "pickup_datetime": block["pickup_datetime"],
        "observed": known_tip_fraction(block, device),
        "ridge": known.ridge.predict(features, model.which, device) if known else unknown,
        "forest": known.forest.predict(features, device) if known else unknown,
    }


def _by_service(block: Block, group: RowGroup) -> list[tuple[Service, Block]]:
    if group.service:
        return [(group.service, block)]
    parts = ((service, block["service"] == code) for code, service in enumerate(SERVICES))
    return [(service, {name: values[rows] for name, values in block.items()}) for service, rows in parts if rows.any()]
