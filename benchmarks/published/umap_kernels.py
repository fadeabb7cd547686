"""UMAP of a matrix in memory on threads: exact neighbours, fuzzy graph, and the layout, by compiled kernels.

The method is that of Leland McInnes, John Healy and James Melville, "UMAP: Uniform Manifold Approximation and
Projection for Dimension Reduction", 2018, https://arxiv.org/abs/1802.03426, with the defaults of umap-learn: the
neighbours of a point include itself, 500 epochs up to 10,000 points and else 200, 5 repulsions for an attraction, both
ends of an edge are moved. It differs in these: neighbours are exact, from products of blocks of the matrix; the forces
are looked up in tables by the bits of the squared distance; threads lay out a part of the edges each. As umap-learn
without a seed does, they move points that others read, so that no two maps are the same.
"""

from __future__ import annotations

from concurrent.futures import Executor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.devices.kernel import int64, kernel, part, uint64

Floats = npt.NDArray[np.float32]
Int32s = npt.NDArray[np.int32]
Edges = tuple[Int32s, Int32s, Floats]
# Rows whose distances to all others are held at once, by each thread.
BLOCK_ROWS = 256
BISECTIONS, BISECTED = 64, 1e-5
LEAST_SCALE = 1e-3
NEGATIVES = 5
# Largest step along an axis.
MOST = 4.0
# Epochs after which threads wait for each other.
EPOCHS_AT_ONCE = 10
# Bits of a float32 below those that are an index of the tables: 128 entries to an octave, and linear between them.
SHIFT, REST = 16, 65_536
ENTRIES = 1 << 15
# The entry of the largest numbers that are finite.
LARGEST = np.uint32(0x7F7F)
MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407


def nearest_neighbours(values: Floats, *, neighbours: int, pool: Executor) -> tuple[Int32s, Floats]:
    """Return numbers and Euclidean distances of the nearest rows, nearest first, each row itself being its first.

    Which rows are nearest is told in float32, of values less their mean; their distances are computed in float64.
    """
    centred = values - values.mean(axis=0, dtype=np.float64).astype(np.float32)
    lengths = np.einsum("ij,ij->i", centred, centred)
    numbers = np.empty((len(values), neighbours), np.int32)
    distances = np.empty((len(values), neighbours), np.float32)

    def search(first: int) -> None:
        rows = slice(first, min(first + BLOCK_ROWS, len(values)))
        products = centred[rows] @ centred.T
        find_nearest(products, lengths, centred, first, (numbers[rows], distances[rows]))

    list(pool.map(search, range(0, len(values), BLOCK_ROWS)))
    return numbers, distances


@kernel
def find_nearest(products: Any, lengths: Any, values: Any, first: int, found: tuple[Any, Any]) -> None:
    """Fill ``found``, numbers and distances, for rows from ``first`` on, whose products with all rows are given."""
    numbers, distances = found
    rows, count = products.shape
    neighbours = numbers.shape[1]
    best = np.empty(neighbours, np.float32)
    for row in range(rows):
        best[:] = np.inf
        best[0] = -np.inf
        numbers[row, 0] = first + row
        for other in range(count):
            score = lengths[other] - np.float32(2) * products[row, other]
            if score < best[neighbours - 1] and other != first + row:
                place = neighbours - 1
                while place > 1 and best[place - 1] > score:
                    best[place] = best[place - 1]
                    numbers[row, place] = numbers[row, place - 1]
                    place -= 1
                best[place] = score
                numbers[row, place] = other
        for place in range(neighbours):
            total = 0.0
            for column in range(values.shape[1]):
                apart = np.float64(values[first + row, column]) - values[numbers[row, place], column]
                total += apart * apart
            distances[row, place] = np.sqrt(total)


def fuzzy_graph(numbers: Int32s, distances: Floats) -> Any:
    """Return the fuzzy union of the neighbourhoods of all points, a symmetric `scipy.sparse.csr_array` of float32."""
    from scipy.sparse import coo_array

    count, neighbours = numbers.shape
    weights = np.empty((count, neighbours), np.float32)
    fill_memberships(distances, np.log2(neighbours), float(distances.mean()), weights)
    rows = np.repeat(np.arange(count, dtype=np.int32), neighbours)
    directed = coo_array((weights.reshape(-1), (rows, numbers.reshape(-1))), shape=(count, count)).tocsr()
    opposite = directed.T.tocsr()
    union = (directed + opposite - directed.multiply(opposite)).tocsr()
    union.eliminate_zeros()
    return union


@part
def scale_of(distances: Any, nearest: float, target: float) -> float:
    """Return the scale with which the memberships of a point's neighbours add up to ``target``, by bisection."""
    low, high, scale = 0.0, np.inf, 1.0
    for _ in range(BISECTIONS):
        reached = 0.0
        for place in range(1, len(distances)):
            reached += np.exp(-max(distances[place] - nearest, 0.0) / scale)
        if abs(reached - target) < BISECTED:
            break
        if reached > target:
            high = scale
        else:
            low = scale
        scale = 2 * scale if high == np.inf else (low + high) / 2
    return scale


