"""Vertices move to where they gain, until none does."""

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from whitewater.graphs.communities import move_vertices

Matrix = npt.NDArray[np.float64]


def modularity(matrix: Matrix, labels: npt.NDArray[np.int64], resolution: float) -> float:
    """Return the modularity by its definition, over all pairs of vertices."""
    total, strength = matrix.sum(), matrix.sum(axis=1)
    same = labels[:, None] == labels
    return float(((matrix / total - resolution * np.outer(strength, strength) / total**2) * same).sum())


@settings(max_examples=40, deadline=None)
@given(
    vertices=st.integers(2, 15),
    density=st.floats(0.1, 0.6),
    resolution=st.floats(0.2, 4),
    together=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_each_round_gains_until_no_vertex_gains_by_another_community_or_one_of_its_own(
    vertices: int, density: float, resolution: float, together: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    one_way = random.uniform(0.5, 2, (vertices, vertices)) * (random.random((vertices, vertices)) < density)
    one_way[0, 1] = 1
    matrix = one_way + one_way.T
    rows = sparse.csr_array(matrix)
    strength = matrix.sum(axis=1)
    labels = np.zeros(vertices, np.int64) if together else np.arange(vertices)
    before = modularity(matrix, labels, resolution)
    graph = (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)
    best = before
    while True:
        # Whoever has no neighbor that moved looks again only when it begins anew, though communities have grown.
        previous = labels.copy()
        move_vertices(graph, strength, resolution / strength.sum(), random.permutation(vertices), labels)
        if (labels == previous).all():
            break
        before, best = best, modularity(matrix, labels, resolution)
        assert best > before
    unused = np.setdiff1d(np.arange(vertices + 1), labels)[0]
    for vertex in range(vertices):
        for label in {*labels.tolist(), int(unused)}:
            moved = labels.copy()
            moved[vertex] = label
            assert modularity(matrix, moved, resolution) <= best + 1e-9
