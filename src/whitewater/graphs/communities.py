"""Weakly connected components and communities of a graph, on the CPU. The direction of edges is ignored.

Components are found by union-find with path halving (Tarjan: Efficiency of a Good But Not Linear Set Union Algorithm,
JACM 1975). Communities are those of Leiden (Traag, Waltman, van Eck: From Louvain to Leiden: guaranteeing
well-connected communities, Scientific Reports 9, 5233 (2019)) or Louvain (Blondel, Guillaume, Lambiotte, Lefebvre: Fast
unfolding of communities in large networks, J. Stat. Mech. P10008 (2008)), by modularity. A vertex always moves to the
best community; only the order of the vertices is random. All sums are float64 and added in one order, so that a seed
gives the same communities everywhere.

In the kernels, ``graph`` is the offsets, neighbors and weights of a symmetric CSR matrix, with self-loops counted
twice; ``strength``, float64 (vertices,), is the sum of each row's weights; and ``share`` is the resolution divided by
the total strength: vertices of strengths *a* and *b* are expected to share the weight ``share * a * b`` (Newman:
Modularity and community structure in networks, 2006).
"""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy  # imports `sparse` lazily, at its first use

from whitewater.engines import Array
from whitewater.engines.kernel import kernel, part
from whitewater.graphs.graph_folder import Edges

Method = Literal["leiden", "louvain"]
Labels = npt.NDArray[np.int64]
Rows = tuple[Array, Array, Array]
# A vertex moves only for a gain above this share of its strength: a smaller one may be rounding, and moves never end.
_LEAST_GAIN = 1e-10


class Groups(NamedTuple):
    """The component and the community of each vertex, int64 (vertices,), numbered by size; -1 if not computed."""

    components: Labels
    communities: Labels
    modularity: float | None


def components(edges: Edges) -> Array:
    """Return the weakly connected component of each vertex, int64 (vertices,); see `number_by_size`."""
    parents = np.arange(edges.target_count)
    _unite(edges.offsets, edges.sources, parents)
    while not np.array_equal(parents, grandparents := parents[parents]):
        parents = grandparents
    return number_by_size(parents)


@kernel
def _unite(offsets: Array, sources: Array, parents: Array) -> None:
    """Unite the trees of the ends of each edge in ``parents``, int64 (vertices,). The smaller root becomes the root."""
    for target in range(len(offsets) - 1):
        root = _find_root(parents, target)
        for edge in range(offsets[target], offsets[target + 1]):
            source_root = _find_root(parents, sources[edge])
            if source_root < root:
                parents[root] = source_root
                root = source_root
            else:
                parents[source_root] = root


@part
def _find_root(parents: Array, vertex: int) -> int:
    """Return the root of a vertex; move the vertices on the way to it below their grandparents."""
    while parents[vertex] != vertex:
        parents[vertex] = parents[parents[vertex]]
        vertex = parents[vertex]
    return vertex


def number_by_size(labels: Labels) -> Labels:
    """Renumber groups by descending size; groups of equal size by their first vertex."""
    _, first, inverse, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    numbers = np.empty(len(first), np.int64)
    numbers[np.lexsort((first, -sizes))] = np.arange(len(first))
    return numbers[inverse]


def modularity(edges: Edges, communities: Labels, *, resolution: float) -> float:
    """Return the modularity of communities, at most 1; 0 without edges. Labels start at 0; edges count as undirected.

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
    """Estimate the peak memory of communities on the CPU, in bytes."""
    # Three symmetric graphs at once: the given one, the one being aggregated, and its result.
    return 3 * 2 * len(edges.sources) * (edges.sources.itemsize + 8) + 120 * edges.target_count


def find_groups(edges: Edges, *, method: Method, resolution: float, seed: int) -> Groups:
    """Find the components and communities of a graph; ``edges`` are the in-edges of all vertices."""
    random = np.random.default_rng(seed)
    labels = np.arange(edges.target_count)
    if len(edges.sources):
        weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
        rows = scipy.sparse.csr_array((weights, edges.sources, edges.offsets), shape=(len(labels), len(labels)))
        # Self-loops get twice their weight.
        graph = rows + rows.T
        # Leiden starts again from its result, as its authors' implementation does.
        for _ in range(2 if method == "leiden" else 1):
            labels = _run_round(graph, labels, method=method, resolution=resolution, random=random)
        labels = number_by_size(labels)
    return Groups(components(edges), labels, modularity(edges, labels, resolution=resolution))


def _run_round(
    graph: "scipy.sparse.csr_array", labels: Array, *, method: Method, resolution: float, random: np.random.Generator
) -> Array:
    """Move vertices and aggregate the graph by turns, until no vertices are merged."""
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
        labels, graph = labels[np.unique(parts, return_index=True)[1]], _aggregate(graph, parts)
        strength = graph.sum(axis=1)


def _aggregate(graph: "scipy.sparse.csr_array", parts: Array) -> "scipy.sparse.csr_array":
    members = np.argsort(parts, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(parts)))
    count = len(starts) - 1
    # A product with SciPy's matrix of members would need the memory of one more graph.
    offsets, neighbors, weights = rows = np.zeros(count + 1, np.int64), *map(np.empty_like, (graph.indices, graph.data))
    entries = _sum_parts((graph.indptr, graph.indices, graph.data), members, starts, parts, rows)
    for array in (neighbors, weights):
        array.resize(entries, refcheck=False)
    return scipy.sparse.csr_array((weights, neighbors, offsets), shape=(count, count))


@kernel
def move_vertices(graph: Rows, strength: Array, share: float, order: Array, labels: Array) -> None:
    """Move each vertex to the best community, in place: the fast local moving of Traag et al.

    After a move only the vertex's neighbors are visited again. ``labels``, int64 (vertices,), are the communities, from
    0 to below the number of vertices.
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
        # Among equals the old community is the best, else the first one.
        best, gain = old, stays
        for position in range(count):
            label = touched[position]
            new_gain = common[label] - expected * totals[label]
            if new_gain > gain:
                best, gain = label, new_gain
        if gain < 0 and sizes[old] > 1 and empties > 0:
            best, gain = empty[empties - 1], 0.0
        moves = best != old and gain > stays + _LEAST_GAIN * strength[vertex]
        new = best if moves else old
        common[touched[:count]] = 0.0
        totals[new] += strength[vertex]
        if moves:
            sizes[old] -= 1
            empties -= sizes[new] == 0
            sizes[new] += 1
            if sizes[old] == 0:
                empty[empties] = old
                empties += 1
            labels[vertex] = new
            left = _queue_neighbors(graph, labels, vertex, (queue, waiting), (first, left))


