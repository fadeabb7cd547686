"""Reading and writing Parquet on the CPU: the oracle is pyarrow, or the values that were written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whitewater.engines import Array
from whitewater.errors import InputError
from whitewater.tables.arrow_kinds import from_arrow
from whitewater.tables.blocks import BAD_INTEGER, NULL_INTEGER, NULL_TIMESTAMP, Encoded, Kind
from whitewater.tables.parquet import blocks_cpu
from whitewater.tables.parquet.blocks_cpu import row_group_blocks, write_parquet

FROM_A_FIXTURE = [HealthCheck.function_scoped_fixture]


def values_of(column: Array | Encoded, kind: Kind = "int64") -> list[Any]:
    """Return a column as Python values, null and NaN as None, text as its words."""
    if kind == "id" and isinstance(column, np.ndarray):
        assert column.dtype == np.int64
        return list(column.tolist())
    if isinstance(column, Encoded):
        return [column.vocabulary[code] if code >= 0 else None for code in column.codes]
    nulls = np.isnan(column) if column.dtype == np.float64 else column == NULL_TIMESTAMP
    return [None if null else value for value, null in zip(column.tolist(), nulls, strict=True)]


def read(path: Path, columns: dict[str, Kind], *, block_rows: int = 10**9, row_group: int = 0) -> dict[str, list[Any]]:
    """Read a row group and put its blocks together."""
    whole: dict[str, list[Any]] = {name: [] for name in columns}
    for block in row_group_blocks(path, row_group, columns, block_rows=block_rows):
        for name, kind in columns.items():
            whole[name] += values_of(block[name], kind)
    return whole


def only_pyarrow(*_: object) -> None:
    """Stand in for `chunk_reader`, and leave every column to pyarrow."""


def whole_number(largest: int) -> Callable[[float | None], int]:
    """Return the rule for integers: null is -1, what does not fit, is negative or has a fraction is -2."""

    def rule(value: float | None) -> int:
        if value is None or math.isnan(value):
            return NULL_INTEGER
        return int(value) if 0 <= value <= largest and value == math.floor(value) else BAD_INTEGER

    return rule


def digits(value: int | None) -> str | None:
    """Return a number as text."""
    return None if value is None else str(value)


def same(value: Any) -> Any:
    """Return the value, and NaN as None."""
    return None if isinstance(value, float) and math.isnan(value) else value


@dataclass(frozen=True)
class Case:
    """A type of column, the values it may have, and what each kind makes of them."""

    type: pa.DataType
    values: st.SearchStrategy[Any]
    rules: dict[Kind, Callable[[Any], Any]]


INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63) + 1, 2**63 - 1)
SMALL, MOMENTS = st.integers(-3, 300), st.integers(-(10**15), 10**15)
DOUBLES = st.sampled_from([0.0, 1.0, 2.5, -1.0, 127.0, 128.0, 1e300, math.inf, math.nan]) | st.floats()
WORDS = st.sampled_from(["CASH", "Credit", "", "naïve", "x" * 300])
INT8, INT16 = whole_number(2**7 - 1), whole_number(2**15 - 1)
CASES = [
    Case(pa.int64(), INT64 | SMALL, {"int64": whole_number(2**63 - 1), "int8": INT8, "text": digits}),
    Case(pa.int32(), INT32 | SMALL, {"int32": whole_number(2**31 - 1), "int16": INT16, "float64": lambda v: v}),
    Case(pa.float64(), DOUBLES, {"float64": same, "int16": INT16, "int64": whole_number(2**63 - 1)}),
    Case(pa.float32(), st.sampled_from([0.5, 3.0, -0.25]), {"float64": same, "int8": INT8}),
    Case(pa.timestamp("us"), MOMENTS, {"timestamp": lambda v: v}),
    Case(pa.timestamp("ms"), MOMENTS, {"timestamp": lambda v: v and v * 1000}),
    Case(pa.timestamp("ns"), MOMENTS, {"timestamp": lambda v: v and v // 1000}),
    Case(pa.string(), WORDS, {"text": lambda v: v or None}),
    Case(pa.large_string(), st.sampled_from(["1", "2.0", "", " 7 "]), {"float64": lambda v: float(v) if v else None}),
]


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    """Draw how a writer lays a file out: dictionaries that overflow, pages of few rows, both versions, codecs."""
    return {
        "use_dictionary": draw(st.booleans()),
        "dictionary_pagesize_limit": draw(st.sampled_from([64, 2**20])),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "max_rows_per_page": draw(st.sampled_from([3, 70, 20_000])),
        "data_page_size": draw(st.sampled_from([64, 2**20])),
        "write_batch_size": draw(st.sampled_from([1, 50, 1024])),
        "compression": draw(st.sampled_from(["none", "snappy", "zstd", "gzip", "brotli"])),
        "write_page_checksum": draw(st.booleans()),
    }


@settings(max_examples=150, deadline=None, suppress_health_check=FROM_A_FIXTURE)
@given(data=st.data(), case=st.sampled_from(CASES), layout=layouts(), required=st.booleans())
def test_every_layout_is_read_as_what_was_written(
    tmp_path: Path, data: st.DataObject, case: Case, layout: dict[str, Any], required: bool
) -> None:
    drawn = data.draw(st.lists(case.values if required else st.none() | case.values, max_size=60))
    values = drawn * data.draw(st.integers(1, 5))
    stored = pa.array(values, pa.int64() if pa.types.is_timestamp(case.type) else case.type).cast(case.type)
    schema = pa.schema([pa.field("column", case.type, nullable=not required)])
    pq.write_table(pa.Table.from_arrays([stored], schema=schema), tmp_path / "file", **layout)
    for kind, rule in case.rules.items():
        [found] = read(tmp_path / "file", {"column": kind}, block_rows=data.draw(st.integers(1, 100))).values()
        assert found == [rule(value) for value in values]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blocks_cpu, "chunk_reader", only_pyarrow)
            assert read(tmp_path / "file", {"column": kind}, block_rows=7) == {"column": found}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.type))
def test_what_writers_usually_make_is_not_left_to_pyarrow(
    tmp_path: Path, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_cpu, "_ArrowReader", pytest.fail)
    pq.write_table(pa.table({"column": pa.array([None, None], case.type)}), tmp_path / "file")
    for kind in case.rules:
        assert len(read(tmp_path / "file", {"column": kind})["column"]) == 2


@pytest.mark.parametrize(
    ("column", "options"),
    [
        (pa.array([5, None, 7, 5]), {"use_dictionary": False, "column_encoding": {"column": "DELTA_BINARY_PACKED"}}),
        (pa.array([5, None, 7, 5.0]), {"use_dictionary": False, "column_encoding": {"column": "BYTE_STREAM_SPLIT"}}),
        (pa.array([5, None, 7, 5]), {"compression": "lz4"}),
        (pa.array([5, None, 7, 5], pa.uint64()), {}),
        (pa.array([5, None, 7, 5], pa.uint16()), {}),
        (pa.array([5, None, 7, 5], pa.float16()), {}),
    ],
)  # fmt: skip
def test_other_forms_are_read_by_pyarrow_with_the_same_result(
    tmp_path: Path, column: pa.Array, options: dict[str, Any]
) -> None:
    pq.write_table(pa.table({"column": column}), tmp_path / "file", **options)
    assert read(tmp_path / "file", {"column": "int8"}, block_rows=3) == {"column": [5, NULL_INTEGER, 7, 5]}


IDS = st.sampled_from([-(2**63), -(2**63) + 1, -2, -1, 0, 2**63 - 1]) | st.integers(-(2**63), 2**63 - 1)
WIDTHS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


@settings(max_examples=150, deadline=None, suppress_health_check=FROM_A_FIXTURE)
@given(data=st.data(), type_=st.sampled_from(WIDTHS), layout=layouts(), required=st.booleans())
def test_ids_keep_their_whole_range_in_every_layout(
    tmp_path: Path, data: st.DataObject, type_: pa.DataType, layout: dict[str, Any], required: bool
) -> None:
    info = np.iinfo(type_.to_pandas_dtype())
    fitting = IDS.filter(lambda value: info.min <= value <= info.max) | st.integers(int(info.min), 127)
    values = data.draw(st.lists(fitting, max_size=60)) * data.draw(st.integers(1, 5))
    schema = pa.schema([pa.field("column", type_, nullable=not required)])
    delta = {"use_dictionary": False, "column_encoding": {"column": "DELTA_BINARY_PACKED"}}
    encoding = delta if data.draw(st.booleans()) else {}
    table = pa.Table.from_arrays([pa.array(values, type_)], schema=schema)
    pq.write_table(table, tmp_path / "file", **layout | encoding)
    found = read(tmp_path / "file", {"column": "id"}, block_rows=data.draw(st.integers(1, 100)))
    assert found == {"column": values}


@settings(max_examples=50, deadline=None, suppress_health_check=FROM_A_FIXTURE)
@given(values=st.lists(INT64, max_size=30), at=st.integers(0, 30), layout=layouts(), block_rows=st.integers(1, 40))
def test_a_null_among_ids_is_refused_in_every_layout(
    tmp_path: Path, values: list[int], at: int, layout: dict[str, Any], block_rows: int
) -> None:
    column = pa.array([*values[:at], None, *values[at:]], pa.int64())
    pq.write_table(pa.table({"column": column}), tmp_path / "edges.parquet", **layout)
    with pytest.raises(InputError, match=r"edges\.parquet, row group 0: column 'column' has a null, which is no id"):
        read(tmp_path / "edges.parquet", {"column": "id"}, block_rows=block_rows)


@pytest.mark.parametrize("type_", WIDTHS[:4], ids=str)
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_ids_are_not_left_to_pyarrow(
    tmp_path: Path, type_: pa.DataType, use_dictionary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_cpu, "_ArrowReader", pytest.fail)
    pq.write_table(pa.table({"column": pa.array([-1, -2, 5], type_)}), tmp_path / "file", use_dictionary=use_dictionary)
    assert read(tmp_path / "file", {"column": "id"}) == {"column": [-1, -2, 5]}


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (pa.array([5, 2**63], pa.uint64()), f"has the id {2**63}, but ids are integers of 64 bits with sign"),
        (pa.array([5, None], pa.uint64()), "has a null"),
        (pa.nulls(1), "has a null"),
        (pa.array([1.0]), "is of type double, but ids are integers"),
        (pa.array(["1"]), "is of type string, but ids are integers"),
        (pa.array([True]), "is of type bool, but ids are integers"),
        (pa.array([1], pa.timestamp("us")), r"is of type timestamp\[us\], but ids are integers"),
    ],
)
def test_what_is_no_id_is_refused(tmp_path: Path, column: pa.Array, problem: str) -> None:
    pq.write_table(pa.table({"column": column}), tmp_path / "edges.parquet")
    with pytest.raises(InputError, match=rf"edges\.parquet, row group 0: column 'column' {problem}"):
        read(tmp_path / "edges.parquet", {"column": "id"})


def test_ids_are_written_as_they_are(tmp_path: Path) -> None:
    ids = np.array([-(2**63), -2, -1, 2**63 - 1])
    write_parquet({"v": ids}, tmp_path / "file", {"v": "id"})
    column = pq.read_table(tmp_path / "file")["v"]
    assert (column.type, column.to_pylist()) == (pa.int64(), ids.tolist())
    assert read(tmp_path / "file", {"v": "id"}) == {"v": ids.tolist()}


MOMENT = datetime(2009, 3, 26, 15, 30, 14)
MICROSECONDS = 1_238_081_414_000_000


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        (pa.array([True, False, None]), "int8", [1, 0, NULL_INTEGER]),
        (pa.array([True, False, None]), "text", ["true", "false", None]),
        (pa.array([1.5, 2.0, None]), "text", ["1.5", "2", None]),
        (pa.array(["1", " 2.0 ", "", None, "-1", "1.5", "9007199254740993"]), "int64", [1, 2, -1, -1, -2, -2, -2]),
        (pa.array(["a", "b", None, "a"]).dictionary_encode(), "text", ["a", "b", None, "a"]),
        (pa.nulls(2), "int8", [NULL_INTEGER] * 2),
        (pa.nulls(2), "timestamp", [None] * 2),
        (pa.nulls(2), "float64", [None] * 2),
        (pa.nulls(2), "text", [None] * 2),
        (pa.array([MOMENT, None], pa.timestamp("s")), "timestamp", [MICROSECONDS, None]),
        (pa.array([MOMENT.date(), None]), "timestamp", [MICROSECONDS - 55_814_000_000, None]),
        *(
            (pa.array([MOMENT, None], pa.timestamp("us", zone)), "timestamp", [MICROSECONDS - 4 * 3_600_000_000, None])
            for zone in ("UTC", "America/New_York", "Asia/Kathmandu", "+02:00")
        ),
        (
            pa.array(["2009-03-26 15:30:14", "2009-03-26T15:30:14.000001999", "2009-03-26", "", None]),
            "timestamp",
            [MICROSECONDS, MICROSECONDS + 1, MICROSECONDS - 55_814_000_000, None, None],
        ),
    ],
)
def test_values_become_their_kind(tmp_path: Path, column: pa.Array, kind: Kind, expected: list[Any]) -> None:
    pq.write_table(pa.table({"column": column}), tmp_path / "file")
    assert read(tmp_path / "file", {"column": kind}) == {"column": expected}


@pytest.mark.parametrize(
    ("column", "kind", "problem"),
    [
        (pa.array(["1", "torn"]), "float64", "'torn' is not a number"),
        (pa.array(["1", "0x1"]), "int8", "'0x1' is not a number"),
        (pa.array(["2009-13-26"]), "timestamp", "2009-13-26"),
        (pa.array(["2009-03-26 15:30:14 or so"]), "timestamp", "is not a time such as"),
        (pa.array(["2009-03-26T15:30:14Z"]), "timestamp", "is not a time such as 2019-03-01 08:00:00, without zone"),
        (pa.array([1, 2]), "timestamp", "int64 is not a point in time"),
        (pa.array([MOMENT]), "float64", r"timestamp\[us\] is not a number"),
        (pa.array([2**62], pa.timestamp("ms")), "timestamp", "beyond the year"),
    ],
)
def test_values_that_cannot_become_their_kind_are_named(
    tmp_path: Path, column: pa.Array, kind: Kind, problem: str
) -> None:
    pq.write_table(pa.table({"column": column}), tmp_path / "trips.parquet")
    with pytest.raises(
        InputError, match=rf"trips\.parquet, row group 0: column 'column' .*{problem}.* Get the file again"
    ):
        read(tmp_path / "trips.parquet", {"column": kind})


def test_blocks_are_bounded_whatever_the_row_group_and_in_file_order(tmp_path: Path) -> None:
    table = pa.table({"n": np.arange(1_000), "word": pa.array([f"w{n % 17}" for n in range(1_000)])})
    pq.write_table(table, tmp_path / "file", row_group_size=600, max_rows_per_page=90)
    blocks = list(row_group_blocks(tmp_path / "file", 1, {"word": "text", "n": "int16"}, block_rows=170))
    assert [list(block) for block in blocks] == [["word", "n"]] * 3
    assert [values_of(block["n"]) for block in blocks] == [
        list(range(600, 770)), list(range(770, 940)), list(range(940, 1_000))
    ]  # fmt: skip
    assert [word for block in blocks for word in values_of(block["word"])] == table["word"].to_pylist()[600:]


def test_a_row_group_without_rows_is_one_block_without_rows(tmp_path: Path) -> None:
    with pq.ParquetWriter(tmp_path / "file", pa.schema({"n": pa.int64()})) as writer:
        writer.write_table(pa.table({"n": pa.array([], pa.int64())}))
    [block] = row_group_blocks(tmp_path / "file", 0, {"n": "int8"}, block_rows=5)
    assert values_of(block["n"]) == []


def test_blocks_can_be_changed_in_place(tmp_path: Path) -> None:
    column = {"f": pa.array([1.0, 2.0]), "t": pa.array([1, 2], pa.timestamp("us")), "u": pa.array([1, 2], pa.uint8())}
    pq.write_table(pa.table(column), tmp_path / "file", use_dictionary=False)
    [block] = row_group_blocks(tmp_path / "file", 0, {"f": "float64", "t": "timestamp", "u": "float64"}, block_rows=5)
    assert all(values.flags.writeable for values in block.values() if isinstance(values, np.ndarray))


def test_structs_beside_a_column_do_not_displace_it(tmp_path: Path) -> None:
    trips = pa.table({"before": pa.array([{"x": 7, "y": 8}]), "n": [1], "between": pa.array([{"z": 9}]), "m": [2]})
    pq.write_table(trips, tmp_path / "file")
    assert read(tmp_path / "file", {"n": "int64", "m": "int64"}) == {"n": [1], "m": [2]}


def test_a_written_block_is_read_by_pyarrow_with_its_nulls_types_and_one_row_group(tmp_path: Path) -> None:
    block: dict[str, Array | Encoded] = {
        "t": np.array([MICROSECONDS, NULL_TIMESTAMP]),
        "f": np.array([0.5, np.nan]),
        "n": np.array([3, NULL_INTEGER], np.int16),
        "bad": np.array([BAD_INTEGER, 1], np.int8),
        "s": Encoded(np.array([-1, 1], np.int32), ("a", "b")),
    }
    kinds: dict[str, Kind] = {"s": "text", "t": "timestamp", "f": "float64", "n": "int16", "bad": "int8"}
    write_parquet(block, tmp_path / "file", kinds)
    table = pq.read_table(tmp_path / "file")
    assert table.to_pylist() == [
        {"s": None, "t": MOMENT, "f": 0.5, "n": 3, "bad": BAD_INTEGER},
        {"s": "b", "t": None, "f": None, "n": None, "bad": 1},
    ]
    assert table.schema.types == [pa.string(), pa.timestamp("us"), pa.float64(), pa.int16(), pa.int8()]
    assert pq.read_metadata(tmp_path / "file").num_row_groups == 1


def test_slices_and_no_rows_are_written(tmp_path: Path) -> None:
    write_parquet({"f": np.arange(10.0)[1:9:2]}, tmp_path / "slice", {"f": "float64"})
    assert pq.read_table(tmp_path / "slice")["f"].to_pylist() == [1.0, 3.0, 5.0, 7.0]
    write_parquet({"f": np.empty(0)}, tmp_path / "nothing", {"f": "float64"})
    assert read(tmp_path / "nothing", {"f": "float64"}) == {"f": []}


@settings(max_examples=50, deadline=None, suppress_health_check=FROM_A_FIXTURE)
@given(rows=st.integers(0, 300), seed=st.integers(0, 100))
def test_what_is_written_is_read_back(tmp_path: Path, rows: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    block = {
        "t": np.where(random.random(rows) < 0.2, NULL_TIMESTAMP, random.integers(0, 10**15, rows)),
        "f": np.where(random.random(rows) < 0.2, np.nan, random.integers(0, 9, rows) / 2),
        "n": random.integers(NULL_INTEGER, 100, rows).astype(np.int8),
    }
    kinds: dict[str, Kind] = {"t": "timestamp", "f": "float64", "n": "int8"}
    write_parquet(block, tmp_path / "file", kinds)
    [found] = row_group_blocks(tmp_path / "file", 0, kinds, block_rows=10**6)
    for name, values in block.items():
        np.testing.assert_array_equal(found[name], values)


def test_a_column_of_arrow_may_come_in_pieces() -> None:
    words = pa.chunked_array([pa.array(["a", None]).dictionary_encode(), pa.array(["b", "a"]).dictionary_encode()])
    assert values_of(from_arrow(words, "text")) == ["a", None, "b", "a"]
