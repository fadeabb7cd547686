"""A fitted tip model as files: JSON and treelite, each with its SHA-256, so that reading one runs no code of its own.

=========================== ====================================================================================
file                        content
=========================== ====================================================================================
`model.json`                format, version, target, features, boroughs, services, and the SHA-256 of the others
`<service>/ridge.json`      columns, their coefficients, intercept
`<service>/forest.treelite` random forest as treelite serialises it
=========================== ====================================================================================
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import whitewater
from whitewater.errors import InputError, IntegrityError
from whitewater.store import write_bytes, write_json
from whitewater.taxi.features import FeatureSet, linear_columns
from whitewater.taxi.fit import ForestModel, LinearModel, ServiceModel
from whitewater.taxi.schema import SERVICES, Service

FORMAT = 1
TARGET = "tip_amount / fare_amount of trips with a recorded tip"
MANIFEST = "model.json"


@dataclass(frozen=True)
class TipModel:
    """The models of all services that had enough trips, and what they see of a trip."""

    which: FeatureSet
    services: Mapping[Service, ServiceModel]


def save(model: TipModel, directory: Path) -> None:
    """Write a model into a directory, `model.json` last."""
    for service, each in model.services.items():
        ridge = {
            "columns": linear_columns(model.which),
            "coefficients": each.ridge.coefficients,
            "intercept": each.ridge.intercept,
        }
        write_json(directory / service / "ridge.json", ridge)
        write_bytes(directory / service / "forest.treelite", each.forest.serialised)
    files = [path for service in model.services for path in sorted((directory / service).iterdir())]
    manifest = {
        "format": FORMAT,
        "whitewater": whitewater.__version__,
        "target": TARGET,
        "features": model.which.features,
        "boroughs": model.which.boroughs,
        "services": list(model.services),
        "files": {path.relative_to(directory).as_posix(): _digest(path.read_bytes()) for path in files},
    }
    write_json(directory / MANIFEST, {**manifest, "sha256": _digest(_canonical(manifest))})


def load(directory: Path) -> TipModel:
    """Read a model that `save` wrote; every byte is checked before it is interpreted.

    Raises
    ------
    InputError
        If there is no model, or it is of another format.
    IntegrityError
        If a file is missing or a byte of it has changed.
    """
    manifest = _manifest(directory)
    which = FeatureSet(tuple(manifest["features"]), tuple(manifest["boroughs"]))
    data = {name: _checked(directory / name, digest) for name, digest in manifest["files"].items()}
    services = {}
    for service in (each for each in SERVICES if each in manifest["services"]):
        ridge = json.loads(data[f"{service}/ridge.json"])
        services[service] = ServiceModel(
            LinearModel(tuple(ridge["coefficients"]), ridge["intercept"]),
            ForestModel(data[f"{service}/forest.treelite"]),
        )
    return TipModel(which, services)


def _manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{directory} holds no tip model: {error}. Give the directory that the step model wrote."
        ) from error
    try:
        manifest: dict[str, Any] = json.loads(text)
        signed = manifest.pop("sha256")
    except (ValueError, AttributeError, KeyError) as error:
        raise _changed(path) from error
    if manifest.get("format") != FORMAT and signed == _digest(_canonical(manifest)):
        raise InputError(f"{path} is of format {manifest.get('format')}, but this version of whitewater reads format "
                         f"{FORMAT}. Run the step model again.")  # fmt: skip
    if signed != _digest(_canonical(manifest)):
        raise _changed(path)
    return manifest


def _checked(path: Path, digest: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise IntegrityError(
            f"{path} is part of the tip model, but cannot be read: {error}. Run the step model again."
        ) from error
    if _digest(data) != digest:
        raise _changed(path)
    return data


def _changed(path: Path) -> IntegrityError:
    return IntegrityError(
        f"{path} is not what the step model wrote: it was changed or cut off. Run the step model again."
    )


def _canonical(manifest: Mapping[str, Any]) -> bytes:
    return json.dumps(manifest, sort_keys=True).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
