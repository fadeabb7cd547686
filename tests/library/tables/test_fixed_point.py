"""Sums of numbers as integers: the oracle is exact arithmetic of fractions."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.tables.group_statistics import LIMIT, SQUARE_UNIT, SUMS, VALUE_UNIT, integers, totals
from whitewater.tables.with_polars import sums_by_bin

ROWS = 2**32 - 1
Numbers = st.lists(st.floats(0, LIMIT, exclude_max=True) | st.floats(0, 2), min_size=1, max_size=60)


def summed(values: list[float]) -> dict[str, Any]:
    columns = integers(pd.Series(values))
    return {name: column.sum() for name, column in columns.items()}


def exact(sums: dict[str, Any]) -> tuple[Fraction, Fraction]:
    [total], [squares] = totals({name: np.array([value]) for name, value in sums.items()})
    return Fraction(int(total), VALUE_UNIT), Fraction(int(squares), SQUARE_UNIT)


@settings(max_examples=200, deadline=None)
@given(Numbers)
def test_sums_are_exact_but_for_what_is_dropped_of_each_value(values: list[float]) -> None:
    total, squares = exact(summed(values))
    assert 0 <= sum(map(Fraction, values)) - total < Fraction(len(values), VALUE_UNIT)
    whole = sum(Fraction(value) ** 2 for value in values)
    # A square is that of what the sum of values holds, as float64 rounds it.
    assert abs(whole - squares) < sum(
        Fraction(2 * value) / VALUE_UNIT + Fraction(value * value) / 2**53 + Fraction(1, SQUARE_UNIT)
        for value in values
    ) + Fraction(1, VALUE_UNIT**2)


@settings(max_examples=50, deadline=None)
@given(Numbers, st.randoms(), st.integers(0, 60))
def test_sums_are_the_same_in_any_order_and_parts(values: list[float], random: Random, cut: int) -> None:
    whole = summed(values)
    random.shuffle(values)
    one, other = summed(values[:cut]), summed(values[cut:])
    assert {name: one[name] + other[name] for name in SUMS} == whole


@settings(max_examples=50, deadline=None)
@given(Numbers)
def test_polars_adds_up_what_pandas_does(values: list[float]) -> None:
    [table] = sums_by_bin(pl.LazyFrame({"key": 1, "x": values}), [pa.schema({"key": pa.int64()})], "x")
    sums = {name: np.array([sum(table[name].to_pylist())]) for name in SUMS}
    assert totals(sums) == totals({name: np.array([value]) for name, value in summed(values).items()})


@pytest.mark.parametrize("largest", [np.nextafter(LIMIT, 0), np.nextafter(1, 0), 2047.9999999999998])
def test_so_many_rows_of_the_largest_values_fit_in_64_bits(largest: float) -> None:
    assert all(0 <= int(value) * ROWS < 2**63 for value in summed([largest]).values())
