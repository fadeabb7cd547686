"""The recsys application on a device and a few hundred clicks: steps, workflows, and batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import zarr
from pyarrow.parquet import write_table as write_parquet

from benchmarks.gpu_proof.same import Rule
from tests.contract.executed import APPLICATIONS, ROOT
from tests.contract.site import Site, frames_of
from tests.helpers.recsys_logs import clicks, write_log
from tests.library.features.test_with_dask import CARRIED, CLOSE, EXACT, cut
from whitewater.engines import Device
from whitewater.engines.config import Engine
from whitewater.features import dataset, loader, transform
from whitewater.features import fit as fitting
from whitewater.features.config import Feature, Fit
from whitewater.features.feature_folder import open_features
from whitewater.features.loader import Batches
from whitewater.features.operators import JoinExternal
from whitewater.features.workflow import Workflow
from whitewater.io.store import read_json
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
RULES = (
    *(Rule(name, TOLERANCE, whole="group") for name in BATCHES),
    *(Rule(f"operators/{name}/*", compared=False) for name in CLOSE),
    *(Rule(f"operators/{name}.parquet", TOLERANCE) for name in CLOSE),
    Rule("operators/*", 0.0),
    OF_FEATURES,
)
CALLS = {
    "cudf.DataFrame.merge", "cudf.DataFrame.groupby", "cudf.DataFrame.sort_values", "cudf.Series.values",
    "cupy.isnan", "cupy.ldexp", "cupy.nanmean", "cupy.take",
    *(f"cuml.linear_model.LogisticRegression.{name}" for name in ("fit", "predict_proba")),
}  # fmt: skip
CROSSINGS = {"fit": (1, 1), "features": (1, 1), "train": (1, 1)}
FEATURES = ROOT / "features"
CODE = [FEATURES / "loader.py", APPLICATIONS / "recsys" / "steps" / "train.py"]
FRAMES = [FEATURES / f"{name}.py" for name in (
    "with_dask", "columns/column", "columns/groups",
    *(f"operators/{name}" for name in ("by_category", "categorify", "join")),
)]  # fmt: skip
# What only cuDF has, or the host's side of it: see `test_gpu_source`.
OF_CPU = {"_read_files", "_cast_frame", "table_of", "frame_of"}
BESIDE = {"return _read_files(span, types, device)"}
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
    joined = pa.table({"C2": ["", "a"], "price": [1, None], "name": ["x", None]})
    write_parquet(joined, directory / "inputs" / "joined.parquet")
    return directory / "inputs"


@contextmanager
def spread_out() -> Iterator[None]:
    """Let so little data be worked on in several parts, spans, passes, buckets and blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "FEW_ROWS", ROW_GROUP)
        patch.setattr(fitting, "SPAN_ROWS", ROWS // 3)
        patch.setattr(transform, "BUCKET_ROWS", ROWS // 3)
        patch.setattr(loader, "_BLOCK_ROWS", 64)
        yield


def run_application(site: Site, *, inputs: Path, results: Path) -> None:
    """Make features, train on them, and load them as batches."""
    log = inputs / "log"
    results.mkdir(parents=True)
    site.run(
        "recsys", fit, settings=Fit(features=GROUPS), train=log, workflow=Output(results / "workflow"),
        statistics=Output(results / "statistics.json"),
    )  # fmt: skip
    site.run(
        "recsys", features_step, settings=Features(row_group_rows=100), train=log, valid=log, test=log,
        workflow=results / "workflow", train_features=Output(results / "train"),
        valid_features=Output(results / "valid"), test_features=Output(results / "test"),
    )  # fmt: skip
    few = Train(trees=5, depth=3).model_copy(update={"maximum_rows": 300})
    site.run(
        "recsys", train, settings=few, train=results / "train", valid=results / "valid", test=results / "test",
        metrics=Output(results / "metrics.json"),
    )  # fmt: skip
    _load(results / "train", site.device, results)


def run_steps(site: Site, *, inputs: Path, results: Path) -> None:
    """Run the steps; fit all operators, on a GPU to shuffled rows in three partitions, and make their features."""
    run_application(site, inputs=inputs, results=results)
    joined = ["C2"] >> JoinExternal(table=str(inputs / "joined.parquet"), on="C2", columns=("price", "name"))
    rows, device = clicks(120, seed=3), site.device
    engine: Engine = "dask" if device.name == "gpu" else "local"
    with pytest.MonkeyPatch.context() as patch, frames_of(device):
        given = cut(rows, 3, 0, patch) if engine == "dask" else rows
        for name, graph in {**EXACT, **CLOSE, "joined": joined, "of files": EXACT["past"]}.items():
            learned_from = inputs / "log" if name == "of files" else given
            workflow = Workflow(graph, carry=CARRIED).fit(learned_from, threads=2, device=device, engine=engine)
            made = workflow.transform(rows, training=True, device=device, engine=engine)
            workflow.save(results / "operators" / name)
            write_parquet(made, results / "operators" / f"{name}.parquet")


def _load(features: Path, device: Device, results: Path) -> None:
    for shuffle in (False, True):
        folder = open_features(features)
        # All columns but keys, or some of each array.
        wanted = None if shuffle else [name for matrix in folder.matrices for name in matrix.columns[::2]]
        batches = Batches(folder, columns=wanted, batch_rows=100, window_rows=200, shuffle=shuffle, device=device)
        found = [{name: device.to_host(array) for name, array in batch.items()} for batch in batches.epoch()]
        of_names: dict[str, Any] = {name: np.concatenate([batch[name] for batch in found]) for name in found[0]}
        zarr.save_group(str(results / BATCHES[shuffle]), **of_names)


def check_data(folder: Path) -> None:
    """Check that there are both models."""
    assert read_json(folder / "metrics.json")["models"].keys() >= {"logistic_regression", "boosted_trees"}
