"""The top vertices and links that lead to them from vertices of high rank, with places and names for a picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from whitewater.pagerank.graph_folder import GraphFolder

Integers = npt.NDArray[np.int64]
Places = npt.NDArray[np.float64]

# Links drawn to each top vertex, where there are at most so many of these: a picture, not a tangle.
_LINKS = {16: 3, 24: 2}
_ITERATIONS, _PUSHES = 300, 200
# How far vertices of other components are, as a multiple of the most that linked ones are.
_APART = 0.7
# How much more an axis may be stretched than the other to fill the rectangle.
_STRETCHED = 1.6
# Beside the diameters of two vertices, what is left between them.
_BETWEEN = 1.25


@dataclass(frozen=True)
class Neighbourhood:
    """The top vertices, then the others that link to them; links by their places among these."""

    vertices: Integers  # numbers; the first ``top`` by descending rank
    top: int
    source: Integers  # (links,), places in ``vertices``, as of ``target``
    target: Integers
    among: int  # links among the top vertices in all, drawn or not
    links: int  # that are drawn to each at most


def top_vertices(ranks: npt.NDArray[np.float64], count: int) -> Integers:
    """Return the numbers of the vertices of the highest ranks, the highest first; of equal ranks the lowest numbers."""
    count = min(count, len(ranks))
    if not count:
        return np.zeros(0, np.int64)
    chosen = np.flatnonzero(ranks >= np.partition(ranks, -count)[-count])
    return chosen[np.argsort(-ranks[chosen], kind="stable")][:count].astype(np.int64)


def find_neighbourhood(graph: GraphFolder, ranks: npt.NDArray[np.float64], *, top: int) -> Neighbourhood:
    """Return the top vertices, and the links to each from the vertices of the highest rank that link to it.

    Of the graph the in-edges of the top vertices only are read. ``ranks`` are float64 (vertices,), by number.
    """
    import pandas as pd

    shown = top_vertices(ranks, top)
    links = next((number for most, number in _LINKS.items() if len(shown) <= most), 1)
    sources, targets, among = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for vertex in shown.tolist():
        linking = np.asarray(graph.sources[graph.indptr[vertex] : graph.indptr[vertex + 1]], np.int64)
        linking = linking[linking != vertex]
        among += int(np.isin(shown, linking).sum())
        sources.append(linking[top_vertices(ranks[linking], links)])
        targets.append(np.full(len(sources[-1]), vertex))
    source, target = np.concatenate(sources), np.concatenate(targets)
    vertices = np.concatenate([shown, np.setdiff1d(source, shown)])
    source, target = (pd.Index(vertices).get_indexer(each).astype(np.int64) for each in (source, target))
    return Neighbourhood(vertices, len(shown), source, target, among, links)


def without_hosts(names: Sequence[str]) -> list[str]:
    """Return URLs without their scheme, and without the host where it is the same for all; letters not %-encoded.

    Names that are not all URLs are returned as they are.
    """
    if not all(re.match("https?://", name, re.IGNORECASE) for name in names):
        return list(names)
    parts = [urlsplit(name) for name in names]
    one_host = len({each.netloc for each in parts}) == 1 and len(parts) > 1
    return [
        unquote(f"{'' if one_host else each.netloc}{each.path}{f'?{each.query}' if each.query else ''}")
        for each in parts
    ]


def place_vertices(source: Integers, target: Integers, *, radius: Places, width: float, height: float) -> Places:
    """Return places (vertices, 2) within a rectangle from (0, 0); equal graphs give equal places.

    Their distances are as near as can be to those along the links, by majorization of the stress (E. Gansner, Y. Koren
    and S. North 2004, "Graph drawing by stress majorization"), begun on a circle. ``source`` and ``target`` are int64
    (links,); the radius of each vertex, float64 (vertices,), is in the unit of the rectangle, and vertices do not
    overlap where there is room.
    """
    if len(radius) < 2:
        return np.full((len(radius), 2), [width / 2, height / 2])
    places = _turned(_majorize(_distances(source, target, len(radius))))
    return _push_apart(_fit(places, radius, width=width, height=height), radius, width=width, height=height)


def _distances(source: Integers, target: Integers, vertices: int) -> Places:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    links = coo_array((np.ones(len(source)), (source, target)), shape=(vertices, vertices)).tocsr()
    found: Places = shortest_path(links, directed=False, unweighted=True)
    found[np.isinf(found)] = _APART * float(found[np.isfinite(found)].max()) + 2
    return found


def _majorize(distances: Places) -> Places:
    from scipy.spatial.distance import cdist

    angle = 2 * np.pi * np.arange(len(distances)) / len(distances)
    places: Places = np.stack([np.cos(angle), np.sin(angle)], axis=1) * distances.mean()
    weights = 1 / np.where(distances > 0, distances, 1) ** 2
    np.fill_diagonal(weights, 0)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    for _ in range(_ITERATIONS):
        apart = cdist(places, places)
        ratio = -weights * distances / np.where(apart > 0, apart, 1)
        np.fill_diagonal(ratio, -ratio.sum(axis=1))
        places = np.asarray(inverse @ (ratio @ places))
    return places


def _turned(places: Places) -> Places:
    """Turn places so that they are widest across."""
    centered = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)
    # An axis has no direction: its largest part is positive, so that rounding does not mirror the picture.
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    turned: Places = centered @ (axes * signs[:, np.newaxis]).T
    return turned


def _fit(places: Places, radius: Places, *, width: float, height: float) -> Places:
    """Enlarge places to the rectangle, and stretch them somewhat, with room for the vertices at its sides."""
    extent = np.maximum(np.ptp(places, axis=0), 1e-9 * np.ptp(places))
    scale = (np.array([width, height]) - 2 * float(radius.max())) / extent
    scale = np.minimum(scale, _STRETCHED * scale.min())
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    fitted: Places = np.array([width, height]) / 2 + (places - middle) * scale
    return fitted


def _push_apart(places: Places, radius: Places, *, width: float, height: float) -> Places:
    """Move vertices that overlap away from each other, and stay in the rectangle."""
    from scipy.spatial.distance import cdist

    wanted = (radius[:, np.newaxis] + radius[np.newaxis]) * _BETWEEN
    np.fill_diagonal(wanted, 0)
    low, high = radius[:, np.newaxis], np.array([width, height]) - radius[:, np.newaxis]
    # Those at one place part by their numbers.
    number = np.sign(np.arange(len(places))[:, np.newaxis] - np.arange(len(places)))
    for _ in range(_PUSHES):
        apart = cdist(places, places)
        overlap = np.maximum(wanted - apart, 0)
        if not overlap.any():
            break
        direction = (places[:, np.newaxis] - places[np.newaxis]) / np.where(apart > 0, apart, 1)[..., np.newaxis]
        direction[..., 0] = np.where(apart > 0, direction[..., 0], number)
        places = np.clip(places + (direction * (overlap / 2)[..., np.newaxis]).sum(axis=1) / 1.5, low, high)
    return places
