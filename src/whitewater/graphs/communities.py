"""Components and communities of a graph on the CPU, directions of edges left aside, by Numba kernels.

Components are found in one pass over the edges; the label of one is the smallest number of its vertices, so it depends
on no order: a root is only ever put under a smaller one (Tarjan: Efficiency of a Good But Not Linear Set Union
Algorithm, JACM 1975; path halving).

Communities are those of Leiden and Louvain by modularity (V. A. Traag, L. Waltman, N. J. van Eck: From Louvain to
Leiden: guaranteeing well-connected communities, Scientific Reports 9, 5233 (2019); V. D. Blondel, J.-L. Guillaume, R.
Lambiotte, E. Lefebvre: Fast unfolding of communities in large networks, J. Stat. Mech. P10008 (2008)). A vertex goes to
the best community, in both phases; only the order of vertices is random, by the seed. All sums are float64 and done in
one order, so that a seed gives the same communities everywhere.

To the kernels ``graph`` is offsets, neighbors and weights of rows, each edge in those of both its ends, a loop twice;
``strength``, float64 (vertices,), the sums of weights of its rows; ``share``, the resolution divided by the sum of all
strengths: a pair of vertices of strengths *a* and *b* is expected to have ``share * a * b`` in common (Newman:
Modularity and community structure in networks, 2006).
"""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy  # which imports `sparse` where it is used first

from whitewater.engines import Array
from whitewater.engines.kernel import kernel, part
from whitewater.graphs.graph_folder import Edges

Method = Literal["leiden", "louvain"]
Labels = npt.NDArray[np.int64]
Rows = tuple[Array, Array, Array]
# Leiden begins again from what it found, as its authors' implementation does.
_ROUNDS = {"leiden": 2, "louvain": 1}
# A vertex moves for a gain above this share of its strength: less may be rounding, which could go on for ever.
_LEAST_GAIN = 1e-10


class Groups(NamedTuple):
    """The component and the community of each vertex, int64 (vertices,), numbered by size; -1 if none were sought."""

    components: Labels
    communities: Labels
    modularity: float | None


def components(edges: Edges) -> Array:
    """Return the weakly connected component of each vertex, int64 (vertices,); see `numbered_by_size`."""
    parents = np.arange(edges.target_count)
    _unite(edges.offsets, edges.sources, parents)
    while not np.array_equal(parents, further := parents[parents]):
        parents = further
    return numbered_by_size(parents)


@kernel
def _unite(offsets: Array, sources: Array, parents: Array) -> None:
    """Unite the trees of the ends of each edge; ``parents``, int64 (vertices,), is changed."""
    for row in range(len(offsets) - 1):
        one = _find_root(parents, row)
        for edge in range(offsets[row], offsets[row + 1]):
            other = _find_root(parents, sources[edge])
            if other < one:
                parents[one] = other
                one = other
            else:
                parents[other] = one


@part
def _find_root(parents: Array, vertex: int) -> int:
    """Return the root of a vertex; those on the way to it are put under their grandparents."""
    current = vertex
    while parents[current] != current:
        parents[current] = parents[parents[current]]
        current = parents[current]
    return current


def numbered_by_size(labels: Labels) -> Labels:
    """Return labels renumbered by descending size of their group; groups of equal size by their first vertex."""
    _, first, inverse, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    numbers = np.empty(len(first), np.int64)
    numbers[np.lexsort((first, -sizes))] = np.arange(len(first))
    return numbers[inverse]


def modularity(edges: Edges, communities: Labels, *, resolution: float) -> float:
    """Return the modularity of communities, numbered from 0: at most 1; 0 for no edges. Edges count as undirected.

    *W* is the sum of all weights, ``inside[c]`` the sum for edges within community *c*, and ``strength[c]`` the sum of
    the weighted degrees of its vertices, where a self-loop counts twice::

        Q = sum over c of inside[c] / W - resolution * (strength[c] / (2 W)) ** 2

    Source: M. E. J. Newman: Modularity and community structure in networks, PNAS 103 (2006); resolution: J. Reichardt,
    S. Bornholdt: Statistical mechanics of community detection, Phys. Rev. E 74 (2006).
    """
    count = int(communities.max(initial=-1)) + 1
    source, target = communities[edges.sources], np.repeat(communities, np.diff(edges.offsets))
    weights = np.ones(len(source)) if edges.weights is None else edges.weights
    within = source == target
    inside = np.bincount(target[within], weights[within], minlength=count)
    strength = np.bincount(target, weights, minlength=count) + np.bincount(source, weights, minlength=count)
    total = strength.sum() / 2
    return float(np.sum(inside / total - resolution * (strength / (2 * total)) ** 2)) if total else 0.0


