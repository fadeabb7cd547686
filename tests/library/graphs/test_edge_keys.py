"""Edges keep their ends and weights as they are encoded, cut into buckets, sorted and merged, as NumPy finds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.engines import Array
from whitewater.errors import IntegrityError
from whitewater.graphs.build.keys import CodeNumbers, IdSpan, KeyedEdges, Rule, code_numbers, marked_codes
from whitewater.graphs.build.merge import (
    SpanEncoder,
    WordEncoder,
    bucket_edges,
    mark_ids,
    merge_edges,
    union_of_ids,
)

Ids = npt.NDArray[np.int64]
SPAN = IdSpan(-400, 1001)
NO_MARKS = CodeNumbers(np.empty(0, np.uint64), np.empty(0, np.uint32))


def random_edges(seed: int, *, edges: int = 5000) -> tuple[Ids, Ids, Array]:
    random = np.random.default_rng(seed)
    source, target = random.integers(-400, 600, (2, edges))
    return source, target, random.random(edges)


def fill(encoder: SpanEncoder | WordEncoder, *, factor: int = 1) -> None:
    """Encode edges in blocks of several sizes, with weights."""
    source, target, weight = random_edges(1)
    for start, stop in ((0, 1), (1, 700), (700, 700), (700, 5000)):
        columns = (source[start:stop] * factor, target[start:stop] * factor, weight[start:stop])
        encoder.add(*columns)


def codes_of(edges: KeyedEdges) -> tuple[Ids, Ids]:
    keys = edges.keys
    return (keys & np.uint64(2**32 - 1)).astype(np.int64), (keys >> np.uint64(32)).astype(np.int64)


def with_opposites(source: Ids, target: Ids, weight: Array) -> set[tuple[int, int, float]]:
    ahead = zip(source.tolist(), target.tolist(), weight.tolist(), strict=True)
    return {each for a, b, w in ahead for each in ((a, b, w), (b, a, w))}


@pytest.mark.parametrize("symmetric", [False, True])
def test_the_codes_of_a_span_are_distances_and_are_marked(symmetric: bool) -> None:
    encoder = SpanEncoder(SPAN, symmetric=symmetric, weighted=True, rows=5000)
    fill(encoder)
    encoded = encoder.edges()
    source, target = codes_of(encoded)
    assert encoded.weights is not None
    found = set(zip((source - 400).tolist(), (target - 400).tolist(), encoded.weights.tolist(), strict=True))
    edges = random_edges(1)
    expected = with_opposites(*edges) if symmetric else set(zip(*(each.tolist() for each in edges), strict=True))
    assert found == expected
    assert len(source) == len(edges[0]) + symmetric * int((edges[0] != edges[1]).sum())
    marked = marked_codes(encoder.marks) - 400
    assert np.array_equal(marked, np.unique(np.concatenate(edges[:2])))


@pytest.mark.parametrize("symmetric", [False, True])
def test_without_a_span_codes_lead_back_to_the_ids(symmetric: bool) -> None:
    # Distant ids.
    factor = 2**53 + 1
    encoder = WordEncoder(symmetric=symmetric)
    fill(encoder, factor=factor)
    encoded, ids = encoder.edges()
    assert encoded.weights is not None
    assert np.array_equal(ids, np.unique(ids))
    source, target = (ids[codes] // factor for codes in codes_of(encoded))
    found = set(zip(source.tolist(), target.tolist(), encoded.weights.tolist(), strict=True))
    edges = random_edges(1)
    assert found == (with_opposites(*edges) if symmetric else set(zip(*(each.tolist() for each in edges), strict=True)))


def test_an_id_out_of_the_span_is_refused() -> None:
    for wrong in (-401, 601, -(2**63), 2**63 - 1):
        encoder = SpanEncoder(SPAN, symmetric=False, weighted=False, rows=2)
        with pytest.raises(IntegrityError, match="not from -400 to 600"):
            encoder.add(np.array([0, wrong]), np.array([0, 0]), None)


@pytest.mark.parametrize("weighted", [False, True])
def test_buckets_are_in_order_and_lose_nothing(weighted: bool) -> None:
    keys = np.random.default_rng(3).integers(0, 1000, 4000).astype(np.uint64) << np.uint64(32) | np.uint64(5)
    weights = np.random.default_rng(4).random(4000) if weighted else None
    edges = KeyedEdges(keys, weights)
    found, ends = bucket_edges(edges, 6, 16)
    order = np.argsort(keys >> np.uint64(38), kind="stable")
    assert np.array_equal(found.keys, keys[order])
    assert np.array_equal(ends, np.cumsum(np.bincount((keys >> np.uint64(38)).astype(int), minlength=16)))
    if weights is not None and found.weights is not None:
        assert np.array_equal(found.weights, weights[order])
    assert (found.weights is not None) == weighted


@pytest.mark.parametrize("rule", ["sum", "maximum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_merged_edges_are_numpys(rule: Rule, weighted: bool) -> None:
    random = np.random.default_rng(6)
    # Codes that use the upper bits, too, of which some are vertices; the runs of equal keys are short and long.
    ids = np.sort(random.choice(2**20, 40, replace=False))
    marks = np.zeros(2**20 // 64, np.uint64)
    mark_ids(ids, IdSpan(0, 2**20), marks)
    target, source = np.sort(random.integers(10, 30, 6000)), random.integers(0, 40, 6000)
    source[:100] = 3
    weights = random.choice([0.1, 0.2, 0.7, 1e-12, 1e12], 6000)
    keys = ids[target].astype(np.uint64) << np.uint64(32) | ids[source].astype(np.uint64)
    cuts = [0, *np.searchsorted(target, [15, 15, 22]).tolist(), 6000]
    pieces = [KeyedEdges(keys[a:b], weights[a:b] if weighted else None) for a, b in pairwise(cuts)]
    buckets = [[pieces[0]], [], [pieces[1], pieces[2]], [pieces[3]]]
    merged = merge_edges(buckets, code_numbers(marks), range(10, 30), rule, "int32", weighted=True,
                         edges=6000)  # fmt: skip
    dense = np.zeros((40, 40))
    if rule == "sum":
        order = np.argsort(weights, kind="stable")
        np.add.at(dense, (target[order], source[order]), weights[order] if weighted else 1.0)
    elif weighted:
        np.maximum.at(dense, (target, source), weights)
    else:
        dense[target, source] = 1.0
    expected_target, expected_source = np.nonzero(dense)
    assert np.array_equal(merged.counts, np.bincount(expected_target, minlength=30)[10:])
    assert np.array_equal(merged.sources, expected_source)
    assert merged.loops == np.count_nonzero(np.diagonal(dense))
    if weighted or rule == "sum":
        assert np.array_equal(np.asarray(merged.weights), dense[expected_target, expected_source])
    first = np.sort(keys)
    repeated = int(first[:-1][first[1:] == first[:-1]][0])
    assert merged.repeated == tuple(np.searchsorted(ids, [repeated & 2**32 - 1, repeated >> 32]).tolist())


@settings(deadline=None)
@given(edges=st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), max_size=40))
def test_keys_of_any_bits_are_sorted(edges: list[tuple[int, int]]) -> None:
    keys = np.array([target << 32 | source for target, source in edges], np.uint64)
    # Targets have to be close, as their edges are counted in an array.
    keys &= np.uint64(0x3FF_FFFFFFFF)
    merged = merge_edges([[KeyedEdges(keys, None)]], NO_MARKS, range(1024), "drop", "int64",
                         weighted=False, edges=len(keys))  # fmt: skip
    expected = np.unique(keys)
    assert np.array_equal(merged.sources, (expected & np.uint64(2**32 - 1)).astype(np.int64))
    assert np.array_equal(merged.counts, np.bincount((expected >> np.uint64(32)).astype(int), minlength=1024))
    assert (merged.repeated is None) == (len(expected) == len(keys))


@settings(deadline=None)
@given(codes=st.sets(st.integers(0, 300), min_size=1))
def test_numbers_are_the_places_of_the_codes(codes: set[int]) -> None:
    ids = np.array(sorted(codes), np.int64)
    marks = np.zeros(5, np.uint64)
    mark_ids(ids - 7, IdSpan(-7, 301), marks)
    assert np.array_equal(marked_codes(marks), ids)
    assert np.array_equal(code_numbers(marks).of(np.arange(301)), np.searchsorted(ids, np.arange(301)))


@settings(deadline=None)
@given(first=st.sets(st.integers(-9, 9)), second=st.sets(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)))
def test_the_union_of_ids_is_numpys(first: set[int], second: set[int]) -> None:
    arrays = [np.array(sorted(each), np.int64) for each in (first, second)]
    assert np.array_equal(union_of_ids(*arrays), np.union1d(*arrays))
