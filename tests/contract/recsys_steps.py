"""The recsys application on a device and a few hundred clicks: steps, workflows, and batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import zarr

from benchmarks.gpu_proof.same import Rule
from tests.contract.frame_calls import frames_as_cudf
from tests.contract.site import Site
from tests.contract.strict_device import StrictDevice
from tests.recsys_logs import clicks, features, other_features, write_log, write_parts
from whitewater.engines import Device
from whitewater.engines.choose import Engine
from whitewater.features import dataset, loader, transform
from whitewater.features import fit as fitting
from whitewater.features.config import Feature, Fit
from whitewater.features.feature_folder import open_features
from whitewater.features.loader import Batches
from whitewater.features.operator import Node
from whitewater.features.operators import (
    Categorify,
    FillMedian,
    FillMissing,
    JoinExternal,
    JoinGroupby,
    LambdaOp,
    ListSlice,
    Normalize,
    PastCount,
    PastMean,
    Rename,
    TargetEncoding,
    by_category,
    fill,
)
from whitewater.features.workflow import Workflow
from whitewater.step import Output
from whitewater_apps.recsys import cli
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
# Of columns of clicks, other types than they were fitted on that mean the same.
COME_AS = {"I1": pa.float64(), "C1": pa.null(), "C3": pa.float64(), "L1": pa.null(), "flag": pa.int8(),
           "time": pa.uint64()}  # fmt: skip


@dataclass(frozen=True)
class WorkflowCase:
    """A workflow of clicks; what the features are may lie in files beside them."""

    features: Callable[[Path], Node]
    carry: tuple[str, ...] = ()
    little_memory: bool = False


def _wide(inputs: Path) -> Node:
    """Return what options of operators do beyond `features` and `other_features`."""
    words = pa.table({"word": ["bb", "", "é"]})
    pq.write_table(words, inputs / "words.parquet")
    shops = {"C1": ["", "a", "bb"], "C3": [-1, 0, 1], "city": ["x", None, "y"], "open": [True, None, False]}
    pq.write_table(pa.table({**shops, "score": [1, 2, 3]}), inputs / "shops.parquet")
    times = (
        (["time"] >> LambdaOp(function="day_of_week") >> Rename(postfix="_weekday"))
        + (["time"] >> LambdaOp(function="seconds_of_day"))
        + (["I1"] >> LambdaOp(function="squared_logarithm_bucket") >> Rename(postfix="_bucket"))
    )
    vocabularies = (
        ([["C1", "C2"]] >> Categorify(max_size=9, num_buckets=4) >> Rename(postfix="_joint"))
        + (["C1"] >> Categorify(vocabs={"C1": str(inputs / "words.parquet")}, num_buckets=5))
        + (["C3"] >> Categorify(vocabs={"C3": (0, 1)}))
        + (["nothing"] >> Categorify())
    )
    filled = (
        (["I1", "I2"] >> FillMedian(add_binary_cols=True) >> Rename(postfix="_median"))
        + (["flag", "I2"] >> FillMissing(fill_val=0.5, add_binary_cols=True))
        + (["late"] >> Normalize())
    )
    of_categories = (
        (["C1", ["C1", "C3"]] >> JoinGroupby())
        + (["C2"] >> TargetEncoding(target="I2"))
        + (["C1"] >> PastMean(target="I2", period=1))
        + ([["C1", "C2"]] >> PastCount(period=700))
        + (["C1", "C3"] >> JoinExternal(table=str(inputs / "shops.parquet"), on=("C1", "C3"),
                                        columns=("city", "open", "score")))
    )  # fmt: skip
    lists = (["L2"] >> ListSlice(start=1, end=3, pad=True, pad_value=-1)) + (["L1"] >> ListSlice(start=-1))
    return times + vocabularies + filled + of_categories + lists


def _little_memory(_: Path) -> Node:
    categories = ["C1", "C3", ["C1", "C2"]] >> Categorify(encode_type="combo")
    return categories + (["C1"] >> TargetEncoding(target="label")) + (["C3"] >> PastCount(period=5000))


WORKFLOWS = {
    "many": WorkflowCase(lambda _: features(), ("label", "L1", "L2", "nothing")),
    "others": WorkflowCase(lambda inputs: other_features(inputs / "prices.parquet")),
    "wide": WorkflowCase(_wide),
    "little_memory": WorkflowCase(_little_memory, little_memory=True),
}


def write_inputs(directory: Path) -> Path:
    """Write a log, whose first day lacks a column's values, and rows of clicks in files."""
    folder = directory / "inputs"
    folder.mkdir()
    log = clicks(ROWS)
    missing = pc.if_else(pc.equal(log["day"], 0), None, log["I3"])
    write_log(log.set_column(log.column_names.index("I3"), "I3", missing), folder / "log", row_group_rows=ROW_GROUP)
    write_parts(data(), folder / "clicks", [40, 30, 150, ROWS - 220])
    return folder


