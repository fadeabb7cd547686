"""The tip fractions that a stored model expects of trips, and the files that they are written to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from whitewater.engines import Array, Device
from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.features import Columns, columns_read, feature_matrix, known_tip_fraction
from whitewater_apps.taxi.schema import TARGET, columns_of
from whitewater_apps.taxi.trip_files import RowGroup
from whitewater_apps.taxi.zones import Zones

if TYPE_CHECKING:
    from whitewater_apps.taxi.artifact import TipModel

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


@dataclass(frozen=True)
class Prediction:
    """A model, and the directory that its predictions are written to: at most `FILE_ROWS` trips a file."""

    model: TipModel
    zones: Zones
    directory: Path

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of trips that are read."""
        others = ("pickup_datetime", "payment_type", *columns_of(TARGET))
        return tuple(dict.fromkeys((*columns_read(self.model.which.features), *others)))

    def file(self, group: RowGroup, start: int) -> Path:
        """Return the path of the file for a row group's trips from number ``start`` on."""
        name = f"part-{group.number:05d}-{start // FILE_ROWS:03d}.parquet"
        return self.directory / f"service={group.service}" / name

    def of(self, trips: Columns, service: Service, device: Device) -> tuple[dict[str, Array], int]:
        """Return the observed and the predicted tip fraction of trips of one service, NaN where they are unknown.

        Besides, return the number of trips that both models predict.
        """
        which, known = self.model.which, self.model.services.get(service)
        features = feature_matrix(trips, which, self.zones, device)
        unknown: Array = device.xp.full(len(features), float("nan"))
        ridge = known.ridge.predict(features, which, device) if known else unknown
        forest = known.forest.predict(features, which, device) if known else unknown
        predicted = int((device.xp.isfinite(ridge) & device.xp.isfinite(forest)).sum())
        return {"observed": known_tip_fraction(trips, service, device), "ridge": ridge, "forest": forest}, predicted
