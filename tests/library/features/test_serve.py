"""One row at a time gives what the rows of a table give."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.recsys_logs import clicks, features, other_features, write_log
from whitewater.errors import InputError
from whitewater.features.dataset import Dataset
from whitewater.features.operators import OPERATORS, Categorify, FillMissing, LogOp, Normalize, PastCount, Rename
from whitewater.features.plan import bind
from whitewater.features.serve import Transformer
from whitewater.features.workflow import Workflow

CLICKS = clicks(500)
WORKFLOW = Workflow(features(), carry=["label", "row_id"]).fit(CLICKS)
TRANSFORM = Transformer(WORKFLOW)
NAMES = ("I1", "I2", "I3", "C1", "C2", "C3", "C4")
TYPES = {name: CLICKS.schema.field(name).type for name in NAMES}


def same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """NaN, which a table of floats has for null, is None in a row."""
    return found.keys() == expected.keys() and all(
        value == expected[name] or (value is None and math.isnan(expected[name])) for name, value in found.items()
    )


def test_rows_of_the_data_that_it_was_fitted_on_are_those_of_the_table() -> None:
    expected = WORKFLOW.transform(CLICKS).to_pylist()
    for row, wanted in zip(CLICKS.to_pylist(), expected, strict=True):
        assert same(TRANSFORM(row), wanted)


def test_so_are_those_of_the_other_operators(tmp_path: Path) -> None:
    workflow = Workflow(other_features(tmp_path / "prices.parquet")).fit(CLICKS)
    workflow.save(tmp_path / "workflow")
    unseen = clicks(200, seed=8)
    for transform in (Transformer(workflow), Transformer.load(tmp_path / "workflow")):
        for data in (CLICKS, unseen):
            for row, wanted in zip(data.to_pylist(), workflow.transform(data).to_pylist(), strict=True):
                assert same(transform(row), wanted)


def test_every_operator_is_tried(tmp_path: Path) -> None:
    plans = [bind(graph, Dataset(CLICKS).schema) for graph in (features(), other_features(tmp_path / "prices.parquet"))]
    tried = {stage.label for plan in plans for stage in plan.stages}
    assert tried == set(OPERATORS)


words = st.one_of(st.none(), st.sampled_from(["", "a", "bb", "é", "日本", "w1"]), st.text(max_size=3))
integers = st.one_of(st.none(), st.integers(-5, 30), st.integers(-(2**31), 2**31 - 1))
rows = st.fixed_dictionaries(
    {
        "I1": integers,
        "I2": st.one_of(st.none(), st.floats(width=64, allow_infinity=False, max_value=1e300, min_value=-1e300)),
        "I3": integers,
        "C1": words,
        "C2": words,
        "C3": st.one_of(st.none(), st.integers(-5, 9), st.integers(-(2**63), 2**63 - 1)),
        "C4": words,
    }
)


@settings(max_examples=40, deadline=None)
@given(st.lists(rows, min_size=1, max_size=20))
def test_any_row_is_that_row_of_the_table(many: list[dict[str, Any]]) -> None:
    table = pa.table({name: pa.array([row[name] for row in many], TYPES[name]) for name in NAMES})
    for row, wanted in zip(many, WORKFLOW.transform(table).to_pylist(), strict=True):
        assert same(TRANSFORM(row), wanted)


def test_scalars_of_numpy_and_nan_are_taken() -> None:
    row = CLICKS.slice(0, 1).to_pylist()[0]
    wrapped = {**row, "I1": np.int32(4), "I2": np.float64(2.5), "C1": np.str_("a"), "C3": np.int64(2)}
    assert TRANSFORM(wrapped) == TRANSFORM({**row, "I1": 4, "I2": 2.5, "C1": "a", "C3": 2})
    missing = dict.fromkeys(("I1", "I2", "C1", "C3"), math.nan)
    assert TRANSFORM({**row, **missing}) == TRANSFORM({**row, **dict.fromkeys(missing)})


def test_a_missing_column_and_a_wrong_kind_are_named() -> None:
    row = CLICKS.slice(0, 1).to_pylist()[0]
    with pytest.raises(InputError, match="the row has no column 'C2'"):
        TRANSFORM({name: value for name, value in row.items() if name != "C2"})
    with pytest.raises(InputError, match="the row's 'I1' is 'many', but the column was of numbers"):
        TRANSFORM({**row, "I1": "many"})
    with pytest.raises(InputError, match="the row's 'C1' is 5, but the column was of text"):
        TRANSFORM({**row, "C1": 5})


def test_only_the_columns_of_the_results_are_needed() -> None:
    graph = (["I1", "I2"] >> FillMissing() >> LogOp()) - ["I1"]
    assert Transformer(Workflow(graph).fit(CLICKS))({"I2": 0.0}) == {"I2": 0.0}


def test_columns_of_different_operators_meet_in_one() -> None:
    renamed = (["C2"] >> Rename(name="other")) + ["C1"]
    workflow = Workflow(renamed[[["C1", "other"]]] >> Categorify(encode_type="combo")).fit(CLICKS)
    expected = workflow.transform(CLICKS)["C1_other"].to_pylist()
    transform = Transformer(workflow)
    assert [transform(row)["C1_other"] for row in CLICKS.to_pylist()] == expected


def test_float32_columns_are_rounded_as_they_are_in_a_table() -> None:
    values = [2_000_000.06, 2_000_000.2, 1_999_999.9]
    table = pa.table({"I": pa.array(values, pa.float32())})
    workflow = Workflow(["I"] >> Normalize()).fit(table)
    transform = Transformer(workflow)
    assert [transform({"I": value})["I"] for value in values] == workflow.transform(table)["I"].to_pylist()


def test_times_of_a_log_are_seconds_in_serving_too(tmp_path: Path) -> None:
    write_log(CLICKS, tmp_path / "log")
    workflow = Workflow(["C1"] >> PastCount()).fit(tmp_path / "log")
    workflow.save(tmp_path / "workflow")
    row: dict[str, Any] = {"C1": "a", "time": 1_600_000_000}
    for transform in (Transformer(workflow), Transformer.load(tmp_path / "workflow")):
        assert transform(row).keys() == {"C1_past_count"}
        for wrong in (1_600_000_000_000, 20_200_913):
            with pytest.raises(InputError, match=f"column 'time' has the time {wrong}, but held seconds since 1970"):
                transform(row | {"time": wrong})
    with pytest.raises(InputError, match="column 'time' has the time 1600000000000, but held seconds"):
        workflow.transform({"C1": ["a", "b"], "time": [1_600_000_000, 1_600_000_000_000]})