def data() -> pa.Table:
    """Return the rows of the workflows."""
    random = np.random.default_rng(5)
    late = pa.array(np.arange(ROWS) * 1e6, mask=np.arange(ROWS) < ROWS // 2)
    flags = pa.array(random.random(ROWS) < 0.5, mask=random.random(ROWS) < 0.1)
    table = clicks(ROWS).append_column("late", late).append_column("flag", flags)
    return table.append_column("nothing", pa.nulls(ROWS))


@contextmanager
def spread_out() -> Iterator[None]:
    """Let so little data be worked on in several parts, spans, passes, buckets and blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "FEW_ROWS", ROW_GROUP)
        patch.setattr(fitting, "SPAN_ROWS", ROWS // 3)
        patch.setattr(fill, "RUNS", 16)
        patch.setattr(fill, "NARROW", 16)
        patch.setattr(transform, "BUCKET_ROWS", ROWS // 3)
        patch.setattr(loader, "_BLOCK_ROWS", 64)
        yield


@contextmanager
def frames_of(device: Device) -> Iterator[None]:
    """Let frames have arrays of the device, where that is the stand-in."""
    with frames_as_cudf(arrays=True) if isinstance(device, StrictDevice) else nullcontext():
        yield


@contextmanager
def little_memory() -> Iterator[None]:
    """Let what is learned of categories go to disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_category, "WAITING_BYTES", 0)
        patch.setattr(by_category, "GATHERING_SHARE", 2**60)
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


def run_workflows(device: Device, *, inputs: Path, folder: Path) -> None:
    """Fit and apply each of `WORKFLOWS` on a device."""
    for name, case in WORKFLOWS.items():
        workflow = Workflow(case.features(inputs), carry=case.carry)
        with little_memory() if case.little_memory else nullcontext():
            made = workflow.fit_transform(inputs / "clicks", threads=2, device=device)
        (folder / name).mkdir(parents=True)
        pq.write_table(made, folder / name / "training.parquet")
        workflow.save(folder / name / "workflow")
        serve(folder / name / "workflow", device, inputs=inputs, folder=folder / name)
        workflow.transform_to(folder / name / "features", inputs / "clicks", threads=2, device=device)


def serve(workflow: Path, device: Device, *, inputs: Path, folder: Path) -> None:
    """Transform data on a device with a stored workflow: files by the command, and tables in memory."""
    folder.mkdir(exist_ok=True)
    command = ["--workflow", str(workflow), str(inputs / "clicks"), str(folder / "serving.parquet"), "--threads", "2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "resolve", lambda _: device)
        cli.main(command)
    loaded, table = Workflow.load(workflow), data()
    times = table["time"].combine_chunks()
    as_mapping = {**dict(zip(table.column_names, table.columns, strict=True)), "time": np.from_dlpack(times)}
    in_memory = {"in_memory": as_mapping, "of_nothing": table.slice(0, 0), "otherwise": _otherwise(table)}
    for name, given in in_memory.items():
        pq.write_table(loaded.transform(given, threads=2, device=device), folder / f"{name}.parquet")


def _otherwise(table: pa.Table) -> pa.Table:
    """Return clicks of other types: floats for integers, integers for booleans, and nulls for text and lists."""
    for name, type_ in COME_AS.items():
        column = pa.nulls(len(table)) if pa.types.is_null(type_) else table[name].cast(type_)
        table = table.set_column(table.column_names.index(name), name, column)
    return table
