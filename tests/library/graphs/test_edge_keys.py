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
from whitewater.graphs.build.kernels import KeyedEdges, sort_keys
from whitewater.graphs.build.with_kernels import IdCodes, Piece, TargetRange, bucket_edges, encode_edges, merge
from whitewater.graphs.edges_folder import Batch
from whitewater.graphs.graph_folder import Rule

Ids = npt.NDArray[np.int64]
SPAN = IdCodes(-400, 1001)
NO_WEIGHTS = np.empty(0)
NONE = np.empty(0, np.int64)


def random_edges(seed: int, *, edges: int = 5000) -> tuple[Ids, Ids, Array]:
    random = np.random.default_rng(seed)
    source, target = random.integers(-400, 600, (2, edges))
    return source, target, random.random(edges)


def codes_of(keys: Array) -> tuple[Ids, Ids]:
    return (keys & np.uint64(2**32 - 1)).astype(np.int64), (keys >> np.uint64(32)).astype(np.int64)


def expected(edges: tuple[Ids, Ids, Array], *, symmetric: bool) -> set[tuple[int, int, float]]:
    ahead = set(zip(*(each.tolist() for each in edges), strict=True))
    return ahead | {(b, a, w) for a, b, w in ahead} if symmetric else ahead


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("factor", [1, 2**53 + 1], ids=["close", "distant"])
def test_codes_lead_back_to_the_ids_and_are_marked(symmetric: bool, factor: int) -> None:
    source, target, weight = edges = random_edges(1)
    ids = np.unique(np.concatenate([source, target]))
    codes = SPAN if factor == 1 else IdCodes(0, len(ids), ids * factor)
    marks = codes.empty_marks()
    keys, weights = encode_edges(Batch(source * factor, target * factor, weight), codes, marks, symmetric=symmetric)
    ends = [each - 400 if codes.ids is None else ids[each] for each in codes_of(keys)]
    assert set(zip(*(each.tolist() for each in ends), weights.tolist(), strict=True)) == expected(
        edges, symmetric=symmetric
    )
    assert len(keys) == len(source) + symmetric * int((source != target).sum())
    assert np.array_equal(codes.number(marks, NONE)[0], ids * factor)


def test_an_id_without_a_code_is_refused() -> None:
    for wrong in (-401, 601, -(2**63), 2**63 - 1):
        for codes in (SPAN, IdCodes(0, 2, np.array([0, 3]))):
            with pytest.raises(IntegrityError, match="does not have by its statistics, or had not"):
                encode_edges(Batch(np.array([0, wrong]), np.array([0, 0])), codes, codes.empty_marks(),
                             symmetric=False)  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True])
def test_buckets_are_in_order_and_lose_nothing(weighted: bool) -> None:
    keys = np.random.default_rng(3).integers(0, 1000, 4000).astype(np.uint64) << np.uint64(32) | np.uint64(5)
    weights = np.random.default_rng(4).random(4000) if weighted else NO_WEIGHTS
    found, values, ends = bucket_edges((keys, weights), (6, 4))
    order = np.argsort(keys >> np.uint64(38), kind="stable")
    assert np.array_equal(found, keys[order])
    assert np.array_equal(values, weights[order] if weighted else NO_WEIGHTS)
    assert np.array_equal(np.diff(ends), np.bincount((keys >> np.uint64(38)).astype(int), minlength=16))


@pytest.mark.parametrize("rule", ["sum", "maximum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_merged_edges_are_numpys(rule: Rule, weighted: bool) -> None:
    random = np.random.default_rng(6)
    # Codes that use the upper bits, too, of which some are vertices; the runs of equal keys are short and long.
    ids = np.sort(random.choice(2**20, 40, replace=False))
    codes = IdCodes(0, 2**20)
    _, numbers = codes.number(codes.empty_marks(), ids)
    target, source = random.integers(10, 30, 6000), random.integers(0, 40, 6000)
    source[:100] = 3
    weights = random.choice([0.1, 0.2, 0.7, 1e-12, 1e12], 6000)
    keys = ids[target].astype(np.uint64) << np.uint64(32) | ids[source].astype(np.uint64)
    pieces = []
    for start, stop in pairwise([0, 1500, 1500, 4000, 6000]):
        edges: KeyedEdges = (keys[start:stop], weights[start:stop] if weighted else NO_WEIGHTS)
        pieces.append(Piece(*bucket_edges(edges, (17, 3))))
    task = TargetRange(range(8), range(10, 30), 6000)
    merged = merge(task, pieces=pieces, numbers=numbers, rule=rule, index="int32", weighted=True)
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
@given(keys=st.lists(st.integers(0, 2**64 - 1), max_size=40))
def test_keys_of_any_bits_are_sorted(keys: list[int]) -> None:
    one, other = (np.array(keys, np.uint64) for _ in range(2))
    is_other = sort_keys((one, NO_WEIGHTS), (other, NO_WEIGHTS))
    assert (other if is_other else one).tolist() == sorted(keys)


@settings(deadline=None)
@given(known=st.sets(st.integers(0, 300)), ends=st.sets(st.integers(0, 300), min_size=1))
def test_vertices_are_what_is_known_and_the_ends_of_edges(known: set[int], ends: set[int]) -> None:
    codes, source = IdCodes(-7, 301), np.array(sorted(ends)) - 7
    marks = codes.empty_marks()
    keys, _ = encode_edges(Batch(source, source), codes, marks, symmetric=False)
    ids, numbers = codes.number(marks, np.array(sorted(known), np.int64) - 7)
    assert ids.tolist() == [each - 7 for each in sorted(known | ends)]
    task, piece = TargetRange(range(1), range(len(ids)), len(keys)), Piece(keys, NO_WEIGHTS, np.array([0, len(keys)]))
    merged = merge(task, pieces=[piece], numbers=numbers, rule="drop", index="int64", weighted=False)
    assert np.array_equal(merged.sources, np.searchsorted(ids, source))
    assert np.array_equal(np.flatnonzero(merged.counts), merged.sources)
