"""How many links vertices have, to them and from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "In- and out-degrees"
# Bins in which the degree doubles.
_BINS_A_DOUBLING = 2


@style.styled
def degrees(
    in_degree: npt.NDArray[np.int64], out_degree: npt.NDArray[np.int64], *, counts: Mapping[str, Any]
) -> Figure:
    """Draw the distributions of the degrees: in logarithmic bins, and how many vertices have at least so many.

    Vertices of degree 0 have no place on a logarithmic axis; they are counted in the legend.

    Parameters
    ----------
    in_degree, out_degree
        int64 (vertices,).
    counts
        The content of `edges.json`: ``duplicates``, ``self_loops``.
    """
    vertices, edges = len(in_degree), int(in_degree.sum())
    if not edges:
        return style.explained(_TITLE, f"None of the {style.count(vertices)} vertices has an edge.")
    subtitle = (
        f"{style.count(vertices)} vertices, {style.count(edges)} edges: {edges / vertices:.3g} a vertex. Left: a point "
        "for each bin, which are of equal width on the axis; right: all degrees."
    )
    figure, body = style.titled(9, 3.9, title=_TITLE, subtitle=subtitle, notes=_notes(counts))
    left, right = body.subplots(1, 2)
    for values, name, colour, mark in (
        (in_degree, "in", style.BLUE, "o"),
        (out_degree, "out", style.ORANGE, "s"),
    ):
        degree, density = binned(values)
        left.plot(degree, density, color=colour, marker=mark, linewidth=1, label=_label(values, name))
        at, share = at_least(values)
        right.step(at, share, where="pre", color=colour, linewidth=1.5)
    left.set(xlabel="Degree", ylabel="Share of vertices, a degree")
    right.set(xlabel="Degree", ylabel="Share of vertices with at least so many")
    for axes in (left, right):
        _scale(axes, most=int(max(in_degree.max(), out_degree.max())))
    body.legend(handles=left.get_lines(), loc="outside upper left", ncols=2)
    return figure


def _notes(counts: Mapping[str, Any]) -> list[str]:
    told = {"duplicates": "edges were merged with others of the same ends", "self_loops": "edges are self-loops"}
    found = [f"{style.count(counts[name])} {what}" for name, what in told.items() if counts[name]]
    return [f"{'; '.join(found)}."] if found else []


def binned(values: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the middle of each logarithmic bin that has vertices, and their share by degree; those of 0 are in none.

    A bin holds whole degrees, from an edge to before the next, and its share is divided by how many those are, so that
    a power law is a straight line (M. Newman 2005, "Power laws, Pareto distributions and Zipf's law", section II.A).
    """
    most = int(values.max(initial=1))
    doublings = np.arange(0, _BINS_A_DOUBLING * (np.log2(most) + 1) + 1) / _BINS_A_DOUBLING
    edges = np.unique(np.ceil(np.exp2(doublings) - 1e-9).astype(np.int64))
    counts = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)[1:-1]
    width = np.diff(edges)
    middle = np.sqrt(edges[:-1] * (edges[1:] - 1.0))
    used = counts > 0
    return middle[used], (counts / width / len(values))[used]


def at_least(values: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return each degree above 0 that occurs, and the share of the vertices that have at least so many."""
    counts = np.bincount(values)
    from_top = np.cumsum(counts[::-1])[::-1]
    occurring = np.flatnonzero(counts)
    occurring = occurring[occurring > 0]
    return occurring, from_top[occurring] / len(values)


def _label(values: npt.NDArray[np.int64], name: str) -> str:
    none = float((values == 0).mean())
    without = f"{style.percent(none)} have none" if none else "each has some"
    return f"{name}-degree: {without}, at most {style.count(int(values.max()))}"


def _scale(axes: Axes, *, most: int) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(0.8, max(10, most) * 1.3)
    axes.margins(y=0.08)
