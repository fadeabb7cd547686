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
    from whitewater.graphs.graph_folder import GraphFolder

Integers = npt.NDArray[np.int64]
Places = npt.NDArray[np.float64]

# Links drawn to each top vertex, where there are at most so many of these: a picture, not a tangle.
_LINKS = {16: 3, 24: 2}
# Size of the ring of the top vertices, as a share of that of the others, and how much of a ring circles may take.
_INNER, _FILLED = 0.6, 0.9


@dataclass(frozen=True)
class Neighborhood:
    """The top vertices, then the others that link to them; links by their places among these."""

    vertices: Integers  # numbers; the first ``top`` by descending rank
    top: int
    source: Integers  # (links,), places in ``vertices``, as of ``target``
    target: Integers
    among: int  # links among the top vertices in all, drawn or not
    links: int  # that are drawn to each at most


def top_vertices(ranks: npt.NDArray[np.float64], count: int) -> Integers:
    """Return the numbers of the vertices of the highest ranks, the highest first; of equal ranks the lowest numbers."""
    import pandas as pd

    return pd.Series(ranks).nlargest(count).index.to_numpy(np.int64)


def find_neighborhood(graph: GraphFolder, ranks: npt.NDArray[np.float64], *, top: int) -> Neighborhood:
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
    return Neighborhood(vertices, len(shown), source, target, among, links)


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


def place_vertices(found: Neighborhood, *, width: float, height: float) -> tuple[Places, Places]:
    """Return places (vertices, 2) in a rectangle around (0, 0), and the largest radius that a circle may have at each.

    The top vertices are on a ring by their rank, clockwise from its top; around it are the others, in the order of the
    directions in which the vertices are that they link to. Equal neighborhoods give equal places.
    """
    others = len(found.vertices) - found.top
    turns = np.concatenate([np.arange(found.top) / max(found.top, 1), np.zeros(others)])
    toward = np.zeros(len(turns), complex)
    np.add.at(toward, found.source, np.exp(2j * np.pi * turns[found.target]))
    # Rounded, so that directions that are equal but for the last bit keep the order of the ranks.
    order = np.argsort(np.angle(toward[found.top :]).round(9) % (2 * np.pi), kind="stable")
    turns[found.top + order] = np.arange(others) / max(others, 1)
    inner = np.arange(len(turns)) < found.top
    within = _INNER if others else 1.0
    ring = np.where(inner, within if found.top > 1 else 0.0, 1.0)
    angle = 2 * np.pi * turns
    places = np.stack([np.sin(angle) * width, np.cos(angle) * height], axis=1) * ring[:, np.newaxis] / 2
    count = np.where(inner, found.top, others)
    # Neighbors on a ring of few are far apart, but the other ring is near.
    apart = np.minimum(np.sin(np.pi / np.maximum(count, 2)) * np.maximum(ring, _INNER), 1 - _INNER)
    return places, _FILLED * apart * min(width, height) / 2