@part
def _add_common(graph: Rows, labels: Array, communities: Array | None, vertex: int, sums: tuple[Array, Array]) -> int:
    """Sum the weights between a vertex and each neighboring label, without self-loops; return the number of labels.

    ``sums`` are the sum of each label, and the labels that have one. If ``communities`` are given, only neighbors in
    the vertex's own community count.
    """
    offsets, neighbors, weights = graph
    common, touched = sums
    count = 0
    for entry in range(offsets[vertex], offsets[vertex + 1]):
        neighbor = neighbors[entry]
        label = labels[neighbor]
        # Numba resolves `is None` when it compiles, and makes two versions.
        if neighbor != vertex and (communities is None or communities[neighbor] == communities[vertex]):
            # Weights are above 0, so a sum of 0 means that the label is new.
            if common[label] == 0:
                touched[count] = label
                count += 1
            common[label] += weights[entry]
    return count


@part
def _queue_neighbors(
    graph: Rows, labels: Array, vertex: int, queues: tuple[Array, Array], ends: tuple[int, int]
) -> int:
    """Append the neighbors of a vertex that are in other communities to the queue; return its length."""
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
def refine(graph: Rows, vertex_data: tuple[Array, Array], share: float, order: Array, parts: Array) -> None:
    """Merge single vertices into connected parts of their communities, where both are well connected to the rest.

    ``vertex_data`` are the community and the strength of each vertex. ``parts``, int64 (vertices,), starts with each
    vertex by itself, and is changed.
    """
    communities, strength = vertex_data
    vertices = len(parts)
    totals, sizes, common = strength.copy(), np.ones(vertices, np.int64), np.zeros(vertices)
    community_totals, outward = np.zeros(vertices), np.zeros(vertices)
    touched = np.empty(vertices, np.int64)
    for vertex in range(vertices):
        community_totals[communities[vertex]] += strength[vertex]
        _add_common(graph, communities, communities, vertex, (common, touched))
        outward[vertex], common[communities[vertex]] = common[communities[vertex]], 0.0
    for vertex in order:
        own = parts[vertex]
        total = community_totals[communities[vertex]]
        if sizes[own] == 1 and outward[own] >= share * totals[own] * (total - totals[own]):
            count = _add_common(graph, parts, communities, vertex, (common, touched))
            best, highest_gain = own, _LEAST_GAIN * strength[vertex]
            for position in range(count):
                label = touched[position]
                gain = common[label] - share * strength[vertex] * totals[label]
                if gain > highest_gain and outward[label] >= share * totals[label] * (total - totals[label]):
                    best, highest_gain = label, gain
            if best != own:
                outward[best] += outward[own] - 2 * common[best]
                totals[best] += strength[vertex]
                sizes[best] += 1
                sizes[own] = 0
                parts[vertex] = best
            common[touched[:count]] = 0.0


@kernel
def _sum_parts(graph: Rows, members: Array, starts: Array, parts: Array, output: Rows) -> int:
    """Fill ``output`` with the graph of the parts; return its number of entries, at most that of the graph.

    ``members`` are the vertices ordered by part; those of part *p* start at ``starts[p]``.
    """
    offsets, neighbors, weights = graph
    new_offsets, new_neighbors, new_weights = output
    common = np.zeros(len(starts) - 1)
    entries = 0
    for part_number in range(len(starts) - 1):
        first_entry = entries
        for vertex in members[starts[part_number] : starts[part_number + 1]]:
            for entry in range(offsets[vertex], offsets[vertex + 1]):
                label = parts[neighbors[entry]]
                if common[label] == 0:
                    new_neighbors[entries] = label
                    entries += 1
                common[label] += weights[entry]
        for entry in range(first_entry, entries):
            new_weights[entry] = common[new_neighbors[entry]]
            common[new_neighbors[entry]] = 0.0
        new_offsets[part_number + 1] = entries
    return entries