@kernel
def fill_memberships(distances: Any, target: float, mean: float, weights: Any) -> None:
    """Fill ``weights`` with the membership of each neighbour; the sum over a point's neighbours is ``target``."""
    rows, neighbours = distances.shape
    for row in range(rows):
        nearest, total = 0.0, 0.0
        for place in range(neighbours):
            total += distances[row, place]
            if nearest == 0:
                nearest = np.float64(distances[row, place])
        scale = scale_of(distances[row], nearest, target)
        scale = max(scale, LEAST_SCALE * (total / neighbours if nearest > 0 else mean))
        weights[row, 0] = 0
        for place in range(1, neighbours):
            weights[row, place] = np.exp(-max(distances[row, place] - nearest, 0.0) / scale)


def lay_out(graph: Any, places: Floats, *, a: float, b: float, seed: int, threads: int, pool: Executor) -> Floats:
    """Move points to where the edges of a graph and chance repulsions put them; ``places``, (points, 2), is changed."""
    epochs = 500 if len(places) <= 10_000 else 200
    ends = graph.tocoo()
    kept = ends.data >= ends.data.max() / epochs
    head, tail = ends.row[kept].astype(np.int32), ends.col[kept].astype(np.int32)
    period = (ends.data.max() / ends.data[kept]).astype(np.float32)
    cuts = np.linspace(0, len(head), threads + 1).astype(np.int64)
    shares = [slice(start, stop) for start, stop in pairwise(cuts)]
    due = [np.stack([period[share], period[share] / NEGATIVES]) for share in shares]
    state = np.random.default_rng(seed).integers(1, 2**63, (threads, 1), np.uint64)
    tables = force_tables(a, b)

    def move(first: int, number: int) -> None:
        share, stop = shares[number], min(first + EPOCHS_AT_ONCE, epochs)
        edges = head[share], tail[share], period[share]
        move_points(places, edges, (due[number], state[number]), tables, (first, stop, epochs))

    for first in range(0, epochs, EPOCHS_AT_ONCE):
        list(pool.map(partial(move, first), range(threads)))
    return places


def force_tables(a: float, b: float) -> Floats:
    """Return attraction and repulsion by the leading bits of the squared distance, float32 (2, `ENTRIES` + 1)."""
    leading = np.minimum(np.arange(ENTRIES + 1, dtype=np.uint32), LARGEST)
    squared = (leading << np.uint32(SHIFT)).view(np.float32).astype(np.float64)
    with np.errstate(divide="ignore"):
        attraction = -2 * a * b * squared ** (b - 1) / (a * squared**b + 1)
    repulsion = 2 * b / ((0.001 + squared) * (a * squared**b + 1))
    tables = np.stack([attraction, repulsion])
    # Points in the same place: no direction to move in.
    tables[:, 0] = tables[:, 1]
    return tables.astype(np.float32)


@part
def force(table: Any, squared: Any) -> Any:
    """Return the force at a squared distance, float32."""
    bits = np.float32(squared).view(np.int32)
    entry, rest = bits >> SHIFT, bits & (REST - 1)
    return table[entry] + (table[entry + 1] - table[entry]) * np.float32(rest) * np.float32(1 / REST)


@part
def step(along: Any) -> Any:
    """Return a step along an axis, float32, at most `MOST`."""
    return min(max(along, np.float32(-MOST)), np.float32(MOST))


@kernel
def move_points(places: Any, edges: Any, state: Any, tables: Any, span: tuple[int, int, int]) -> None:
    """Go through the edges once an epoch, and move the ends of those that are due.

    Parameters
    ----------
    places
        float32 (points, 2); changed, and read while other threads change it.
    edges
        Their two ends, int32, and the epochs after which each is due again, float32 (edges,).
    state
        The epoch in which each is due next, and its repulsions: float32 (2, edges); and that of the random numbers:
        uint64 (1,). Both are changed.
    tables
        See `force_tables`.
    span
        The first epoch, the one after the last, and how many there are in all.
    """
    head, tail, period = edges
    due, random_state = state
    first, stop, epochs = span
    points = uint64(len(places))
    random = random_state[0]
    for epoch in range(first, stop):
        rate = np.float32(1 - epoch / epochs)
        for edge in range(len(head)):
            if due[0, edge] > epoch:
                continue
            one, two = head[edge], tail[edge]
            x, y = places[one, 0], places[one, 1]
            apart_x, apart_y = x - places[two, 0], y - places[two, 1]
            pull = force(tables[0], apart_x * apart_x + apart_y * apart_y)
            move_x, move_y = step(pull * apart_x) * rate, step(pull * apart_y) * rate
            x, y = x + move_x, y + move_y
            places[two, 0] -= move_x
            places[two, 1] -= move_y
            due[0, edge] += period[edge]
            repulsions = int64((epoch - due[1, edge]) * NEGATIVES / period[edge])
            for _ in range(repulsions):
                random = random * uint64(MULTIPLIER) + uint64(INCREMENT)
                other = int64(((random >> uint64(32)) * points) >> uint64(32))
                if other == one:
                    continue
                apart_x, apart_y = x - places[other, 0], y - places[other, 1]
                push = force(tables[1], apart_x * apart_x + apart_y * apart_y)
                x += step(push * apart_x) * rate
                y += step(push * apart_y) * rate
            places[one, 0], places[one, 1] = x, y
            due[1, edge] += repulsions * period[edge] / NEGATIVES
    random_state[0] = random
