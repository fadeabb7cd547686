"""A fitted tip model as files: JSON and treelite, each with its SHA-256, so that reading one runs no code of its own.

=========================== ====================================================================================
file                        content
=========================== ====================================================================================
`model.json`                format, version, target, features, boroughs, services, and the SHA-256 of the others
`<service>/ridge.json`      columns, their coefficients, intercept
`<service>/forest.treelite` random forest as treelite serializes it
=========================== ====================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from whitewater.io.folder import Format, write_file
from whitewater.io.store import json_bytes
from whitewater.learn.search import ForestModel, LinearModel
from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.features import FeatureSet
from whitewater_apps.taxi.fit import ServiceModel
from whitewater_apps.taxi.schema import SERVICES

FORMAT = Format("model.json", 2, "tip model", remedy="Run the step model again.")
TARGET = "tip_amount / fare_amount of trips with a recorded tip"


@dataclass(frozen=True)
class TipModel:
    """The models of all services that had enough trips, and what they see of a trip."""

    which: FeatureSet
    services: Mapping[Service, ServiceModel]


def save(model: TipModel, directory: Path) -> None:
    """Write a model into a directory, `model.json` last."""
    files: dict[str, str] = {}
    for service, each in model.services.items():
        ridge = {
            "columns": model.which.linear_columns(),
            "coefficients": each.ridge.coefficients,
            "intercept": each.ridge.intercept,
        }
        stored = {f"{service}/ridge.json": json_bytes(ridge), f"{service}/forest.treelite": each.forest.serialized}
        files |= {name: write_file(directory / name, data) for name, data in stored.items()}
    described = {
        "target": TARGET,
        "features": model.which.features,
        "boroughs": model.which.boroughs,
        "services": list(model.services),
    }
    FORMAT.write_signed(directory, described, files)


def load(directory: Path) -> TipModel:
    """Read a model that `save` wrote; every byte is checked before it is interpreted. See `Format.read_signed`."""
    found = FORMAT.read_signed(directory)
    services = {}
    for service in (each for each in SERVICES if each in found["services"]):
        ridge = json.loads(FORMAT.read_file(directory, f"{service}/ridge.json", found["files"]))
        forest = FORMAT.read_file(directory, f"{service}/forest.treelite", found["files"])
        services[service] = ServiceModel(
            LinearModel(tuple(ridge["coefficients"]), ridge["intercept"]), ForestModel(forest)
        )
    return TipModel(FeatureSet(tuple(found["features"]), tuple(found["boroughs"])), services)
