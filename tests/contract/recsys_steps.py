"""The recsys application in one process, on a device and a few hundred clicks: steps, workflows, and batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.recsys_logs import clicks, features, other_features, write_log, write_parts
from whitewater.config.base import Section
from whitewater.config.recsys import Drift, Feature, Features, Fit, Train
from whitewater.devices import Device
from whitewater.recsys import dataset, fitting, loading, shuffling, transform_command
from whitewater.recsys.drift import drift
from whitewater.recsys.feature_folder import open_features
from whitewater.recsys.features import features as features_step
from whitewater.recsys.fit import fit
from whitewater.recsys.graph import Node
from whitewater.recsys.loading import Batches
from whitewater.recsys.train import train
from whitewater.recsys.workflow import Workflow
from whitewater.step import Output, Run

ROWS, ROW_GROUP = 420, 150
ATOL = RTOL = 1e-6
CLICKS = clicks(ROWS)
GROUPS = (
    Feature(name="plain", columns=("I2",), operators=({"Rename": {"postfix": "_plain"}},)),
    Feature(
        name="numbers", columns=("I*",), operators=("FillMedian", {"Clip": {"min_value": 0}}, "LogOp", "Normalize")
    ),
    Feature(
        name="categories",
        columns=("C*", ("C1", "C3")),
        operators=({"Categorify": {"freq_threshold": 3, "encode_type": "combo"}},),
    ),
    Feature(
        name="lists",
        columns=("L*",),
        operators=({"Categorify": {}}, {"ListSlice": {"start": 0, "end": 3, "pad": True}}),
    ),
    Feature(name="targets", columns=("C1", ("C1", "C2")), operators=({"TargetEncoding": {"target": "label"}},)),
    Feature(name="past", columns=("C2",), operators=({"PastMean": {"target": "label", "period": 5000}},)),
)


@dataclass(frozen=True)
class WorkflowCase:
    """Features of a file of `write_inputs`, given the folder of these; and what goes along with them."""

    data: str
    features: Callable[[Path], Node]
    carry: tuple[str, ...] = ()
    memory_share: float = 0.6


WORKFLOWS = {
    "many": WorkflowCase("clicks", lambda _: features(), ("label", "L1", "L2")),
    "others": WorkflowCase("clicks", lambda inputs: other_features(inputs / "prices.parquet")),
}


def write_inputs(directory: Path) -> Path:
    """Write a log, and its rows in files."""
    folder = directory / "inputs"
    folder.mkdir()
    write_log(CLICKS, folder / "log", row_group_rows=ROW_GROUP)
    write_parts(CLICKS, folder / "clicks", [ROW_GROUP, ROWS - ROW_GROUP])
    return folder


@contextmanager
def spread_out() -> Iterator[None]:
    """Let so little data be worked on in several parts, spans, buckets and blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "FEW_ROWS", 0)
        patch.setattr(fitting, "SPAN_ROWS", ROW_GROUP)
        patch.setattr(shuffling, "BUCKET_ROWS", ROWS // 3)
        patch.setattr(loading, "_BLOCK_ROWS", 64)
        yield


def run_steps(device: Device, *, inputs: Path, results: Path) -> Path:
    """Run steps, workflows and batches; return the folder of their outputs."""
    results.mkdir(parents=True)
    _run_steps(device, inputs=inputs, results=results)
    for name, case in WORKFLOWS.items():
        _run_workflow(case, device, inputs=inputs, folder=results / name)
    return results


def _run_steps(device: Device, *, inputs: Path, results: Path) -> None:
    log = inputs / "log"
    fit(
        _run("fit", device, Fit(features=GROUPS)), train=log, workflow=Output(results / "workflow"),
        statistics=Output(results / "statistics.json"),
    )  # fmt: skip
    features_step(
        _run("features", device, Features(row_group_rows=100)), train=log, valid=log, test=log,
        workflow=results / "workflow", train_features=Output(results / "train"),
        valid_features=Output(results / "valid"), test_features=Output(results / "test"),
    )  # fmt: skip
    drift(_run("drift", device, Drift()), events=log, drift=Output(results / "drift.json"))
    train(
        _run("train", device, Train(trees=5, depth=3)), train=results / "train", valid=results / "valid",
        test=results / "test", metrics=Output(results / "metrics.json"),
    )  # fmt: skip
    batches = Batches(open_features(results / "train"), batch_rows=100, window_rows=200, seed=1, device=device)
    found: dict[str, list[Any]] = {}
    for batch in batches.epoch():
        for name, array in batch.items():
            found.setdefault(name, []).append(device.to_host(array))
    np.savez(results / "batches.npz", **{name: np.concatenate(each) for name, each in found.items()})


def _run_workflow(case: WorkflowCase, device: Device, *, inputs: Path, folder: Path) -> None:
    folder.mkdir()
    workflow = Workflow(case.features(inputs), carry=case.carry)
    made = workflow.fit_transform(inputs / case.data, threads=2, device=device)
    pq.write_table(made, folder / "training.parquet")
    workflow.save(folder / "workflow")
    serve(folder / "workflow", device, case, inputs=inputs, target=folder / "serving.parquet")


def serve(workflow: Path, device: Device, case: WorkflowCase, *, inputs: Path, target: Path) -> None:
    """Transform the data of a case by the command, on a device."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transform_command, "resolve", lambda _: device)
        transform_command.main(["--workflow", str(workflow), str(inputs / case.data), str(target), "--threads", "2"])


def _run(step: str, device: Device, settings: Section) -> Run[Any]:
    return Run("recsys", step, device, settings, threads=2)


def assert_same_table(found: Path, expected: Path) -> None:
    """Compare tables: integers, text and lists exactly, floats but for their last digits."""
    one, other = pq.read_table(found), pq.read_table(expected)
    assert one.schema.equals(other.schema)
    for name in other.column_names:
        left, right = one[name].combine_chunks(), other[name].combine_chunks()
        if pa.types.is_floating(right.type):
            np.testing.assert_allclose(
                left.to_numpy(zero_copy_only=False),
                right.to_numpy(zero_copy_only=False),
                rtol=RTOL,
                atol=ATOL,
                err_msg=name,
            )
        else:
            assert left.equals(right), name