def communities_bytes(edges: Edges) -> int:
    """Return about the most bytes that communities take on the CPU: edges in both directions, and vertices.

    There are three graphs at once: the given one, one that is merged, and what it is merged into.
    """
    return 3 * 2 * len(edges.sources) * (edges.sources.itemsize + 8) + 120 * edges.target_count


def find_groups(edges: Edges, *, method: Method, resolution: float, seed: int) -> Groups:
    """Return the groups of vertices; ``edges`` are those of all vertices, and their directions do not count."""
    random = np.random.default_rng(seed)
    labels = np.arange(edges.target_count)
    if len(edges.sources):
        graph = _undirected(edges)
        for _ in range(_ROUNDS[method]):
            labels = _one_round(graph, labels, method=method, resolution=resolution, random=random)
        labels = numbered_by_size(labels)
    return Groups(components(edges), labels, modularity(edges, labels, resolution=resolution))


def _undirected(edges: Edges) -> "scipy.sparse.csr_array":
    """Return each edge in the rows of both its ends, a loop with twice its weight; ends that have several add up."""
    weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
    count = edges.target_count
    rows = scipy.sparse.csr_array((weights, edges.sources, edges.offsets), shape=(count, count))
    return rows + rows.T


def _one_round(
    graph: "scipy.sparse.csr_array", labels: Array, *, method: Method, resolution: float, random: np.random.Generator
) -> Array:
    """Move vertices, then what they were merged into, until nothing is merged any more."""
    strength = graph.sum(axis=1)
    share = resolution / strength.sum()
    member = np.arange(len(labels))
    while True:
        rows, vertices = (graph.indptr, graph.indices, graph.data), graph.shape[0]
        moved = labels.copy()
        move_vertices(rows, strength, share, random.permutation(vertices), moved)
        labels = parts = np.unique(moved, return_inverse=True)[1]
        if method == "leiden":
            refined = np.arange(vertices)
            refine(rows, (labels, strength), share, random.permutation(vertices), refined)
            parts = np.unique(refined, return_inverse=True)[1]
        if parts.max() + 1 == vertices:
            parts = labels
        member = parts[member]
        if parts.max() + 1 == vertices:
            return member
        # All vertices of a part have the same label.
        labels, graph = labels[np.unique(parts, return_index=True)[1]], _merged(graph, parts)
        strength = graph.sum(axis=1)


def _merged(graph: "scipy.sparse.csr_array", parts: Array) -> "scipy.sparse.csr_array":
    members = np.argsort(parts, kind="stable")
    count = int(parts.max()) + 1
    starts = np.concatenate([[0], np.cumsum(np.bincount(parts, minlength=count))])
    # SciPy's product with a matrix of members is a line, and takes as much memory as another graph.
    offsets, neighbors, weights = rows = np.zeros(count + 1, np.int64), *map(np.empty_like, (graph.indices, graph.data))
    entries = _merge((graph.indptr, graph.indices, graph.data), (members, starts), parts, rows)
    for array in (neighbors, weights):
        array.resize(entries, refcheck=False)
    return scipy.sparse.csr_array((weights, neighbors, offsets), shape=(count, count))


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
        expected = share * strength[vertex]
        stays = common[old] - expected * totals[old]
        # The old community is the best among equals, else the first that was met.
        best, gain = old, stays
        for place in range(count):
            label = touched[place]
            further = common[label] - expected * totals[label]
            if further > gain:
                best, gain = label, further
        if gain < 0 and sizes[old] > 1 and empties > 0:
            best, gain = empty[empties - 1], 0.0
        moves = best != old and gain > stays + _LEAST_GAIN * strength[vertex]
        new = best if moves else old
        common[touched[:count]] = 0.0
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
        # Within its community there is one label.
        _add_common(graph, communities, communities, vertex, (common, touched))
        outward[vertex], common[communities[vertex]] = common[communities[vertex]], 0.0
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
            common[touched[:count]] = 0.0


@kernel
def _merge(graph: Rows, grouped: tuple[Array, Array], parts: Array, merged: Rows) -> int:
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
