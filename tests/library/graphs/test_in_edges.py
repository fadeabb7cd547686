"""Numbers pulled along edges are their weighted sums, in one order of addition however the work is divided."""

from fractions import Fraction
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from whitewater.engines import Device
from whitewater.graphs import graph_folder
from whitewater.graphs.graph_folder import Edges
from whitewater.graphs.pagerank.in_edges import prepare_in_edges


def edges_of(
    counts: npt.NDArray[np.int64], vertices: int, *, weighted: bool, seed: int, dtype: type = np.int32
) -> Edges:
    random = np.random.default_rng(seed)
    edges = int(counts.sum())
    # Few sources have most of the edges, and many have none.
    sources: npt.NDArray[Any] = np.minimum(random.zipf(1.3, edges) - 1, vertices - 1).astype(dtype)
    weights = random.uniform(1e-3, 1e3, edges) if weighted else None
    return Edges(np.concatenate([[0], np.cumsum(counts)]), sources, weights)


def pull(edges: Edges, shares: npt.NDArray[np.float64], *, threads: int = 1) -> npt.NDArray[np.float64]:
    sums = np.full(edges.target_count, np.nan)
    prepare_in_edges(Device(), edges, threads=threads)(shares, sums)
    return sums


def four_sums(terms: list[float]) -> float:
    """Add up as the order within a run is stated, edge by edge."""
    whole = len(terms) // 4 * 4
    # Since Python 3.12 `sum` adds up what it rounds off, too.
    sums = [reduce(add, terms[place:whole:4], 0.0) for place in range(4)]
    for term in terms[whole:]:
        sums[0] += term
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


def row_sums(edges: Edges, shares: npt.NDArray[np.float64]) -> list[float]:
    """Add up runs of 128 edges; what is rounded off in that, which fractions tell exactly, goes with the last run."""
    weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
    found = []
    for start, stop in pairwise((edges.offsets - edges.offsets[0]).tolist()):
        terms = (weights[start:stop] * shares[edges.sources[start:stop]]).tolist()
        *runs, last = [four_sums(terms[first : first + 128]) for first in range(0, max(len(terms), 1), 128)]
        total, lost = 0.0, 0.0
        for run in runs:
            lost += float(Fraction(total) + Fraction(run) - Fraction(total + run))
            total += run
        found.append(total + (lost + last))
    return found


@settings(max_examples=50, deadline=None)
@given(
    counts=st.lists(st.integers(0, 30), max_size=30),
    vertices=st.integers(1, 50),
    weighted=st.booleans(),
    dtype=st.sampled_from([np.int32, np.int64]),
)
def test_sums_have_the_bits_of_the_stated_order(counts: list[int], vertices: int, weighted: bool, dtype: type) -> None:
    edges = edges_of(np.array(counts, np.int64), vertices, weighted=weighted, seed=vertices, dtype=dtype)
    shares = np.random.default_rng(1).random(vertices)
    assert pull(edges, shares).tolist() == row_sums(edges, shares)


@settings(max_examples=25, deadline=None)
@given(counts=st.lists(st.integers(0, 20), min_size=1, max_size=60), data=st.data())
def test_ranges_and_threads_give_the_same_bits(counts: list[int], data: st.DataObject) -> None:
    edges = edges_of(np.array(counts), 40, weighted=True, seed=3)
    shares = np.random.default_rng(1).random(40)
    expected = pull(edges, shares)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(counts)), max_size=4)))
    threads = data.draw(st.integers(1, 5))
    parts = [
        pull(edges.between(start, stop), shares, threads=threads) for start, stop in pairwise([0, *cuts, len(counts)])
    ]
    assert np.concatenate(parts).tobytes() == expected.tobytes()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_large_graphs_are_divided_among_threads(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(graph_folder, "RANGE_EDGES", 1000)
    counts = np.random.default_rng(4).zipf(1.6, 5000).clip(max=20_000) - 1
    edges = edges_of(counts, 3000, weighted=True, seed=5)
    shares = np.random.default_rng(6).random(3000)
    matrix = sparse.csr_array((edges.weights, edges.sources, edges.offsets), shape=(5000, 3000))
    found = pull(edges, shares, threads=threads)
    np.testing.assert_allclose(found, matrix @ shares, rtol=1e-12)
    monkeypatch.undo()
    assert found.tobytes() == pull(edges, shares).tobytes()


def test_edges_in_mapped_files_are_pulled_along_where_they_are(tmp_path: Path) -> None:
    edges = edges_of(np.array([9, 0, 5000]), 600, weighted=True, seed=0)
    assert edges.weights is not None
    arrays: dict[str, npt.NDArray[Any]] = {
        "offsets": edges.offsets, "sources": edges.sources, "weights": edges.weights
    }  # fmt: skip
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    mapped = Edges(*(np.asarray(np.load(tmp_path / f"{name}.npy", mmap_mode="r")) for name in arrays))
    shares = np.random.default_rng(1).random(600)
    assert pull(mapped, shares).tolist() == row_sums(edges, shares)
    assert pull(mapped.between(1, 3), shares).tolist() == row_sums(edges, shares)[1:]


def test_the_memory_of_the_cpu_is_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whitewater.engines.memory.available", lambda: 1000)
    assert Device().free_memory() == 1000
