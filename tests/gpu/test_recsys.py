"""The recsys application on a GPU, by frames of cuDF, gives what the kernels give on the CPU.

Ids, hashes and folds are equal, floats within rounding. The stand-in has frames of pandas with its own arrays.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.gpu_proof.same import Rule, compare, table_faults
from tests.contract import recsys_steps
from tests.contract.recsys_steps import OF_FEATURES, ROWS, RULES
from tests.contract.site import Site, frames_of
from tests.gpu.conftest import THREADS, Both, on_both
from tests.helpers.recsys_logs import clicks
from tests.library.features.test_with_dask import CARRIED, CLOSE, EXACT
from whitewater.engines import Device
from whitewater.features.operator import Node
from whitewater.features.operators import (
    Categorify,
    FillMissing,
    JoinExternal,
    ListSlice,
    Normalize,
    PastMean,
)
from whitewater.features.workflow import Workflow
from whitewater.io.store import read_json

pytestmark = pytest.mark.gpu


# What was learned is compared by its statistics and the features that it makes, and models are the libraries'.
OF_LIBRARIES = (Rule("workflow/*", compared=False), Rule("metrics.json", compared=False), *RULES)


@pytest.fixture(scope="module")
def both(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return on_both(Site(gpu, threads=THREADS), recsys_steps, tmp_path_factory.mktemp("recsys"), "run_application")


def test_features_in_the_same_order_statistics_and_batches_are_the_same(both: Both) -> None:
    assert set(compare(both.gpu, both.cpu, OF_LIBRARIES).values()) == {""}


def test_models_are_as_good(both: Both) -> None:
    gpu, cpu = (read_json(each / "metrics.json")["models"] for each in (both.gpu, both.cpu))
    for key, expected in cpu["logistic_regression"].items():
        assert gpu["logistic_regression"][key]["log_loss"] == pytest.approx(expected["log_loss"], abs=1e-3)
    for key, expected in cpu["boosted_trees"].items():
        assert gpu["boosted_trees"][key]["auc"] == pytest.approx(expected["auc"], abs=0.1)


@pytest.mark.parametrize("name", [*EXACT, *CLOSE, "wide"])
def test_frames_learn_and_make_what_the_kernels_do_and_each_serves_the_others(
    gpu: Device, tmp_path: Path, name: str
) -> None:
    rows = data()
    graph = wide(tmp_path) if name == "wide" else {**EXACT, **CLOSE}[name]
    local = Workflow(graph, carry=CARRIED).fit(rows, threads=2)
    with frames_of(gpu):
        by_frames = Workflow(graph, carry=CARRIED).fit(rows, threads=2, device=gpu)
    for given, training in ((rows, True), (rows, False), (rows.slice(0, 0), False), (other_types(rows), False)):
        expected = local.transform(given, training=training)
        with frames_of(gpu):
            found = [each.transform(given, training=training, device=gpu) for each in (local, by_frames)]
        for table in (*found, by_frames.transform(given, training=training)):
            assert list(table_faults(table, expected, OF_FEATURES)) == []


def wide(folder: Path) -> Node:
    """Return what options of operators do beyond `EXACT` and `CLOSE`."""
    shops = {"C1": ["", "a", "bb"], "C3": [-1, 0, 1], "city": ["x", None, "y"], "open": [True, None, False]}
    pq.write_table(pa.table({**shops, "score": [1, 2, 3]}), folder / "shops.parquet")
    joined = JoinExternal(table=str(folder / "shops.parquet"), on=("C1", "C3"), columns=("city", "open", "score"))
    return (
        (["nothing"] >> Categorify())
        + (["flag", "I2"] >> FillMissing(fill_val=0.5, add_binary_cols=True))
        + (["late"] >> Normalize())
        + (["C1"] >> PastMean(target="I2", period=1))
        + (["C1", "C3"] >> joined)
        + (["L2"] >> ListSlice(start=1, end=3, pad=True, pad_value=-1))
    )


def data() -> pa.Table:
    """Return clicks with a column whose first half is missing, one of truth values, and one of nulls."""
    random = np.random.default_rng(5)
    late = pa.array(np.arange(ROWS) * 1e6, mask=np.arange(ROWS) < ROWS // 2)
    flags = pa.array(random.random(ROWS) < 0.5, mask=random.random(ROWS) < 0.1)
    table = clicks(ROWS).append_column("late", late).append_column("flag", flags)
    return table.append_column("nothing", pa.nulls(ROWS))


def other_types(table: pa.Table) -> pa.Table:
    """Return clicks of types that mean the same: floats for integers, integers for booleans, nulls for text."""
    types = {"I1": pa.float64(), "C1": pa.null(), "C3": pa.float64(), "L1": pa.null(), "flag": pa.int8(),
             "time": pa.uint64()}  # fmt: skip
    for name, type_ in types.items():
        column = pa.nulls(len(table)) if pa.types.is_null(type_) else table[name].cast(type_)
        table = table.set_column(table.column_names.index(name), name, column)
    return table
