"""Columns that nobody plans for: of nulls only, of types that pandas or Polars chose, of other numbers than before."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from whitewater.errors import ConfigError, InputError
from whitewater.features.config import Feature, Fit
from whitewater.features.log_folder import FIRST, Log, LogColumn, LogFile, LogTime, file_name
from whitewater.features.operator import Node, Value
from whitewater.features.operators import (
    Bucketize,
    Categorify,
    FillMissing,
    JoinGroupby,
    PastCount,
    TagAsItemID,
    TargetEncoding,
)
from whitewater.features.serve import Transformer
from whitewater.features.workflow import Workflow

ROWS = 40
CLICKS: dict[str, Any] = {
    "row_id": np.arange(ROWS),
    "label": np.arange(ROWS) % 2,
    "time": np.arange(ROWS),
    "text": ["x", "y"] * (ROWS // 2),
}


def with_column(values: pa.Array) -> pa.Table:
    return pa.table({**CLICKS, "awkward": values})


@pytest.mark.parametrize(
    "features",
    [
        ["awkward", ["awkward", "text"]] >> TargetEncoding(target="label"),
        ["awkward", ["awkward", "text"]] >> JoinGroupby(),
        ["awkward"] >> PastCount(period=10),
    ],
)
def test_a_column_without_values_is_one_category(features: Node) -> None:
    without_type = Workflow(features).fit_transform(with_column(pa.nulls(ROWS)))

    of_text = Workflow(features).fit_transform(with_column(pa.nulls(ROWS, pa.string())))

    assert without_type.to_pydict() == of_text.to_pydict()


@pytest.mark.parametrize("type_", [pa.null(), pa.string(), pa.int32(), pa.list_(pa.string())])
def test_a_column_without_values_stays_one(type_: pa.DataType) -> None:
    table = with_column(pa.nulls(ROWS, type_))

    made = Workflow(["awkward"] >> TagAsItemID()).fit_transform(table)

    assert made.column("awkward").to_pylist() == [[] if pa.types.is_list(type_) else None] * ROWS


@pytest.mark.parametrize("values", [["a"] * ROWS, [1] * ROWS, [0.5] * ROWS, [["a"]] * ROWS])
def test_values_of_a_column_that_had_none_are_not_dropped(values: list[object]) -> None:
    workflow = Workflow(["awkward"]).fit(with_column(pa.nulls(ROWS)))

    with pytest.raises(InputError, match="'awkward'"):
        workflow.transform(with_column(pa.array(values)))


def test_views_of_text_are_text() -> None:
    text = pa.array(["a", None, "ü", ""] * (ROWS // 4))
    features = ["awkward"] >> Categorify()

    found, expected = (
        Workflow(features).fit_transform(with_column(each)) for each in (text.cast(pa.string_view()), text)
    )

    assert found.equals(expected)


@pytest.mark.parametrize(
    ("fitted", "served", "told"),
    [
        (pa.array([0, 1] * 20, pa.int8()), pa.array([0, 1000] * 20), "int8"),
        (pa.array([True, False] * 20), pa.array([0, -3] * 20), "0 and 1"),
        (pa.array([0, 1] * 20), pa.array([0, 2**64 - 1] * 20, pa.uint64()), "2\\*\\*63"),
        (pa.array([0, 1] * 20, pa.uint64()), pa.array([0, -1] * 20), "uint64"),
    ],
)
def test_integers_that_the_fitted_type_cannot_mean_are_refused(fitted: pa.Array, served: pa.Array, told: str) -> None:
    workflow = Workflow(["awkward"] >> FillMissing()).fit(with_column(fitted))

    with pytest.raises(InputError, match=f"'awkward'.*{told}"):
        workflow.transform(with_column(served))


def test_a_time_above_63_bits_is_refused_rather_than_turned_negative() -> None:
    workflow = Workflow(["text"] >> PastCount(time="awkward", period=10)).fit(with_column(pa.array(range(ROWS))))

    with pytest.raises(InputError, match="'awkward'"):
        workflow.transform(with_column(pa.array([2**64 - 1] * ROWS, pa.uint64())))


def test_periods_of_unsigned_times_are_those_of_the_times() -> None:
    late = pa.array([2**63 + each * 10 for each in range(ROWS)], pa.uint64())

    made = Workflow(["text"] >> PastCount(time="awkward", period=10)).fit_transform(with_column(late))

    assert made["text_past_count"].to_pylist() == [row // 2 for row in range(ROWS)]


def test_floats_are_as_wide_as_they_were() -> None:
    """0.7 is below the boundary in 32 bits, and at it in 64."""
    narrow = pa.array([0.7] * ROWS, pa.float32())
    workflow = Workflow(["awkward"] >> Bucketize(boundaries=(0.7,))).fit(with_column(narrow))

    assert workflow.transform(with_column(narrow.cast(pa.float64()))).equals(workflow.transform(with_column(narrow)))
    assert workflow.transform(with_column(pa.array([0.7] * ROWS)))["awkward"].to_pylist() == [0] * ROWS


def test_a_byte_of_a_log_that_changed_is_found(tmp_path: Path) -> None:
    described = (*FIRST, LogColumn("text", "categorical", "string"))
    writer = Log(tmp_path / "log", "files", described, LogTime("seconds"), 1000)
    columns = {**CLICKS, "day": [0] * ROWS, "text": ["needle", "hay"] * (ROWS // 2)}
    with writer.file(file_name(0)) as file:
        file.write(pa.table([columns[name] for name in writer.schema.names], schema=writer.schema))
    log = writer.finish([LogFile(file_name(0), ROWS, 0)])
    path = log.path / log.files[0].name
    data = bytearray(path.read_bytes())
    data[data.index(b"needle")] ^= 1
    path.write_bytes(data)

    with pytest.raises(InputError, match="checksum"):
        Workflow(["text"] >> Categorify()).fit(log.path)


def served(workflow: Workflow, value: Any) -> Value:
    return Transformer(workflow)({**{name: values[0] for name, values in CLICKS.items()}, "awkward": value})["awkward"]


@pytest.mark.parametrize("type_", [pa.int8(), pa.int64(), pa.uint64(), pa.bool_()])
def test_a_row_of_pandas_has_floats_where_the_column_has_integers(type_: pa.DataType) -> None:
    workflow = Workflow(["awkward"] >> Categorify()).fit(with_column(pa.array([0, 1, 1, 1] * 10).cast(type_)))

    of_integers = [served(workflow, value) for value in (0, 1, None)]

    assert [served(workflow, value) for value in (0.0, np.float64(1.0), np.nan)] == of_integers
    assert [served(workflow, value) for value in (np.int8(0), pd.Series([1.0, None])[0], pd.NA)] == of_integers


@pytest.mark.parametrize(
    ("values", "value"),
    [
        (pa.array([0, 1] * 20), 0.5),
        (pa.array([0, 1] * 20), 2.0**60),
        (pa.array([0, 1] * 20), np.inf),
        (pa.array([0, 1] * 20), 2**63),
        (pa.array([0, 1] * 20, pa.uint64()), 2**64 - 1),
        (pa.array([True, False] * 20), -3),
        (pa.array([0.5] * ROWS), "0.5"),
        (pa.array([0.5] * ROWS, pa.float32()), 10**400),
        (pa.array(["a"] * ROWS), 5),
        (pa.array(["a"] * ROWS), b"a"),
        (pa.array(["a"] * ROWS), False),
        (pa.array(["a"] * ROWS), "\ud800"),
        (pa.array([["a"]] * ROWS), [5]),
        (pa.array([[1]] * ROWS), ["a"]),
        (pa.array([[1]] * ROWS), 1),
        (pa.nulls(ROWS), 0.5),
        (pa.nulls(ROWS), [1]),
    ],
)
def test_a_row_is_refused_what_a_table_is(values: pa.Array, value: object) -> None:
    is_category = not pa.types.is_floating(values.type)
    workflow = Workflow(["awkward"] >> (Categorify() if is_category else TagAsItemID())).fit(with_column(values))

    with pytest.raises(InputError, match="awkward"):
        served(workflow, value)


@pytest.mark.parametrize("name", ["mine", "mine/kept", "."])
def test_only_a_folder_of_its_kind_is_replaced(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept = Path("mine/kept")
    kept.parent.mkdir()
    kept.write_text("kept")
    workflow = Workflow(["awkward"]).fit(with_column(pa.array([0] * ROWS)))

    with pytest.raises(ConfigError, match="Name another folder"):
        workflow.save(name)
    with pytest.raises(ConfigError, match="Name another folder"):
        workflow.transform_to(name, CLICKS)

    assert kept.read_text() == "kept"


def test_an_empty_folder_and_one_of_its_kind_are_replaced(tmp_path: Path) -> None:
    table = with_column(pa.array([0] * ROWS))
    workflow = Workflow(["awkward"]).fit(table)
    (tmp_path / "workflow").mkdir()
    for _ in range(2):
        workflow.save(tmp_path / "workflow")
        assert workflow.transform_to(tmp_path / "features", table) == ROWS

    assert Workflow.load(tmp_path / "workflow").transform(table).equals(workflow.transform(table))


@pytest.mark.parametrize(
    "data",
    [
        {"awkward": [1, 2], "text": ["a"]},
        pd.DataFrame({"awkward": [1, "a"]}),
        pd.DataFrame({"awkward": [1j, 2j]}),
        pd.DataFrame([[1, 2]], columns=["awkward", "awkward"]),
    ],
)
def test_what_is_not_a_table_is_refused(data: Any) -> None:
    with pytest.raises(InputError, match="is not a table"):
        Workflow(["awkward"]).fit(data)


@pytest.mark.parametrize("threads", [0, -1])
def test_no_threads_are_refused(threads: int) -> None:
    with pytest.raises(ConfigError, match="give 1 or more"):
        Workflow(["awkward"]).fit(with_column(pa.array([0] * ROWS)), threads=threads)


def test_two_groups_of_features_have_two_names() -> None:
    group = Feature(name="same", columns=("text",), operators=("Categorify",))

    with pytest.raises(ConfigError, match="more than one group named same"):
        Fit(features=(group, group))
