"""Places for the vertices of a small graph: near where they are linked, and never on each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.float64]

_ITERATIONS = 300
_PUSHES = 200
# How far vertices of other components are, as a multiple of the most that linked ones are.
_APART = 0.7
# How much more an axis may be stretched than the other to fill the rectangle.
_STRETCHED = 1.6
# Beside the diameters of two vertices, what is left between them.
_BETWEEN = 1.25


def place_vertices(
    source: npt.NDArray[np.int64],
    target: npt.NDArray[np.int64],
    *,
    radius: Places,
    width: float,
    height: float,
) -> Places:
    """Return places (vertices, 2) within a rectangle from (0, 0); equal graphs give equal places.

    Their distances are as near as can be to those along the links, by majorization of the stress (E. Gansner, Y. Koren
    and S. North 2004, "Graph drawing by stress majorization"), begun on a circle.

    Parameters
    ----------
    source, target
        int64 (links,): numbers of vertices.
    radius
        float64 (vertices,): of each vertex, in the unit of the rectangle; they do not overlap where there is room.
    width, height
        Of the rectangle.
    """
    vertices = len(radius)
    if vertices < 2:
        return np.full((vertices, 2), [width / 2, height / 2])
    places = _majorize(_distances(source, target, vertices))
    places = _fit(_turned(places), radius, width=width, height=height)
    return _push_apart(places, radius, width=width, height=height)


def _distances(source: npt.NDArray[np.int64], target: npt.NDArray[np.int64], vertices: int) -> Places:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    links = coo_array((np.ones(len(source)), (source, target)), shape=(vertices, vertices)).tocsr()
    found: Places = shortest_path(links, directed=False, unweighted=True)
    reached = np.isfinite(found)
    apart = _APART * float(found[reached].max()) + 2
    result: Places = np.where(reached, found, apart)
    return result


def _majorize(distances: Places) -> Places:
    vertices = len(distances)
    angle = 2 * np.pi * np.arange(vertices) / vertices
    places: Places = np.stack([np.cos(angle), np.sin(angle)], axis=1) * distances.mean()
    weights = 1 / np.where(distances > 0, distances, 1) ** 2
    np.fill_diagonal(weights, 0)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    for _ in range(_ITERATIONS):
        apart = _lengths(places)
        ratio = -weights * distances / np.where(apart > 0, apart, 1)
        np.fill_diagonal(ratio, -ratio.sum(axis=1))
        places = np.asarray(inverse @ (ratio @ places))
    return places


def _lengths(places: Places) -> Places:
    between = places[:, np.newaxis] - places[np.newaxis]
    lengths: Places = np.sqrt((between**2).sum(axis=2))
    return lengths


def _turned(places: Places) -> Places:
    """Turn places so that they are widest across."""
    centred = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    # An axis has no direction: its largest part is positive, so that rounding does not mirror the picture.
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    turned: Places = centred @ (axes * signs[:, np.newaxis]).T
    return turned


def _fit(places: Places, radius: Places, *, width: float, height: float) -> Places:
    """Enlarge places to the rectangle, and stretch them somewhat, with room for the vertices at its sides."""
    size = np.array([width, height]) - 2 * float(radius.max())
    extent = np.maximum(np.ptp(places, axis=0), 1e-9 * np.ptp(places))
    scale = size / extent
    scale = np.minimum(scale, _STRETCHED * scale.min())
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    fitted: Places = np.array([width, height]) / 2 + (places - middle) * scale
    return fitted


def _push_apart(places: Places, radius: Places, *, width: float, height: float) -> Places:
    """Move vertices that overlap away from each other, and stay in the rectangle."""
    wanted = (radius[:, np.newaxis] + radius[np.newaxis]) * _BETWEEN
    np.fill_diagonal(wanted, 0)
    low, high = radius[:, np.newaxis], np.array([width, height]) - radius[:, np.newaxis]
    for _ in range(_PUSHES):
        apart = _lengths(places)
        overlap = np.maximum(wanted - apart, 0)
        if not overlap.any():
            break
        direction = (places[:, np.newaxis] - places[np.newaxis]) / np.where(apart > 0, apart, 1)[..., np.newaxis]
        # Those at one place part by their numbers.
        number = np.sign(np.arange(len(places))[:, np.newaxis] - np.arange(len(places)))
        direction[..., 0] = np.where(apart > 0, direction[..., 0], number)
        places = np.clip(places + (direction * (overlap / 2)[..., np.newaxis]).sum(axis=1) / 1.5, low, high)
    return places
