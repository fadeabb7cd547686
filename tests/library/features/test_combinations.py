"""Combinations of columns: the oracle is tuples of Python."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.features.operator_cases import categories, numbers
from whitewater.engines import Device
from whitewater.features.columns.column import Categories, Numbers, as_categories
from whitewater.features.columns.groups import combine, combine_one

CPU = Device()
TEXTS = st.none() | st.sampled_from(["", "\0", "a", "ab", "b", "a" * 300]) | st.text(max_size=5)
INTEGERS = st.none() | st.integers(-2, 2) | st.integers(-(2**63), 2**63 - 1)
Row = tuple[str | None, int | None, str | None]


def integer_column(values: Sequence[int | None]) -> Categories:
    """Return integers with a dictionary without repetition."""
    return as_categories(numbers(values, "int64"))


def combined(rows: Sequence[Row]) -> list[bytes | None]:
    """Combine columns that have the rows, and return the value of each row."""
    first, second, third = zip(*rows, strict=True) if rows else ((), (), ())
    column = combine([categories(first), integer_column(second), categories(third)])
    assert column.dictionary.type == pa.binary()
    assert column.codes.dtype == np.int32
    values = column.dictionary.to_pylist()
    return [values[code] if code >= 0 else None for code in column.codes]


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(TEXTS, INTEGERS, TEXTS), max_size=30))
def test_rows_are_combined_as_each_alone_and_equal_only_if_all_parts_are(rows: list[Row]) -> None:
    found = combined(rows)
    assert found == [combine_one(row) for row in rows]
    assert len(set(found)) == len(set(rows))


def test_all_parts_null_is_null_and_some_are_not() -> None:
    assert combined([(None, None, None), (None, 0, None), ("", None, None)]) == [
        None,
        b"\0" + b"\2\x08\0\0\0" + struct.pack("<q", 0) + b"\0",
        b"\1\0\0\0\0" + b"\0" + b"\0",
    ]


def test_the_order_of_columns_counts_and_borders_are_kept() -> None:
    several = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("ab", None), ("a", "b", None)]
    assert len({combine_one(parts) for parts in several}) == len(several)


def test_many_columns_of_many_values_do_not_overflow() -> None:
    random = np.random.default_rng(1)
    each_column = [random.permutation(2_000) for _ in range(8)]
    column = combine([as_categories(Numbers(each)) for each in each_column])
    expected = [combine_one([int(part) for part in row]) for row in zip(*each_column, strict=True)]
    assert column.dictionary.take(pa.array(column.codes)).to_pylist() == expected
