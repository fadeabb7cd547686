"""The top vertices and links that lead to them from vertices of high rank: a drawn graph, and a list of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater import style
from whitewater.lettering import NO_LETTER
from whitewater.pagerank.figures.layout import Places, place_vertices
from whitewater.pagerank.figures.names import shown_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from whitewater.pagerank.graph_folder import GraphFolder

_TITLE = "The top of the ranking and links to it"
# Links drawn to each top vertex, where there are at most so many of these: a picture, not a tangle.
_LINKS = {16: 3, 24: 2}
_COLOURS = (style.SKY_BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.YELLOW, style.VERMILION)
_OTHER = style.LIGHT_GREY
# Radii in points, of the vertex of the highest rank and the least; numbers fit into those of top vertices.
_LARGEST, _LEAST_TOP, _LEAST = 19.0, 8.0, 3.0
# Share of the map that circles take at most, so that there is room for arrows.
_FILLED = 0.08
_MAP, _LIST = 5.2, 5.0
_TALLEST_MAP = 6.4
_LINE = 0.27
_NAME_SIZE = 8.5
_NUMBER, _SHARE, _NAME = 0.22, 0.98, 1.12


@dataclass(frozen=True)
class Neighbourhood:
    """The top vertices, then the others that link to them; links by their places among these.

    Attributes
    ----------
    vertices
        int64 (some vertices,): numbers; the first ``top`` by descending rank.
    top
        How many top vertices there are.
    source, target
        int64 (links,): places in ``vertices``.
    among
        Links among the top vertices in all, drawn or not.
    links
        How many are drawn to each at most.
    """

    vertices: npt.NDArray[np.int64]
    top: int
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    among: int
    links: int


def top_vertices(ranks: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the vertices of the highest ranks, the highest first; of equal ranks the lowest numbers."""
    if count < len(ranks):
        least = np.partition(ranks, len(ranks) - count)[len(ranks) - count]
        above, equal = np.flatnonzero(ranks > least), np.flatnonzero(ranks == least)
        chosen = np.sort(np.concatenate([above, equal[: count - len(above)]]))
    else:
        chosen = np.arange(len(ranks))
    return chosen[np.argsort(-ranks[chosen], kind="stable")].astype(np.int64)


def find_neighbourhood(graph: GraphFolder, ranks: npt.NDArray[np.float64], *, top: int) -> Neighbourhood:
    """Return the top vertices, and the links to each from the vertices of the highest rank that link to it.

    Parameters
    ----------
    graph
        Its in-edges are read of the top vertices only.
    ranks
        float64 (vertices,), by number.
    top
        How many vertices, if there are as many.
    """
    shown = top_vertices(ranks, top)
    links = next((number for most, number in _LINKS.items() if len(shown) <= most), 1)
    sources, targets, among = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for vertex in shown.tolist():
        linking = np.asarray(graph.sources[graph.indptr[vertex] : graph.indptr[vertex + 1]], np.int64)
        linking = linking[linking != vertex]
        among += int(np.isin(shown, linking).sum())
        best = linking[top_vertices(ranks[linking], links)]
        sources.append(best)
        targets.append(np.full(len(best), vertex))
    source, target = np.concatenate(sources), np.concatenate(targets)
    others = np.setdiff1d(source, shown)
    vertices = np.concatenate([shown, others])
    order = np.argsort(vertices)
    source, target = (order[np.searchsorted(vertices, each, sorter=order)] for each in (source, target))
    return Neighbourhood(vertices, len(shown), source, target, among, links)


@style.styled
def neighbourhood(
    found: Neighbourhood,
    *,
    names: Sequence[str],
    ranks: npt.NDArray[np.float64],
    community: npt.NDArray[np.int64],
    total: float,
) -> Figure:
    """Draw the neighbourhood: sizes by rank, colours by community, the top vertices numbered and listed by name.

    Parameters
    ----------
    found
        What is drawn.
    names
        Of the top vertices.
    ranks
        float64 (drawn vertices,).
    community
        int64 (drawn vertices,), -1 where there are none.
    total
        The sum of all ranks of the graph.
    """
    if not found.top:
        return style.explained(_TITLE, "The graph has no vertex.")
    short = shown_names(names, points=72 * (_LIST - _NAME - 0.1), size=_NAME_SIZE)
    colours, entries = _community_colours(community)
    lines = found.top + (len(entries) + 1.4 if entries else 0)
    height = max(4.2, _LINE * (lines + 1.2))
    figure, body = style.titled(
        _MAP + _LIST, height, title=_TITLE, subtitle=_told(found, ranks, total), notes=_notes(short)
    )
    left, right = body.subplots(1, 2, width_ratios=(_MAP, _LIST))
    width, depth = 72 * (_MAP - 0.4), 72 * (min(height, _TALLEST_MAP) - 0.4)
    radius = _radii(ranks, top=found.top, area=_FILLED * width * depth)
    places = place_vertices(found.source, found.target, radius=radius, width=width, height=depth)
    left.set(xlim=(0, width), ylim=(0, depth), aspect="equal", anchor="N")
    _draw_links(left, found, places, radius)
    _draw_vertices(left, places, radius, colours, top=found.top)
    right.set(xlim=(0, _LIST - 0.2), ylim=(height / _LINE - 0.5, -0.8))
    _write_list(right, short, ranks[: found.top] / total, colours)
    _write_communities(right, entries, first=found.top + 1.0)
    for axes in (left, right):
        axes.set_axis_off()
    return figure


