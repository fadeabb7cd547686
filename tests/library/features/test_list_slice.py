"""Slices of lists are Python's, and padded ones are all of one length."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.library.features.operator_cases import applied, applied_by_row, fields_of, lists, numbers
from whitewater.errors import ConfigError
from whitewater.features.columns.column import Block
from whitewater.features.operators.by_column import ListSlice

ROWS = [[1, 2, 3, 4], [], [5], [6, 7], [8, 9, 10]]
BOUND = st.integers(-5, 5)


@given(rows=st.lists(st.lists(st.integers(0, 99), max_size=6), min_size=1), start=BOUND, end=BOUND)
def test_slices_are_those_of_python(rows: list[list[int]], start: int, end: int) -> None:
    block: Block = {"items": lists(rows)}
    operator = ListSlice(start=start, end=end)
    expected = {"items": [row[start:end] for row in rows]}
    assert applied(operator, block) == expected
    assert applied_by_row(operator, block) == expected


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (ListSlice(start=2), [[1, 2], [], [5], [6, 7], [8, 9]]),
        (ListSlice(start=-2), [[3, 4], [], [5], [6, 7], [9, 10]]),
        (ListSlice(start=1, end=3), [[2, 3], [], [], [7], [9, 10]]),
        (ListSlice(start=0), ROWS),
    ],
)
def test_start_alone_is_a_number_of_items_as_in_nvtabular(operator: ListSlice, expected: list[list[int]]) -> None:
    block: Block = {"items": lists(ROWS)}
    assert applied(operator, block) == {"items": expected}


def test_pad_makes_lists_of_one_length_which_nvtabular_leaves_as_they_are_on_the_cpu() -> None:
    operator = ListSlice(start=3, pad=True)
    block: Block = {"items": lists(ROWS)}
    expected = {"items": [[1, 2, 3], [0, 0, 0], [5, 0, 0], [6, 7, 0], [8, 9, 10]]}
    assert applied(operator, block) == expected
    (field,) = operator.output(("items",), fields_of(block))
    assert (field.type, field.properties) == (pa.list_(pa.int64()), {"length": 3})


@given(
    rows=st.lists(st.lists(st.integers(-9, 9) | st.none(), max_size=6), min_size=1),
    bounds=st.sampled_from([(2, None), (-3, None), (1, 3), (-3, -1)]),
    pad_value=st.sampled_from([0.0, -1.0, 0.5]),
)
def test_padding_comes_behind_the_items_and_nulls_among_them_stay(
    rows: list[list[int | None]], bounds: tuple[int, int | None], pad_value: float
) -> None:
    operator = ListSlice(start=bounds[0], end=bounds[1], pad=True, pad_value=pad_value)
    start, end = (0, 2) if bounds == (2, None) else bounds
    length = abs(start - (end or 0))
    kept: list[list[Any]] = [row[start:end] for row in rows]
    expected = {"items": [row + [pad_value] * (length - len(row)) for row in kept]}
    block: Block = {"items": lists(rows)}
    assert applied(operator, block) == expected
    assert applied_by_row(operator, block) == expected


def test_lists_of_text_are_cut_and_no_lists_at_all_stay_none() -> None:
    block: Block = {"words": lists([["a", "b"], [], ["c"]], "text")}
    assert applied(ListSlice(start=1), block) == {"words": [["a"], [], ["c"]]}
    for rows in range(3):
        found = applied(ListSlice(start=2, pad=True), {"items": lists([[]] * rows)})
        assert found == {"items": [[0, 0]] * rows}


def test_what_cannot_be_cut_or_padded_is_named() -> None:
    fields = fields_of({"words": lists([["a"]], "text"), "x": numbers([1])})
    with pytest.raises(ConfigError, match="ListSlice takes lists, but the column 'x' is of type double"):
        ListSlice(start=1).output(("x",), fields)
    with pytest.raises(ConfigError, match=r"'words' is of type list.*Categorify"):
        ListSlice(start=1, pad=True).output(("words",), fields)


@pytest.mark.parametrize("bounds", [(0, None), (1, -1), (-1, 2), (3, 3), (3, 1)])
def test_lists_are_not_padded_to_a_length_that_is_unknown(bounds: tuple[int, int | None]) -> None:
    with pytest.raises(ConfigError, match="cannot be padded"):
        ListSlice(start=bounds[0], end=bounds[1], pad=True)
