"""Columns read from and written to Parquet: the oracle is pyarrow, or the values that were written."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whitewater.engines import Device
from whitewater.errors import InputError
from whitewater.features.columns import parquet
from whitewater.features.columns.column import Categories, Column, Lists, Numbers, column_of
from whitewater.features.columns.parquet import read_columns
from whitewater.features.dataset import as_table

CPU = Device()
SOURCES = Path(__file__).parents[3] / "src"
FROM_A_FIXTURE = [HealthCheck.function_scoped_fixture]


def values_of(column: Column) -> list[Any]:
    """Return a column as Python values, null and NaN as None."""
    if isinstance(column, Lists):
        items, ends = values_of(column.values), column.offsets.tolist()
        return [items[begin:end] for begin, end in pairwise(ends)]
    if isinstance(column, Categories):
        assert column.codes.dtype == np.int32
        assert column.dictionary.null_count == 0
        words = column.dictionary.to_pylist()
        return [words[code] if code >= 0 else None for code in column.codes.tolist()]
    valid = np.ones(len(column), bool) if column.valid is None else column.valid
    return [
        without_nan(value) if is_valid else None for value, is_valid in zip(column.values.tolist(), valid, strict=True)
    ]


def without_nan(value: Any) -> Any:
    """Return a value as it is read: NaN is null, and a null list is an empty one."""
    if isinstance(value, list):
        return [without_nan(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def expected(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of an Arrow column as they are to be read."""
    empty: list[Any] | None = [] if pa.types.is_list(column.type) else None
    return [empty if value is None else without_nan(value) for value in column.to_pylist()]


WORDS = st.sampled_from(["CASH", "Credit", "", "naïve", "x" * 300, "\0", "a", "a\0"])
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3),
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.sampled_from([0.5, -0.25, math.inf, math.nan]),
    pa.float64(): st.sampled_from([0.0, 1e300, -math.inf, math.nan]) | st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): WORDS,
    pa.large_string(): WORDS,
    pa.dictionary(pa.int32(), pa.string()): WORDS,
    pa.list_(pa.int32()): st.lists(st.none() | st.integers(-3, 300), max_size=4),
    pa.list_(pa.string()): st.lists(st.none() | WORDS, max_size=4),
}
USUAL = [type_ for type_ in VALUES if not pa.types.is_list(type_) and not pa.types.is_unsigned_integer(type_)]
USUAL.remove(pa.bool_())


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
@given(data=st.data(), type_=st.sampled_from(list(VALUES)), layout=layouts(), required=st.booleans())
def test_every_layout_is_read_as_what_was_written(
    tmp_path: Path, data: st.DataObject, type_: pa.DataType, layout: dict[str, Any], required: bool
) -> None:
    drawn = data.draw(st.lists(VALUES[type_] if required else st.none() | VALUES[type_], max_size=60))
    stored = pa.array(drawn * data.draw(st.integers(1, 5)), type_)
    schema = pa.schema([pa.field("column", type_, nullable=not required)])
    pq.write_table(pa.Table.from_arrays([stored], schema=schema), tmp_path / "file", **layout)
    start, rows = data.draw(st.integers(0, 100)), data.draw(st.none() | st.integers(0, 100))
    written = expected(pq.read_table(tmp_path / "file")["column"])
    assert values_of(read_columns(tmp_path / "file", 0, ["column"])["column"]) == written
    part = read_columns(tmp_path / "file", 0, ["column"], start=start, rows=rows)["column"]
    assert values_of(part) == written[start:][:rows]


@pytest.mark.parametrize("type_", USUAL, ids=str)
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_what_writers_usually_make_is_not_left_to_pyarrow(
    tmp_path: Path, type_: pa.DataType, use_dictionary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_read_by_arrow", pytest.fail)
    pq.write_table(pa.table({"c": pa.array([None, None], type_)}), tmp_path / "file", use_dictionary=use_dictionary)
    assert values_of(read_columns(tmp_path / "file", 0, ["c"])["c"]) == [None, None]


@pytest.mark.parametrize(
    "type_", [pa.int8(), pa.int32(), pa.int64(), pa.uint32(), pa.float32(), pa.float64(), pa.bool_()]
)
def test_numbers_keep_their_width(tmp_path: Path, type_: pa.DataType) -> None:
    pq.write_table(pa.table({"n": pa.array([1, None, 0]).cast(type_)}), tmp_path / "file")
    column = read_columns(tmp_path / "file", 0, ["n"])["n"]
    assert isinstance(column, Numbers)
    assert column.values.dtype == type_.to_pandas_dtype()


def test_a_column_of_nulls_without_type_is_numbers_that_are_nan(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": pa.nulls(2)}), tmp_path / "file")
    column = read_columns(tmp_path / "file", 0, ["n"])["n"]
    assert isinstance(column, Numbers)
    assert np.isnan(column.values).tolist() == [True, True]


def test_a_dictionary_that_names_null_is_not_written_out() -> None:
    # As text the rows would have 2.5 GB, more than an array of Arrow holds.
    rows = pa.array(np.tile(np.array([1, 0, 2, 1], np.int32), 150_000))
    column = column_of(pa.DictionaryArray.from_arrays(rows, pa.array([None, "a" * 5000, "b" * 5000])))
    assert isinstance(column, Categories)
    assert column.dictionary.to_pylist() == ["a" * 5000, "b" * 5000]
    assert column.codes[:4].tolist() == [0, -1, 1, 0]


def test_the_dictionary_is_the_files_and_plain_text_is_one_entry_a_value(tmp_path: Path) -> None:
    words = pa.array(["b", "a", None, "b", "a"])
    pq.write_table(pa.table({"stored": words, "plain": words}), tmp_path / "file", use_dictionary=["stored"])
    block = read_columns(tmp_path / "file", 0, ["plain", "stored"])
    dictionaries = {n: column.dictionary.to_pylist() for n, column in block.items() if isinstance(column, Categories)}
    assert dictionaries == {"plain": ["b", "a", "b", "a"], "stored": ["b", "a"]}


def test_columns_come_from_the_row_group_in_the_order_asked_for(tmp_path: Path) -> None:
    table = pa.table({"n": np.arange(1_000), "word": pa.array([f"w{n % 17}" for n in range(1_000)])})
    pq.write_table(table, tmp_path / "file", row_group_size=600, max_rows_per_page=90)
    block = read_columns(tmp_path / "file", 1, ["word", "n"], start=50, rows=200)
    assert list(block) == ["word", "n"]
    assert values_of(block["n"]) == list(range(650, 850))
    assert values_of(block["word"]) == table["word"].to_pylist()[650:850]


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (pa.array([1], pa.timestamp("us")), r"is of type timestamp\[us\]"),
        (pa.array([1], pa.date32()), r"is of type date32"),
        (pa.array([b"a"]), "is of type binary"),
        (pa.array([[[1]]]), "is of lists of lists"),
        (pa.array([{"a": 1}]), "is of type struct"),
    ],
)
def test_other_types_are_refused_by_name(tmp_path: Path, column: pa.Array, problem: str) -> None:
    pq.write_table(pa.table({"odd": column}), tmp_path / "log.parquet")
    with pytest.raises(InputError, match=rf"log\.parquet, row group 0: column 'odd' {problem}"):
        read_columns(tmp_path / "log.parquet", 0, ["odd"])


