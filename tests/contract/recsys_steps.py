"""The recsys application on a device and a few hundred clicks: steps, workflows, and batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
import zarr

from benchmarks.gpu_proof.same import Rule
from tests.contract.frame_calls import frames_as_cudf
from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice
from tests.helpers.recsys_logs import clicks, write_log
from whitewater.engines import Device
from whitewater.engines.choose import Engine
from whitewater.features import dataset, loader, transform
from whitewater.features import fit as fitting
from whitewater.features.config import Feature, Fit
from whitewater.features.feature_folder import open_features
from whitewater.features.loader import Batches
from whitewater.features.operators import (
    fill,
)
from whitewater.step import Output
from whitewater_apps.recsys.config import Features, Train
from whitewater_apps.recsys.steps.features import features as features_step
from whitewater_apps.recsys.steps.fit import fit
from whitewater_apps.recsys.steps.train import train

ROWS, ROW_GROUP = 420, 70
BATCHES = ("batches.zarr", "shuffled_batches.zarr")
TOLERANCE = 1e-6
# Integers, text and where nulls are exactly, floats but for their last digits; rows are in the same order.
OF_FEATURES = Rule("*", TOLERANCE)
RULES = (*(Rule(name, TOLERANCE, whole="group") for name in BATCHES), OF_FEATURES)
GROUPS = (
    Feature(name="plain", columns=("I2",), operators=({"Rename": {"postfix": "_plain"}},)),
    Feature(name="numbers", columns=("I*",),
            operators=("FillMedian", {"Clip": {"min_value": 0}}, "LogOp", "Normalize")),
    Feature(name="categories", columns=("C*", ("C1", "C3")),
            operators=({"Categorify": {"freq_threshold": 3, "encode_type": "combo"}},)),
    Feature(name="lists", columns=("L*",),
            operators=("Categorify", {"ListSlice": {"start": 0, "end": 3, "pad": True}})),
    Feature(name="targets", columns=("C1", ("C1", "C2")), operators=({"TargetEncoding": {"target": "label"}},)),
    Feature(name="past", columns=("C2",), operators=({"PastMean": {"target": "label", "period": 5000}},)),
)  # fmt: skip


def write_inputs(directory: Path) -> Path:
    """Write a log, whose first day lacks a column's values."""
    log = clicks(ROWS)
    missing = pc.if_else(pc.equal(log["day"], 0), None, log["I3"])
    log = log.set_column(log.column_names.index("I3"), "I3", missing)
    write_log(log, directory / "inputs" / "log", row_group_rows=ROW_GROUP)
    return directory / "inputs"


@contextmanager
def spread_out() -> Iterator[None]:
    """Let so little data be worked on in several parts, spans, passes, buckets and blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "FEW_ROWS", ROW_GROUP)
        patch.setattr(fitting, "SPAN_ROWS", ROWS // 3)
        patch.setattr(fill, "FEW", 16)
        patch.setattr(transform, "BUCKET_ROWS", ROWS // 3)
        patch.setattr(loader, "_BLOCK_ROWS", 64)
        yield


@contextmanager
def frames_of(device: Device) -> Iterator[None]:
    """Let frames have arrays of the device, where that is the stand-in."""
    with frames_as_cudf(arrays=True) if isinstance(device, StrictDevice) else nullcontext():
        yield


def fit_features(site: Site, *, results: Path, log: Path) -> None:
    """Run the steps that make features, on a GPU by frames."""
    engine: Engine = "dask" if site.device.name == "gpu" else "local"
    results.mkdir(parents=True)
    site.run(
        "recsys", fit, settings=Fit(features=GROUPS), engine=engine, train=log, workflow=Output(results / "workflow"),
        statistics=Output(results / "statistics.json"),
    )  # fmt: skip
    site.run(
        "recsys", features_step, settings=Features(row_group_rows=100), engine=engine, train=log, valid=log, test=log,
        workflow=results / "workflow", train_features=Output(results / "train"),
        valid_features=Output(results / "valid"), test_features=Output(results / "test"),
    )  # fmt: skip


def write_features(directory: Path) -> Path:
    """Write the inputs, and the features that the CPU makes of them."""
    fit_features(Site(Device()), results=directory / "made", log=write_inputs(directory) / "log")
    return directory / "made"


def train_models(site: Site, *, inputs: Path, results: Path) -> None:
    """Train on features that were made, and load them as batches."""
    results.mkdir(parents=True)
    few = Train(trees=5, depth=3).model_copy(update={"maximum_rows": 300})
    site.run(
        "recsys", train, settings=few, train=inputs / "train", valid=inputs / "valid", test=inputs / "test",
        metrics=Output(results / "metrics.json"),
    )  # fmt: skip
    _load(inputs / "train", site.device, results)


def _load(features: Path, device: Device, results: Path) -> None:
    for shuffle in (False, True):
        folder = open_features(features)
        # All columns but keys, or some of each array.
        wanted = None if shuffle else [name for matrix in folder.matrices for name in matrix.columns[::2]]
        batches = Batches(folder, columns=wanted, batch_rows=100, window_rows=200, shuffle=shuffle, device=device)
        found = [{name: device.to_host(array) for name, array in batch.items()} for batch in batches.epoch()]
        of_names: dict[str, Any] = {name: np.concatenate([batch[name] for batch in found]) for name in found[0]}
        zarr.save_group(str(results / BATCHES[shuffle]), **of_names)
