"""The kernels of `whitewater.graphs.communities` for the CPU.

``graph`` is offsets, neighbors and weights of rows, each edge in those of both its ends, a loop twice; ``strength``,
float64 (vertices,), the sums of weights of its rows; ``share``, the resolution divided by the sum of all strengths: a
pair of vertices of strengths *a* and *b* is expected to have ``share * a * b`` in common (Newman: Modularity and
community structure in networks, 2006).
"""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import kernel, part

Rows = tuple[Array, Array, Array]
# A vertex moves for a gain above this share of its strength: less may be rounding, which could go on for ever.
_LEAST_GAIN = 1e-10


@kernel
def move_vertices(graph: Rows, strength: Array, share: float, order: Array, labels: Array) -> None:
    """Move vertices to the community that gains most; neighbors of one that moved look again.

    The fast local moving of Traag et al.: others do not look again, although communities have grown or shrunk.

    ``labels``, int64 (vertices,), are communities from 0 to below the number of vertices, and are changed.
    """
    vertices = len(labels)
    totals, common = np.zeros(vertices), np.zeros(vertices)
    touched, queue = np.empty(vertices, np.int64), order.copy()
    waiting, sizes = np.ones(vertices, np.bool_), np.zeros(vertices, np.int64)
    for vertex in range(vertices):
        totals[labels[vertex]] += strength[vertex]
        sizes[labels[vertex]] += 1
    empty, empties = np.empty(vertices, np.int64), vertices - np.count_nonzero(sizes)
    empty[:empties] = np.flatnonzero(sizes == 0)
    first, left = 0, vertices
    while left > 0:
        vertex = queue[first]
        first, left = (first + 1) % vertices, left - 1
        waiting[vertex] = False
        old = labels[vertex]
        totals[old] -= strength[vertex]
        count = _add_common(graph, labels, None, vertex, (common, touched))
        best = _best(common, touched[:count], totals, share * strength[vertex], old)
        stays = common[old] - share * strength[vertex] * totals[old]
        gain = common[best] - share * strength[vertex] * totals[best]
        if gain < 0 and sizes[old] > 1 and empties > 0:
            best, gain = empty[empties - 1], 0.0
        moves = best != old and gain > stays + _LEAST_GAIN * strength[vertex]
        new = best if moves else old
        _clear(common, touched[:count])
        totals[new] += strength[vertex]
        if moves:
            sizes[old] -= 1
            # The place of an empty community that is filled is free for one that becomes empty.
            empties -= sizes[new] == 0
            sizes[new] += 1
            if sizes[old] == 0:
                empty[empties] = old
                empties += 1
            labels[vertex] = new
            left = _queue_neighbors(graph, labels, vertex, (queue, waiting), (first, left))


@part
def _add_common(graph: Rows, labels: Array, within: Array | None, vertex: int, sums: tuple[Array, Array]) -> int:
    """Add up the weights between a vertex and each label near it, but for loops; return how many labels there are.

    ``within``, if given, are communities: only neighbors of the vertex's own count. ``sums`` are those of each label,
    and the labels that have one.
    """
    offsets, neighbors, weights = graph
    common, touched = sums
    count = 0
    for entry in range(offsets[vertex], offsets[vertex + 1]):
        neighbor = neighbors[entry]
        label = labels[neighbor]
        # Numba resolves whether there are communities when it compiles: there are two versions.
        if neighbor != vertex and (within is None or within[neighbor] == within[vertex]):
            # Weights are above 0, so that 0 says that the community is new here.
            if common[label] == 0:
                touched[count] = label
                count += 1
            common[label] += weights[entry]
    return count


@part
def _best(common: Array, touched: Array, totals: Array, expected: float, old: int) -> int:
    """Return the community of the largest gain, the old one among equals, else the first that was met."""
    best, most = old, common[old] - expected * totals[old]
    for place in range(len(touched)):
        label = touched[place]
        gain = common[label] - expected * totals[label]
        if gain > most:
            best, most = label, gain
    return best


