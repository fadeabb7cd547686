"""A fitted tip model as files: `model.json`, and those of each service, see `whitewater.learn.trained`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from whitewater.io.folder import Format
from whitewater.learn import trained
from whitewater.learn.trained import Models
from whitewater_apps.taxi.features import FeatureSet
from whitewater_apps.taxi.schema import SERVICES
from whitewater_apps.taxi.zones import Zones

FORMAT = Format("model.json", 2, "tip model", remedy="Run the step model again.")
TARGET = "tip_amount / fare_amount of trips with a recorded tip"


@dataclass(frozen=True)
class TipModel:
    """The models of all services that had enough trips, and what they see of a trip."""

    which: FeatureSet
    services: Mapping[str, Models]


def save(model: TipModel, directory: Path) -> None:
    """Write a model into a directory, `model.json` last."""
    described = {
        "target": TARGET,
        "features": model.which.features,
        "boroughs": model.which.boroughs,
        "services": list(model.services),
    }
    trained.save(model.services, directory, form=FORMAT, described=described, columns=model.which.linear_columns())


def load(directory: Path, zones: Zones) -> TipModel:
    """Read a model that `save` wrote, for trips between such zones.

    Every byte is checked before it is interpreted: see `Format.read_signed`.
    """
    described = FORMAT.read_signed(directory)
    services = [each for each in SERVICES if each in described["services"]]
    models: dict[str, Models] = {
        each: trained.load(directory, each, form=FORMAT, files=described["files"]) for each in services
    }
    return TipModel(FeatureSet(tuple(described["features"]), tuple(described["boroughs"]), zones), models)