def _told(found: Neighbourhood, ranks: npt.NDArray[np.float64], total: float) -> str:
    drawn, others = len(found.source), len(found.vertices) - found.top
    share = style.percent(float(ranks[: found.top].sum()) / total)
    between = int((found.source < found.top).sum())
    text = f"The {found.top} vertices of the highest rank have {share} of all. "
    if not drawn:
        return text + "No other vertex links to them."
    parts = [f"{between} of the {found.among} among them"] if between else []
    parts += [f"{drawn - between} from {others} without a number"] if others else []
    several = f"links from the {found.links} vertices of the highest rank that link"
    links = "link from the vertex of the highest rank that links" if found.links == 1 else several
    return f"{text}Arrows: to each of them the {links} to it, {' and '.join(parts)}. Areas grow with the rank."


def _notes(names: Sequence[str]) -> list[str]:
    missing = any(NO_LETTER in name for name in names)
    return [f"{NO_LETTER}: a letter that the font of the pictures lacks."] if missing else []


def _radii(ranks: npt.NDArray[np.float64], *, top: int, area: float) -> Places:
    """Return the radius of each vertex in points: areas are proportional to ranks, but none is too small to be seen."""
    relative = ranks / max(float(ranks.max()), np.finfo(float).tiny)
    largest = min(_LARGEST, float(np.sqrt(area / np.pi / max(float(relative.sum()), 1))))
    least = np.where(np.arange(len(ranks)) < top, _LEAST_TOP, _LEAST)
    radii: Places = np.maximum(largest * np.sqrt(relative), least)
    return radii


def _community_colours(community: npt.NDArray[np.int64]) -> tuple[list[str], dict[str, str]]:
    """Return the colour of each vertex, and what the colours mean; those of the first vertices have their own.

    Where there is none to tell apart, all have one colour, which means nothing.
    """
    drawn = list(dict.fromkeys(community.tolist()))
    if drawn == [-1]:
        return [_COLOURS[0]] * len(community), {}
    own = dict(zip(drawn, _COLOURS, strict=False))
    entries = {f"community {number}": colour for number, colour in own.items()}
    if len(drawn) > len(own):
        entries["other communities"] = _OTHER
    return [own.get(number, _OTHER) for number in community.tolist()], entries


def _draw_links(axes: Axes, found: Neighbourhood, places: Places, radius: Places) -> None:
    from matplotlib.patches import FancyArrowPatch

    for source, target in zip(found.source.tolist(), found.target.tolist(), strict=True):
        start, end = places[source].tolist(), places[target].tolist()
        axes.add_patch(
            FancyArrowPatch(
                (start[0], start[1]), (end[0], end[1]), arrowstyle="-|>", mutation_scale=8, linewidth=0.8,
                color=style.TEXT_GREY, alpha=0.75, connectionstyle="arc3,rad=0.1", shrinkA=radius[source],
                shrinkB=radius[target] + 1, zorder=1,
            )
        )  # fmt: skip


def _draw_vertices(axes: Axes, places: Places, radius: Places, colours: Sequence[str], *, top: int) -> None:
    for vertex in range(len(places)):
        _draw_circle(axes, places[vertex], radius[vertex], colours[vertex])
    for vertex in range(top):
        x, y = places[vertex].tolist()
        axes.text(x, y, str(vertex + 1), ha="center", va="center", size=8, weight="bold", zorder=3)


def _draw_circle(axes: Axes, place: Places, radius: float, colour: str) -> None:
    axes.plot(
        [place[0]], [place[1]], "o", markersize=2 * radius, color=colour, markeredgecolor=style.TEXT_GREY,
        markeredgewidth=0.6, zorder=2, clip_on=False,
    )  # fmt: skip


def _write_list(axes: Axes, names: Sequence[str], shares: npt.NDArray[np.float64], colours: Sequence[str]) -> None:
    axes.text(_SHARE, -0.55, "rank", ha="right", va="center", size=_NAME_SIZE, color=style.TEXT_GREY)
    axes.text(_NAME, -0.55, "name", ha="left", va="center", size=_NAME_SIZE, color=style.TEXT_GREY)
    for row, (name, share) in enumerate(zip(names, shares.tolist(), strict=True)):
        _draw_circle(axes, np.array([_NUMBER, row + 0.4]), _LEAST_TOP, colours[row])
        axes.text(_NUMBER, row + 0.4, str(row + 1), ha="center", va="center", size=8, weight="bold", zorder=3)
        axes.text(_SHARE, row + 0.4, style.percent(share), ha="right", va="center", size=_NAME_SIZE)
        written = axes.text(_NAME, row + 0.4, name, ha="left", va="center", size=_NAME_SIZE)
        # Names are data: a dollar sign begins no formula.
        written.set_parse_math(False)


def _write_communities(axes: Axes, entries: Mapping[str, str], *, first: float) -> None:
    for row, (name, colour) in enumerate(entries.items()):
        _draw_circle(axes, np.array([_NUMBER, first + row]), 5, colour)
        axes.text(_NUMBER + 0.2, first + row, name, ha="left", va="center", size=_NAME_SIZE, color=style.TEXT_GREY)