def test_a_name_with_a_dot_is_not_a_field_of_a_struct(tmp_path: Path) -> None:
    path = tmp_path / "dot.parquet"
    pq.write_table(pa.table({"a": [{"b": 1}, {"b": 2}], "a.b": [10, 20]}), path)
    assert values_of(read_columns(path, 0, ["a.b"])["a.b"]) == [10, 20]


def test_structs_beside_a_column_do_not_displace_it(tmp_path: Path) -> None:
    several, one = pa.array([{"x": 7, "y": 8}]), pa.array([{"n": 9}])
    log = pa.table({"before": several, "n": [1], "s": ["a"], "between": one, "m": [2]})
    pq.write_table(log, tmp_path / "log.parquet")
    block = read_columns(tmp_path / "log.parquet", 0, ["n", "s", "m"])
    assert [values_of(column) for column in block.values()] == [[1], ["a"], [2]]


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    for values in ([1, 2, 3], [3, 2, 1], [4, 5]):
        pq.write_table(pa.table({"n": values}), tmp_path / "file")
        assert values_of(read_columns(tmp_path / "file", 0, ["n"])["n"]) == values


@settings(max_examples=15, deadline=None, suppress_health_check=FROM_A_FIXTURE)
@given(data=st.data(), rows=st.integers(0, 30), row_group_rows=st.integers(1, 70))
def test_what_is_written_is_read_back(tmp_path: Path, data: st.DataObject, rows: int, row_group_rows: int) -> None:
    types = {str(type_): type_ for type_ in VALUES if not pa.types.is_dictionary(type_)}
    drawn = {
        name: data.draw(st.lists(st.none() | VALUES[type_], min_size=rows, max_size=rows))
        for name, type_ in types.items()
    }
    block = {name: column_of(pa.array(drawn[name], type_)) for name, type_ in types.items()}
    pq.write_table(as_table(block, types), tmp_path / "file", row_group_size=row_group_rows)
    found: dict[str, list[Any]] = {name: [] for name in types}
    for group in range(pq.read_metadata(tmp_path / "file").num_row_groups):
        for name, column in read_columns(tmp_path / "file", group, list(types)).items():
            found[name] += values_of(column)
    assert found == {name: expected(pa.chunked_array([pa.array(drawn[name], types[name])])) for name in types}


def test_pandas_which_takes_a_quarter_of_a_second_is_not_imported(tmp_path: Path) -> None:
    log = pa.table({"s": ["a", None], "i": [1, None], "f": [0.5, None], "b": [True, None], "l": [["a"], None]})
    pq.write_table(log, tmp_path / "log.parquet")
    program = """
        import sys
        from pathlib import Path
        import pyarrow.parquet as pq
        from whitewater.engines import Device
        from whitewater.features.columns.categories import count_codes
        from whitewater.features.columns.column import as_categories
        from whitewater.features.columns.parquet import read_columns
        from whitewater.features.dataset import as_table
        from whitewater.features.feature_folder import write_file
        from whitewater.features.columns import groups
        from whitewater.features.columns import categories
        from whitewater.features.operators import categorify
        from whitewater.features.schema import Field, Schema

        device, path = Device(), Path(sys.argv[1])
        types = {field.name: field.type for field in pq.read_schema(path)}
        block = read_columns(path, 0, list(types))
        schema = Schema(tuple(Field(name, type_) for name, type_ in types.items()))
        write_file(path.parent, 0, as_table(block, types), schema, row_group_rows=1)
        columns = [as_categories(block[name]) for name in "sib"]
        categories.row_hash(columns, 0, device)
        dictionary = groups.combine(columns).dictionary
        counter = categories.CategoryCounter(dictionary.type)
        counter.add(dictionary)
        groups.CategoryNumbers.of_groups(counter.values()).of_dictionary(dictionary)
        categorify.order_by_frequency(count_codes(columns[0].codes, 1), columns[0].dictionary)
        print("pandas" in sys.modules)
        """
    command = [sys.executable, "-c", dedent(program), str(tmp_path / "log.parquet")]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
