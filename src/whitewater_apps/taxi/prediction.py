"""The tip fractions that a stored model expects of trips, and the files that they are written to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines import Array, Device
from whitewater.engines.choose import Engine
from whitewater.tables.arrow_arrays import to_arrow
from whitewater.tables.partitions import write_table
from whitewater_apps.taxi.artifact import TipModel
from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.features import Columns, columns_read, feature_matrix, known_tip_fraction
from whitewater_apps.taxi.operations import operations
from whitewater_apps.taxi.schema import TARGET, columns_of
from whitewater_apps.taxi.trip_files import RowGroup

FILE_ROWS = 250_000
PREDICTED = pa.schema(
    {"pickup_datetime": pa.timestamp("us"), **dict.fromkeys(("observed", "ridge", "forest"), pa.float64())}
)


@dataclass(frozen=True)
class Counts:
    """The trips of a service in a row group, and those of them that both models predict."""

    service: Service
    trips: int
    predicted: int


def predict_row_group(group: RowGroup, *, model: TipModel, directory: Path, engine: Engine, device: Device) -> Counts:
    """Write the predictions of the trips of a row group, at most `FILE_ROWS` a file, in the order of the trips."""
    others = ("pickup_datetime", "payment_type", *columns_of(TARGET))
    names = tuple(dict.fromkeys((*columns_read(model.which.features), *others)))
    folder, trips, predicted = directory / f"service={group.service}", 0, 0
    for number, columns in enumerate(operations(engine).read(group, names, rows=FILE_ROWS, device=device)):
        fractions = _predict(columns, group.service, model, device)
        known = device.xp.isfinite(fractions["ridge"]) & device.xp.isfinite(fractions["forest"])
        found = {"pickup_datetime": columns["pickup_datetime"], **fractions}
        table = pa.table({name: _nullable(device.to_host(values)) for name, values in found.items()})
        # Times are whole numbers of microseconds.
        whole = table.set_column(0, "pickup_datetime", table[0].cast(pa.int64()))
        write_table(whole.cast(PREDICTED), folder / f"part-{group.number:05d}-{number:03d}.parquet")
        trips, predicted = trips + len(known), predicted + int(known.sum())
    return Counts(group.service, trips, predicted)


def _predict(trips: Columns, service: Service, model: TipModel, device: Device) -> dict[str, Array]:
    """Return the observed and the predicted tip fraction of trips of one service, NaN where they are unknown."""
    which, known = model.which, model.services.get(service)
    features = feature_matrix(trips, which, device)
    unknown: Array = device.xp.full(len(features), float("nan"))
    return {
        "observed": known_tip_fraction(trips, service, device),
        "ridge": known.ridge.predict(features, which, device) if known else unknown,
        "forest": known.forest.predict(features, which, device) if known else unknown,
    }


def _nullable(values: Array) -> pa.Array:
    numbers = to_arrow(values)
    return pc.if_else(pc.is_nan(numbers), None, numbers)
