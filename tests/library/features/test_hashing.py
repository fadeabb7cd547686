"""Hashes: the oracles are the library xxhash and plain integers of Python."""

from __future__ import annotations

import itertools
import random
import struct
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.features.operator_cases import categories, numbers
from whitewater.engines import Device
from whitewater.errors import ConfigError
from whitewater.features.columns import categories as hashing
from whitewater.features.columns.column import Column, Lists, Numbers, as_categories

CPU = Device()
SEEDS = st.sampled_from([0, 1, 42, 2**63, 2**64 - 1])
INTEGERS = st.sampled_from([0, -1, -(2**63), 2**63 - 1]) | st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=40)


@pytest.mark.parametrize("seed", [0, 42, 2**64 - 1])
def test_hashes_of_every_length_are_those_of_the_library(seed: int) -> None:
    values = [random.Random(length).randbytes(length) for length in range(200)] + [b"", b"\0"]
    expected = [xxhash.xxh64_intdigest(value, seed) for value in values]
    assert hashing.hash_values(pa.array(values), seed).tolist() == expected
    assert [hashing.hash_value(value, seed) for value in values] == expected


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_a_text_is_hashed_as_utf_8_also_in_a_slice_of_a_dictionary(type_: pa.DataType) -> None:
    words = ["left out", "naïve", "", "日本", "\0", "x" * 100]
    expected = [xxhash.xxh64_intdigest(word.encode()) for word in words[1:]]
    assert hashing.hash_values(pa.array(words, type_)[1:], 0).tolist() == expected
    assert hashing.hash_values(pa.array([], type_), 0).tolist() == []


@settings(deadline=None)
@given(values=st.lists(INTEGERS, max_size=20), seed=SEEDS)
def test_an_integer_is_hashed_as_its_8_bytes(values: list[int], seed: int) -> None:
    expected = [xxhash.xxh64_intdigest(struct.pack("<q", value), seed) for value in values]
    assert hashing.hash_values(pa.array([7, *values], pa.int64())[1:], seed).tolist() == expected
    assert [hashing.hash_value(value, seed) for value in values] == expected


def test_the_finaliser_is_that_of_splitmix64() -> None:
    # The first outputs of SplitMix64 with seed 1234567, which are published with the reference implementation.
    golden = 0x9E3779B97F4A7C15
    states = [(1234567 + step * golden) % 2**64 for step in (1, 2, 3)]
    assert [hashing.mix(state) for state in states] == [
        6457827717110365317, 3203168211198807973, 9817491932198370423
    ]  # fmt: skip


@settings(deadline=None)
@given(values=st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_mixing_an_array_is_mixing_each_number(values: list[int]) -> None:
    assert hashing.mix(np.array(values, np.uint64)).tolist() == [hashing.mix(value) for value in values]


ROWS = st.lists(st.tuples(st.none() | TEXTS, st.none() | INTEGERS, st.none() | TEXTS), min_size=1, max_size=20)


@settings(deadline=None)
@given(rows=ROWS, seed=SEEDS)
def test_the_hash_of_a_row_is_that_of_the_row_alone(
    rows: list[tuple[str | None, int | None, str | None]], seed: int
) -> None:
    first, second, third = zip(*rows, strict=True)
    columns: list[Column] = [categories(first), numbers(second, "int64"), categories(third)]
    expected = [hashing.row_hash_one(row, seed) for row in rows]
    assert hashing.row_hash(columns, seed, CPU).tolist() == expected
    columns[1] = as_categories(columns[1])
    assert hashing.row_hash(columns, seed, CPU).tolist() == expected


@settings(max_examples=20, deadline=None)
@given(parts=st.lists(st.integers(0, 200_000), max_size=64), seed=SEEDS)
def test_hashes_do_not_depend_on_partitions(parts: list[int], seed: int) -> None:
    key = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 200_000)
    ends = [0, *sorted(parts), len(key)]
    pieces = [hashing.row_hash([Numbers(key[a:b])], seed, CPU) for a, b in pairwise(ends)]
    np.testing.assert_array_equal(np.concatenate(pieces), hashing.row_hash([Numbers(key)], seed, CPU))


def test_integers_of_every_width_and_booleans_are_one() -> None:
    expected = [hashing.row_hash_one([value], 3) for value in (1, 0)]
    for dtype in ("int8", "uint8", "int32", "int64", "bool"):
        assert hashing.row_hash([numbers([1, 0], dtype)], 3, CPU).tolist() == expected


def test_order_nulls_and_seeds_count() -> None:
    rows = list(itertools.product((None, "", "a", "b"), repeat=2))
    hashes = [hashing.row_hash_one(row, seed) for row in rows for seed in (0, 1)]
    assert len(set(hashes)) == len(hashes)


def test_buckets_of_hashes_are_filled_evenly() -> None:
    counts = np.bincount((hashing.row_hash([Numbers(np.arange(100_000))], 42, CPU) % np.uint64(10)).astype(int))
    # Chi-squared with 9 degrees of freedom is above 33.7 once in ten thousand.
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 33.7


@pytest.mark.parametrize("column", [Numbers(np.array([1.0])), Lists(np.array([0, 1]), Numbers(np.array([1])))])
def test_floats_and_lists_are_refused(column: Column) -> None:
    with pytest.raises(ConfigError, match="text or an integer"):
        hashing.row_hash([column], 0, CPU)
