"""Columns that nobody plans for: of nulls only, of types that pandas or Polars chose, of other numbers than before."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from whitewater.errors import ConfigError, InputError
from whitewater.recsys import transform_command
from whitewater.recsys.graph import Node
from whitewater.recsys.log_folder import LogColumn, LogWriter, file_name
from whitewater.recsys.operators import (
    Bucketize,
    Categorify,
    FillMissing,
    JoinGroupby,
    PastCount,
    TagAsItemID,
    TargetEncoding,
)
from whitewater.recsys.workflow import Workflow

ROWS = 40
CLICKS = {
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


def test_floats_are_as_wide_as_they_were() -> None:
    """0.7 is below the boundary in 32 bits, and at it in 64."""
    narrow = pa.array([0.7] * ROWS, pa.float32())
    workflow = Workflow(["awkward"] >> Bucketize(boundaries=(0.7,))).fit(with_column(narrow))

    assert workflow.transform(with_column(narrow.cast(pa.float64()))).equals(workflow.transform(with_column(narrow)))
    assert workflow.transform(with_column(pa.array([0.7] * ROWS)))["awkward"].to_pylist() == [0] * ROWS


def test_a_byte_of_a_log_that_changed_is_found(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log", "files", (LogColumn("text", "categorical", "string"),), "seconds", 1000)
    columns = {**CLICKS, "day": [0] * ROWS, "text": ["needle", "hay"] * (ROWS // 2)}
    with writer.file(file_name(0), day=0) as file:
        file.write(pa.table([columns[name] for name in writer.schema.names], schema=writer.schema))
    log = writer.finish([file.file])
    path = log.path / log.files[0].name
    data = bytearray(path.read_bytes())
    data[data.index(b"needle")] ^= 1
    path.write_bytes(data)

    with pytest.raises(InputError, match="checksum"):
        Workflow(["text"] >> Categorify()).fit(log.path)


@pytest.mark.parametrize("folder", ["", "results"])
def test_the_command_replaces_no_folder(folder: str, tmp_path: Path) -> None:
    kept = tmp_path / "results" / "kept"
    kept.parent.mkdir()
    kept.write_text("kept")

    with pytest.raises(ConfigError, match="no file"):
        transform_command.main(["--workflow", "workflow", "in.parquet", str(tmp_path / folder)])

    assert kept.read_text() == "kept"


def test_the_command_writes_nothing_into_the_folder_that_it_reads(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="folder that is read"):
        transform_command.main(["--workflow", "workflow", str(tmp_path), str(tmp_path / "out.parquet")])
