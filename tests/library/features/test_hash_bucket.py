"""Buckets are hashes of what a category is, on every device, for a batch and for a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.features.operator_cases import CPU, applied, applied_by_row, categories, lists, numbers, values_of
from whitewater.errors import ConfigError, InputError
from whitewater.features import Transformer, Workflow
from whitewater.features.columns.column import Block, Categories
from whitewater.features.operator import Mode
from whitewater.features.operators.categorify import HashBucket
from whitewater.features.schema import Field

TEXTS = ["", "a", "b", "naïve", "日本", "x" * 70]


def bucket(value: str | int | None, buckets: int) -> int:
    """Return what the docstring says, by the reference implementation of XXH64."""
    if value is None:
        return buckets
    data = value.encode() if isinstance(value, str) else value.to_bytes(8, "little", signed=True)
    return int(xxhash.xxh64_intdigest(data, 0) % buckets)


@settings(deadline=None, max_examples=40)
@given(values=st.lists(st.none() | st.text(st.characters(codec="utf-8"))), buckets=st.sampled_from([1, 7, 1000, 2**40]))
def test_texts_have_the_bucket_of_their_utf8(values: list[str | None], buckets: int) -> None:
    made = applied(HashBucket(num_buckets=buckets), {"C": categories([*values, "a"])})
    assert made == {"C": [bucket(value, buckets) for value in [*values, "a"]]}


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_integers_have_one_bucket_whatever_their_width(dtype: str) -> None:
    values = [-128, -1, None, 0, 1, 127]
    assert applied(HashBucket(num_buckets=10), {"C": numbers(values, dtype)}) == {"C": [bucket(v, 10) for v in values]}


def test_buckets_do_not_depend_on_codes_which_differ_by_device_or_partition() -> None:
    """NVTabular hashes on the device, by another function on each."""
    forward = Categories(np.array([0, 1, 2, -1, 0], np.int32), pa.array(["a", "b", "c"]))
    backward = Categories(np.array([3, 2, 0, -1, 1], np.int32), pa.array(["c", "a", "b", "a"]))
    expected = [bucket(value, 5) for value in ["a", "b", "c", None, "a"]]
    for column in (forward, backward):
        assert applied(HashBucket(num_buckets=5), {"C": column}) == {"C": expected}


def test_lists_stay_lists() -> None:
    made = applied(HashBucket(num_buckets=8), {"L": lists([["a", None], [], ["b"]], "text")})
    assert made == {"L": [[bucket("a", 8), 8], [], [bucket("b", 8)]]}


def test_a_row_has_what_the_batch_has() -> None:
    operator = HashBucket(num_buckets=11)
    block: Block = {"C": categories([*TEXTS, None]), "I": numbers([1, -5, None, 2**40, 0, 7, 8], "int64")}
    assert applied_by_row(operator, block) == applied(operator, block)
    assert operator.row(("L", "C"), {})({"L": ["a", None], "C": float("nan")}) == {"L": [bucket("a", 11), 11], "C": 11}


@pytest.mark.parametrize(("buckets", "type_"), [(2**31 - 1, "int32"), (2**31, "int64")])
def test_ids_are_as_wide_as_they_must_be(buckets: int, type_: str) -> None:
    (field,) = HashBucket(num_buckets=buckets).output(("C",), {"C": Field("C", pa.string(), ("user_id",))})
    assert (str(field.type), field.tags) == (type_, ("user_id", "categorical"))
    assert field.properties == {"cardinality": buckets + 1}


def test_floats_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"column I is of type double.*Bucketize"):
        HashBucket(num_buckets=3).output(("I",), {"I": Field("I", pa.float64())})


@pytest.mark.parametrize("value", [1.5, b"a", {}])
def test_a_row_of_another_type_is_refused(value: Any) -> None:
    transform = Transformer(Workflow(["C"] >> HashBucket(num_buckets=3)).fit({"C": ["a"]}))
    with pytest.raises(InputError, match=r"the row's 'C' is .*, but the column was of text"):
        transform({"C": value})


def test_a_column_of_nulls_is_read_as_floats_and_has_the_id_of_null() -> None:
    operator, fields = HashBucket(num_buckets=3), {"C": Field("C", pa.null())}
    made = operator.transform(("C",), {"C": numbers([np.nan, np.nan])}, {}, Mode(CPU))
    assert values_of(made["C"]) == [3, 3]
    assert operator.output(("C",), fields)[0].type == pa.int32()
