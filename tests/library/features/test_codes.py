"""Numbers, look-ups, counts and orders of categories: the oracles are dictionaries of Python and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.engines import Array, Device
from whitewater.errors import ConfigError, InputError, IntegrityError, ResourceError
from whitewater.features.columns import byte_strings, categories
from whitewater.features.columns.byte_strings import ByteStrings
from whitewater.features.columns.categories import CategoryCounter, count_codes
from whitewater.features.columns.column import Column, Lists, Numbers, as_categories, as_floats
from whitewater.features.columns.groups import CategoryNumbers
from whitewater.features.operators.categorify import order_by_frequency

CPU = Device()
WORDS = st.sampled_from(["", "\0", "a", "a\0", "a\0\0\0\0\0\0\0\0b", "naïve", "68fd1e64", "68fd1e65", "x" * 300])
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): WORDS | st.text(max_size=20),
    pa.binary(): st.binary(max_size=20),
    pa.int64(): st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
}
TYPES = st.sampled_from(list(VALUES))


def no_hash(strings: ByteStrings) -> Array:
    """Return one hash for everything: every two values collide."""
    return np.zeros(len(strings), np.uint64)


def weak_hash(strings: ByteStrings) -> Array:
    """Return one of four hashes, the highest places of a table among them."""
    return strings.hashes(0) % np.uint64(4) * np.uint64(2**62 + 2**40)


HASHES: list[Callable[[ByteStrings], Array]] = [categories.hashes_of, weak_hash, no_hash]


def numbers_of(known: pa.Array, wanted: pa.Array) -> Array:
    """Return the place of each value among the known ones, -1 if it is not one of them, once null has a number too."""
    *numbers, null = CategoryNumbers(known, null=-2, first=0, unseen=-1).of_dictionary(wanted)
    assert null == -2
    return np.array(numbers, np.int64)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), type_=TYPES, hashed=st.sampled_from(HASHES))
def test_values_are_numbered_in_the_order_in_which_they_are_met(
    data: st.DataObject, type_: pa.DataType, hashed: Callable[[ByteStrings], Array]
) -> None:
    parts = data.draw(st.lists(st.lists(VALUES[type_], max_size=30), max_size=5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(categories, "hashes_of", hashed)
        counter = CategoryCounter(type_)
        expected: dict[Any, int] = {}
        for part in parts:
            numbers = [expected.setdefault(value, len(expected)) for value in part]
            assert counter.add(pa.array(part, type_)).tolist() == numbers
    assert counter.size == len(expected)
    assert counter.values().type == type_
    assert counter.values().to_pylist() == list(expected)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), type_=TYPES, hashed=st.sampled_from(HASHES))
def test_values_are_found_and_others_are_not(
    data: st.DataObject, type_: pa.DataType, hashed: Callable[[ByteStrings], Array]
) -> None:
    known = data.draw(st.lists(VALUES[type_], max_size=30, unique=True))
    candidates = VALUES[type_] | st.sampled_from(known) if known else VALUES[type_]
    wanted = data.draw(st.lists(candidates, max_size=30))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(categories, "hashes_of", hashed)
        found = numbers_of(pa.array(known, type_), pa.array(wanted, type_))
    assert found.tolist() == [known.index(value) if value in known else -1 for value in wanted]


@pytest.mark.parametrize("type_", [pa.string(), pa.int64()])
def test_tables_grow_and_find_all_that_they_had(type_: pa.DataType) -> None:
    values = pa.array(np.random.default_rng(1).permutation(100_000)).cast(type_)
    counter = CategoryCounter(type_)
    for start in range(0, len(values), 7_001):
        counter.add(values[start : start + 7_001])
    np.testing.assert_array_equal(counter.add(values), np.arange(len(values)))
    assert counter.values().equals(values)
    np.testing.assert_array_equal(numbers_of(values, values), np.arange(len(values)))
    assert counter.nbytes < 100 * len(values)


def test_more_values_than_can_be_numbered_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(categories, "MOST_VALUES", 512)
    counter = CategoryCounter(pa.int64())
    counter.add(pa.array(range(512)))
    with pytest.raises(ResourceError, match="512 categories are as many as can be told apart"):
        counter.add(pa.array([512]))


def test_a_value_longer_than_all_the_room_is_kept() -> None:
    words = ["a" * 100_000, "b" * 300_000, "a" * 100_000]
    counter = CategoryCounter(pa.string())
    assert counter.add(pa.array(words)).tolist() == [0, 1, 0]
    assert counter.values().to_pylist() == words[:2]


def test_text_past_the_offsets_of_arrows_strings_is_of_its_large_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_strings, "_MOST_BYTES", 3)
    counter = CategoryCounter(pa.string())
    counter.add(pa.array(["a", "bc"]))
    assert counter.values().equals(pa.array(["a", "bc"]))
    counter.add(pa.array(["d"]))
    assert counter.values().equals(pa.array(["a", "bc", "d"], pa.large_string()))


def test_values_stay_what_they_were_when_more_are_added() -> None:
    counter = CategoryCounter(pa.string())
    counter.add(pa.array(["a", "b"]))
    values = counter.values()
    counter.add(pa.array([f"c{number}" for number in range(5_000)]))
    assert values.to_pylist() == ["a", "b"]


def test_slices_and_large_text_are_the_same_values() -> None:
    words = pa.array(["left out", "a", "b", "a", "left out"])
    counter = CategoryCounter(pa.string())
    assert counter.add(words[1:4]).tolist() == [0, 1, 0]
    assert counter.add(words.cast(pa.large_string())[1:4]).tolist() == [0, 1, 0]
    assert numbers_of(words[1:3], words.cast(pa.large_string())).tolist() == [-1, 0, 1, 0, -1]


@settings(max_examples=100, deadline=None)
@given(data=st.data(), type_=TYPES)
def test_the_most_frequent_come_first_and_equal_ones_by_their_bytes(data: st.DataObject, type_: pa.DataType) -> None:
    values = data.draw(st.lists(VALUES[type_], max_size=40, unique=True))
    numbers = st.sampled_from([0, 1, 2, 2**16 - 1, 2**16, 2**40])
    counts = data.draw(st.lists(numbers, min_size=len(values), max_size=len(values)))
    order = order_by_frequency(np.array(counts, np.int64), pa.array(values, type_))
    ranked = sorted(zip(counts, values, strict=True), key=lambda pair: (-pair[0], sortable(pair[1])))
    assert [values[place] for place in order] == [value for _, value in ranked]


def sortable(value: str | bytes | int) -> bytes | int:
    return value.encode() if isinstance(value, str) else value


def test_long_common_beginnings_are_told_apart_by_what_follows() -> None:
    words = [f"https://example.org/{'path/' * 20}{number:05}" for number in np.random.default_rng(1).permutation(3_000)]
    order = order_by_frequency(np.ones(len(words), np.int64), pa.array(words))
    assert [words[place] for place in order] == sorted(words)


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(st.none() | st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_integers_become_categories_each_once(rows: list[int | None]) -> None:
    valid = np.array([value is not None for value in rows], bool)
    values = np.array([7 if value is None else value for value in rows], np.int64)
    found = as_categories(Numbers(values, None if valid.all() else valid))
    words = found.dictionary.to_pylist()
    assert found.dictionary.type == pa.int64()
    assert found.codes.dtype == np.int32
    assert [None if code < 0 else words[code] for code in found.codes] == rows
    assert sorted(words) == sorted({value for value in rows if value is not None})


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64", "bool"])
def test_integers_of_every_width_are_categories(dtype: str) -> None:
    column = Numbers(np.array([1, 0, 1], dtype), np.array([True, True, False]))
    found = as_categories(column)
    assert [found.dictionary.to_pylist()[code] if code >= 0 else None for code in found.codes] == [1, 0, None]
    assert as_categories(found) is found


def test_what_is_not_a_category_is_refused() -> None:
    for column in (Numbers(np.array([1.0])), Lists(np.array([0, 1]), Numbers(np.array([1])))):
        with pytest.raises(ConfigError, match="a category is a text or an integer"):
            as_categories(column)
    with pytest.raises(InputError, match=r"above 2\*\*63 - 1"):
        as_categories(Numbers(np.array([2**63], np.uint64)))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Numbers(np.array([1, 2], np.int8), np.array([True, False])), [1, np.nan]),
        (Numbers(np.array([0.5, np.nan], np.float32)), [0.5, np.nan]),
        (Numbers(np.array([True, False])), [1, 0]),
    ],
)
def test_numbers_are_floats_with_nan_for_null(column: Column, expected: list[float]) -> None:
    found = as_floats(column)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=50, deadline=None)
@given(codes=st.lists(st.integers(-1, 9), max_size=50), size=st.integers(10, 12))
def test_rows_are_counted_by_code_without_nulls(codes: list[int], size: int) -> None:
    assert count_codes(np.array(codes, np.int32), size).tolist() == [codes.count(code) for code in range(size)]


def test_a_code_that_stands_for_nothing_is_an_error() -> None:
    codes = np.array([0, 5, 2**31 - 1], np.int32)
    with pytest.raises(IntegrityError, match="2 rows have a code that is not below 5"):
        count_codes(codes, 5)


def test_read_only_rows_and_slices_are_counted() -> None:
    codes = np.from_dlpack(pa.array([0, 1, 1, 0], pa.int32()))
    assert count_codes(codes[::2], 2).tolist() == [1, 1]
    every_other = Numbers(np.from_dlpack(pa.array([5, 7, 5, 7]))[::2])
    assert as_categories(every_other).dictionary.to_pylist() == [5]
