"""Crosses are hashes of combinations in their order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.features.operator_cases import CPU, applied, applied_by_row, categories, numbers, values_of
from whitewater.errors import ConfigError, InputError
from whitewater.features import Transformer, Workflow
from whitewater.features.columns.column import Categories
from whitewater.features.operator import Mode
from whitewater.features.operators.categorify import HashedCross
from whitewater.features.schema import Field

PAIR = (("A", "B"),)
WIDE = HashedCross(num_buckets=2**61)


def test_100_by_100_pairs_have_10000_hashes_not_4951() -> None:
    """NVTabular combines by XOR, which forgets the order and makes every self-cross 0."""
    values = np.repeat(np.arange(100), 100), np.tile(np.arange(100), 100)
    made = applied(WIDE, {"A": numbers(values[0], "int64"), "B": numbers(values[1], "int64")}, inputs=PAIR)["A_X_B"]
    assert len(set(made)) == 10_000


@settings(deadline=None, max_examples=40)
@given(rows=st.lists(st.tuples(*[st.none() | st.sampled_from(["", "a", "b", "ab"])] * 2), min_size=1, max_size=20))
def test_crosses_are_equal_where_the_values_are_equal_and_only_there(rows: list[tuple[str | None, str | None]]) -> None:
    block = {"A": categories([a for a, _ in rows]), "B": categories([b for _, b in rows])}
    made = applied(WIDE, block, inputs=PAIR)["A_X_B"]
    assert len(set(made)) == len(set(rows)) == len(set(zip(made, rows, strict=True)))
    assert applied_by_row(WIDE, block, inputs=PAIR) == {"A_X_B": made}


def test_buckets_are_the_hash_modulo_their_number_and_all_are_used() -> None:
    block = {"A": numbers(np.arange(3000) % 60, "int32"), "B": numbers(np.arange(3000) // 60, "int16")}
    wide = applied(HashedCross(num_buckets=7 * 2**40), block, inputs=PAIR)["A_X_B"]
    few = applied(HashedCross(num_buckets=7), block, inputs=PAIR)["A_X_B"]
    assert few == [each % 7 for each in wide]
    assert min(np.bincount(few, minlength=7)) > 3000 / 7 * 0.8


def test_crosses_do_not_depend_on_codes_which_differ_by_device_or_partition() -> None:
    one = Categories(np.array([0, 1, -1], np.int32), pa.array(["a", "b"]))
    other = Categories(np.array([2, 0, -1], np.int32), pa.array(["b", "c", "a"]))
    assert applied(WIDE, {"A": one, "B": other}, inputs=PAIR) == applied(WIDE, {"A": other, "B": one}, inputs=PAIR)


def test_three_columns_are_crossed_and_several_crosses_are_made() -> None:
    block = {name: categories([name, "x"]) for name in "ABC"}
    made = applied(HashedCross(num_buckets=99), block, inputs=(("A", "B", "C"), ("C", "A")))
    assert list(made) == ["A_X_B_X_C", "C_X_A"]
    assert applied_by_row(HashedCross(num_buckets=99), block, inputs=(("A", "B", "C"), ("C", "A"))) == made


def test_a_column_of_nulls_is_read_as_floats_and_crossed_as_nulls() -> None:
    made = HashedCross(num_buckets=99).transform(
        PAIR, {"A": categories(["a", "b"]), "B": numbers([np.nan, np.nan])}, {}, Mode(CPU)
    )
    assert (
        values_of(made["A_X_B"])
        == applied(
            HashedCross(num_buckets=99), {"A": categories(["a", "b"]), "B": categories([None, None])}, inputs=PAIR
        )["A_X_B"]
    )


def test_the_output_says_what_its_ids_are_below() -> None:
    fields = {"A": Field("A", pa.string()), "B": Field("B", pa.int8())}
    (field,) = HashedCross(num_buckets=2**31 + 1).output(PAIR, fields)
    assert field == Field("A_X_B", pa.int64(), ("categorical",), {"cardinality": 2**31 + 1})


def test_what_is_not_a_combination_of_categories_is_refused() -> None:
    operator = HashedCross(num_buckets=3)
    with pytest.raises(ConfigError, match=r"takes combinations, and 'A' is a column. Write \[\[\"A\", \"B\"\]\]"):
        operator.output(("A",), {"A": Field("A", pa.string())})
    with pytest.raises(ConfigError, match=r"column B is of type float.*Bucketize"):
        operator.output(PAIR, {"A": Field("A", pa.string()), "B": Field("B", pa.float32())})
    with pytest.raises(ConfigError, match="column B has lists"):
        operator.output(PAIR, {"A": Field("A", pa.string()), "B": Field("B", pa.list_(pa.string()))})
    transform = Transformer(Workflow([PAIR[0]] >> operator).fit({"A": ["a"], "B": ["b"]}))
    with pytest.raises(InputError, match=r"the row's 'B' is 1\.5, but the column was of text"):
        transform({"A": "a", "B": 1.5})