@part
def _clear(common: Array, touched: Array) -> None:
    for place in range(len(touched)):
        common[touched[place]] = 0.0


@part
def _queue_neighbors(
    graph: Rows, labels: Array, vertex: int, queues: tuple[Array, Array], ends: tuple[int, int]
) -> int:
    """Put the neighbors of a vertex that are in other communities at the end of the queue; return its length."""
    offsets, neighbors, _ = graph
    queue, waiting = queues
    first, left = ends
    for entry in range(offsets[vertex], offsets[vertex + 1]):
        neighbor = neighbors[entry]
        if not waiting[neighbor] and labels[neighbor] != labels[vertex]:
            queue[(first + left) % len(queue)] = neighbor
            waiting[neighbor] = True
            left += 1
    return left


@kernel
def refine(graph: Rows, found: tuple[Array, Array], share: float, order: Array, parts: Array) -> None:
    """Merge single vertices into connected parts of their communities, where both are well connected to the rest.

    ``found`` is the communities and ``strength``; ``parts``, int64 (vertices,), is each vertex by itself before.
    """
    communities, strength = found
    vertices = len(parts)
    totals, sizes, common = strength.copy(), np.ones(vertices, np.int64), np.zeros(vertices)
    of_communities, outward = np.zeros(vertices), np.zeros(vertices)
    touched = np.empty(vertices, np.int64)
    for vertex in range(vertices):
        of_communities[communities[vertex]] += strength[vertex]
        outward[vertex] = _inside(graph, communities, vertex)
    for place in range(vertices):
        vertex = order[place]
        own, community = parts[vertex], communities[vertex]
        whole = of_communities[community]
        if sizes[own] == 1 and outward[own] >= share * totals[own] * (whole - totals[own]):
            count = _add_common(graph, parts, communities, vertex, (common, touched))
            best, most = own, _LEAST_GAIN * strength[vertex]
            for near in range(count):
                label = touched[near]
                gain = common[label] - share * strength[vertex] * totals[label]
                if gain > most and outward[label] >= share * totals[label] * (whole - totals[label]):
                    best, most = label, gain
            if best != own:
                outward[best] += outward[own] - 2 * common[best]
                totals[best] += strength[vertex]
                sizes[best] += 1
                sizes[own] = 0
                parts[vertex] = best
            _clear(common, touched[:count])


@part
def _inside(graph: Rows, communities: Array, vertex: int) -> float:
    """Return the sum of the weights between a vertex and the others of its community."""
    offsets, neighbors, weights = graph
    total = 0.0
    for entry in range(offsets[vertex], offsets[vertex + 1]):
        neighbor = neighbors[entry]
        if neighbor != vertex and communities[neighbor] == communities[vertex]:
            total += weights[entry]
    return total


@kernel
def merge(graph: Rows, grouped: tuple[Array, Array], parts: Array, merged: Rows) -> int:
    """Fill ``merged`` with the graph of the parts; return the number of its entries, which is not above the graph's.

    ``grouped`` is the vertices by part, and where each part begins in them.
    """
    offsets, neighbors, weights = graph
    members, starts = grouped
    merged_offsets, merged_neighbors, merged_weights = merged
    common = np.zeros(len(starts) - 1)
    entries = 0
    for group in range(len(starts) - 1):
        begin = entries
        for place in range(starts[group], starts[group + 1]):
            vertex = members[place]
            for entry in range(offsets[vertex], offsets[vertex + 1]):
                near = parts[neighbors[entry]]
                if common[near] == 0:
                    merged_neighbors[entries] = near
                    entries += 1
                common[near] += weights[entry]
        for entry in range(begin, entries):
            merged_weights[entry] = common[merged_neighbors[entry]]
            common[merged_neighbors[entry]] = 0.0
        merged_offsets[group + 1] = entries
    return entries
