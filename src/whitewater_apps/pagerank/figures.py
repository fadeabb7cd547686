"""The pictures of the PageRank application: functions of arrays and summaries that return Matplotlib figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.figures import shapes, style
from whitewater.figures.shapes import Look
from whitewater_apps.pagerank.neighborhood import Integers, Neighborhood, place_vertices, without_hosts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

# Positions of ranks that are drawn; more could not be told apart.
_POINTS = 600
# Ranks that differ by less, relatively, are equal but for rounding.
_EQUAL = 1e-9
# A sum that is less has lost rank, and not by rounding.
_WHOLE = 1 - 1e-6
# What the first of all vertices have is marked, but at early positions, to whose left is no room for text.
_SHARES, _LEAST_MARKED = (0.01, 0.1), 10
# Bins in which the degree doubles.
_BINS_A_DOUBLING = 2
# The definition that asks for a number of iterations.
_FIXED = "graphalytics"
# So many components or communities have a bar each; of more, the distribution of the sizes is drawn.
_MOST_BARS = 24
_COLORS = (style.SKY_BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.YELLOW, style.VERMILION)
_OTHER = style.LIGHT_GRAY
# Radii in points, of the vertex of the highest rank and the least; numbers fit into those of top vertices.
_LARGEST, _LEAST_TOP, _LEAST = 19.0, 8.0, 3.0
# In inches: the widths of map and list, the height of the map at most, and that of a line of the list.
_MAP, _LIST, _TALLEST_MAP, _LINE = 5.2, 5.0, 6.4, 0.27
# Where the columns of the list are, in inches, and the size of its letters.
_NUMBER, _SHARE, _NAME, _NAME_SIZE = 0.22, 0.98, 1.12, 8.5


@style.styled
def ranks(values: Floats, *, convergence: Mapping[str, Any]) -> Figure:
    """Draw the ranks by position, both axes logarithmic, and the share of all rank that the first positions have.

    ``values`` are the ranks, float64 (vertices,), in any order; ``convergence`` is the content of `convergence.json`.
    """
    title = "PageRank by position"
    if len(values) < 2:
        one = "The graph has one vertex, which has all rank."
        return style.explained(title, one if len(values) else "The graph has no vertex.")
    ordered = np.sort(values)[::-1]
    total = float(ordered.sum())
    subtitle = (
        f"{style.count(len(ordered))} vertices, {style.count(convergence['edges'])} edges; definition "
        f"{convergence['definition']}, damping {convergence['damping']:g}. {_extremes(ordered)}"
    )
    lost = (
        f"The ranks add up to {total:.4g}: by this definition the rank of vertices without out-edges is lost. "
        "Shares are those of the sum."
    )
    figure, body = style.titled(9, 3.9, title=title, subtitle=subtitle, notes=[] if total > _WHOLE else [lost])
    left, right = body.subplots(1, 2)
    positions = shapes.log_spaced(len(ordered), _POINTS)
    _draw_ranks(left, positions, ordered)
    _draw_shares(right, positions, np.cumsum(ordered) / total)
    for axes in (left, right):
        axes.set(xscale="log", xlim=(0.8, len(ordered) * 1.25), xlabel="Position")
    return figure


def _extremes(ordered: Floats) -> str:
    if ordered[0] - ordered[-1] <= _EQUAL * ordered[0]:
        return "All ranks are equal."
    last = int((ordered <= ordered[-1] * (1 + _EQUAL)).sum())
    return f"The highest is {ordered[0] * len(ordered):.3g} times the mean; {style.count(last)} have the lowest."


def _draw_ranks(axes: Axes, positions: Integers, ordered: Floats) -> None:
    shown, mean = ordered[positions - 1], float(ordered.mean())
    axes.plot(positions, shown, color=style.BLUE, marker="o", markersize=2.5, linewidth=1, label="rank")
    shapes.draw_threshold(axes, mean, f"mean: {mean:.3g}")
    positive = shown[shown > 0]
    bounds = (min(positive.min(), mean) / 2, max(positive.max(), mean) * 2)
    axes.set(yscale="log", ylabel="Rank", ylim=bounds)
    axes.legend(loc="upper right")


def _draw_shares(axes: Axes, positions: Integers, cumulated: Floats) -> None:
    axes.plot(positions, cumulated[positions - 1], color=style.BLUE, label="of these ranks")
    equal = positions / len(cumulated)
    axes.plot(positions, equal, color=style.GRAY, linestyle=":", linewidth=1.4, label="of equal ranks")
    for share in _SHARES:
        position = round(share * len(cumulated))
        if position >= _LEAST_MARKED:
            height = float(cumulated[position - 1])
            axes.plot([position], [height], "o", color=style.VERMILION, markersize=5)
            text = f"first {100 * share:g} %: {style.percent(height)}"
            shapes.write_beside(axes, text, (position, height), (-5, 5), size=8.5, ha="right", color=style.BLACK)
    axes.set(ylabel="Share of all rank up to a position", ylim=(0, 1.05))
    axes.legend(loc="upper left")
    shapes.in_percent(axes.yaxis)


@style.styled
def degrees(in_degree: Integers, out_degree: Integers, *, counts: Mapping[str, Any]) -> Figure:
    """Draw the distributions of the degrees: in logarithmic bins, and how many vertices have at least so many.

    Vertices of degree 0 have no place on a logarithmic axis; they are counted in the legend. The degrees are int64
    (vertices,); ``counts`` is the content of `edges.json`: ``duplicates``, ``self_loops``.
    """
    title, vertices, edges = "In- and out-degrees", len(in_degree), int(in_degree.sum())
    if not edges:
        return style.explained(title, f"None of the {style.count(vertices)} vertices has an edge.")
    subtitle = (
        f"{style.count(vertices)} vertices, {style.count(edges)} edges: {edges / vertices:.3g} a vertex. Left: a point "
        "for each bin, which are of equal width on the axis; right: all degrees."
    )
    told = {"duplicates": "edges were merged with others of the same ends", "self_loops": "edges are self-loops"}
    found = "; ".join(f"{style.count(counts[name])} {what}" for name, what in told.items() if counts[name])
    figure, body = style.titled(9, 3.9, title=title, subtitle=subtitle, notes=[f"{found}."] if found else [])
    left, right = body.subplots(1, 2)
    for values, look in ((in_degree, Look("in", style.BLUE, "o")), (out_degree, Look("out", style.ORANGE, "s"))):
        none = float((values == 0).mean())
        without = f"{style.percent(none)} have none" if none else "each has some"
        label = f"{look.name}-degree: {without}, at most {style.count(int(values.max()))}"
        left.plot(*binned(values), color=look.color, marker=look.mark, linewidth=1, label=label)
        right.step(*at_least(values), where="pre", color=look.color, linewidth=1.5)
    left.set(title="Of a degree", xlabel="Degree", ylabel="Share of vertices")
    right.set(title="Of a degree or more", xlabel="Degree", ylabel="Share of vertices")
    most = max(10, int(in_degree.max()), int(out_degree.max()))
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlim=(0.8, most * 1.3))
        axes.margins(y=0.08)
    body.legend(handles=left.get_lines(), loc="outside upper left", ncols=2)
    return figure


def binned(values: Integers) -> tuple[Floats, Floats]:
    """Return the middle of each logarithmic bin that has vertices, and their share by degree; those of 0 are in none.

    A bin holds whole degrees, from an edge to before the next, and its share is divided by how many those are, so that
    a power law is a straight line (M. Newman 2005, "Power laws, Pareto distributions and Zipf's law", section II.A).
    """
    most = int(values.max(initial=1))
    doublings = np.arange(0, _BINS_A_DOUBLING * (np.log2(most) + 1) + 1) / _BINS_A_DOUBLING
    edges = np.unique(np.ceil(np.exp2(doublings) - 1e-9).astype(np.int64))
    counts = np.add.reduceat(np.bincount(values, minlength=edges[-1]), edges[:-1])
    middle = np.sqrt(edges[:-1] * (edges[1:] - 1.0))
    used = counts > 0
    return middle[used], (counts / np.diff(edges) / len(values))[used]


def at_least(values: Integers) -> tuple[Integers, Floats]:
    """Return each degree above 0 that occurs, and the share of the vertices that have at least so many."""
    counts = np.bincount(values)[1:]
    occurring = np.flatnonzero(counts) + 1
    return occurring, np.cumsum(counts[::-1])[::-1][occurring - 1] / len(values)


@style.styled
def convergence(found: Mapping[str, Any]) -> Figure:
    """Draw the change of the ranks in each iteration, and the bound on their distance to the exact ones.

    ``found`` is the content of `convergence.json`.
    """
    title, log = "How the ranks converged", found["log"]
    if not log:
        why = "none was asked for" if found["vertices"] else "the graph has no vertex"
        return style.explained(title, f"There was no iteration: {why}.")
    change, bound = (np.array([each[name] for each in log], dtype=float) for name in ("l1_change", "error_bound"))
    fixed, number = found["definition"] == _FIXED, style.counted(len(log), "iteration")
    outcome = (
        f"The definition asks for exactly {number}, converged or not."
        if fixed
        else f"After {number} the exact ranks are within {found['error_bound']:.2g}."
    )
    subtitle = (
        f"Definition {found['definition']}, damping {found['damping']:g}; {style.count(found['vertices'])} vertices, "
        f"{style.count(found['edges'])} edges. {outcome}"
    )
    zeros = style.counted(int((change == 0).sum()), "iteration")
    lacking = [] if change.all() else [
        f"Not shown, for want of a place on a logarithmic axis: {zeros} without any change."
    ]  # fmt: skip
    figure, body = style.titled(9, 3.7, title=title, subtitle=subtitle, notes=lacking)
    axes = body.subplots()
    iterations = np.array([each["iteration"] for each in log])
    for values, look in (
        (bound, Look("bound on the distance to the exact ranks", style.BLUE, "s")),
        (change, Look("change in an iteration", style.ORANGE, "o")),
    ):
        points, label = (iterations[values > 0], values[values > 0]), f"{look.name} (L1)"
        axes.plot(*points, color=look.color, marker=look.mark, markersize=3.5, label=label)
    if not fixed:
        shapes.draw_threshold(axes, found["tolerance"], f"tolerance: {found['tolerance']:g}")
    axes.set(yscale="log", xlabel="Iteration", ylabel="L1 norm", xlim=(0.5, len(log) + 0.5))
    shapes.limit_ticks(axes.xaxis, 12, integer=True, min_n_ticks=1)
    if not change.any():
        axes.text(0.5, 0.5, "The first ranks were exact.", transform=axes.transAxes, ha="center", color=style.TEXT_GRAY)
    axes.legend(loc="best")
    return figure


@style.styled
def communities(found: Mapping[str, Any], *, vertices: int) -> Figure:
    """Draw the sizes of the weakly connected components and of the communities: bars, or points where there are many.

    ``found`` is the content of `communities.json`.
    """
    title, components, groups = "Components and communities", found["components"], found["communities"]
    if not vertices:
        return style.explained(title, "The graph has no vertex.")
    subtitle = (
        f"{style.count(vertices)} vertices; the largest weakly connected component has "
        f"{style.count(components['largest'])} of them ({style.percent(components['largest'] / vertices)})."
    )
    if groups["method"] != "none" and groups["modularity"] is not None:
        subtitle += f" Communities by {groups['method'].capitalize()}, modularity {groups['modularity']:.3f}."
    figure, body = style.titled(9, 3.7, title=title, subtitle=subtitle)
    left, right = body.subplots(1, 2)
    _draw_sizes(left, components, vertices=vertices, what="component", color=style.SKY_BLUE)
    if groups["method"] != "none":
        _draw_sizes(right, groups, vertices=vertices, what="community", color=style.GREEN)
    else:
        style.explain(right, "No communities were sought:", "pagerank.communities.method is none.")
    return figure


def _draw_sizes(axes: Axes, found: Mapping[str, Any], *, vertices: int, what: str, color: str) -> None:
    axes.set_title(style.counted(found["count"], what))
    if found["count"] <= _MOST_BARS:
        _draw_bars(axes, found["sizes"], color)
        axes.set(xlabel=what.capitalize(), ylabel="Vertices")
        return
    sizes, counts = np.array(sorted(map(tuple, found["size_counts"])), dtype=float).reshape(-1, 2).T
    axes.plot(sizes, counts, "o", color=color, markeredgecolor="white", markeredgewidth=0.4, markersize=6)
    several = style.counted(2, what).removeprefix("2 ").capitalize()
    axes.set(xscale="log", yscale="log", xlim=(0.7, vertices * 1.4), ylim=(0.7, counts.max() * 1.6))
    axes.set(xlabel=f"Vertices of a {what}", ylabel=f"{several} of that size")


def _draw_bars(axes: Axes, sizes: Sequence[int], color: str) -> None:
    few = len(sizes) <= 12
    axes.bar(range(len(sizes)), sizes, 0.75, color=color)
    for number, size in enumerate(sizes):
        shapes.write_beside(
            axes, style.short_count(size), (number, size), (0, 2), ha="center", va="bottom", size=7.5,
            rotation=0 if few else 90, color=style.BLACK,
        )  # fmt: skip
    axes.set(xticks=range(0, len(sizes), 1 if few else 3), xlim=(-1, max(4, len(sizes))), ylim=(0, max(sizes) * 1.18))
    axes.xaxis.set_major_formatter("{x:.0f}")
    shapes.limit_ticks(axes.yaxis, 6, integer=True, min_n_ticks=1)
    axes.grid(visible=False, axis="x")


@style.styled
def neighborhood(
    found: Neighborhood, *, names: Sequence[str], ranks: Floats, community: Integers, total: float
) -> Figure:
    """Draw the neighborhood: sizes by rank, colors by community, the top vertices numbered and listed by name.

    ``names`` are those of the top vertices; ``ranks`` and ``community`` float64 and int64 (drawn vertices,), -1 where
    there are no communities; ``total`` is the sum of all ranks of the graph.
    """
    title = "The top of the ranking and links to it"
    if not found.top:
        return style.explained(title, "The graph has no vertex.")
    points = 72 * (_LIST - _NAME - 0.1)
    short = [style.fitted(name, points=points, size=_NAME_SIZE) for name in without_hosts(names)]
    colors, entries = _community_colors(community)
    height = max(4.2, _LINE * (found.top + (len(entries) + 1.4 if entries else 0) + 1.2))
    missing = any(style.NO_LETTER in name for name in short)
    notes = [f"{style.NO_LETTER}: a letter that the font of the pictures lacks."] if missing else []
    subtitle = _what_is_drawn(found, style.percent(float(ranks[: found.top].sum()) / total))
    figure, body = style.titled(_MAP + _LIST, height, title=title, subtitle=subtitle, notes=notes)
    left, right = body.subplots(1, 2, width_ratios=(_MAP, _LIST))
    width, depth = 72 * (_MAP - 0.4), 72 * (min(height, _TALLEST_MAP) - 0.4)
    places, room = place_vertices(found, width=width - 2 * _LARGEST, height=depth - 2 * _LARGEST)
    radius = _radii(ranks, room, top=found.top)
    left.set(xlim=(-width / 2, width / 2), ylim=(-depth / 2, depth / 2), aspect="equal", anchor="N")
    _draw_graph(left, found, places, radius, colors)
    right.set(xlim=(0, _LIST - 0.2), ylim=(height / _LINE - 0.5, -0.8))
    _write_list(right, short, [style.percent(rank / total) for rank in ranks[: found.top].tolist()], colors)
    for row, (name, color) in enumerate(entries.items()):
        _draw_circle(right, _NUMBER, found.top + 1 + row, 5, color)
        _write(right, _NUMBER + 0.2, found.top + 1 + row, name, ha="left", color=style.TEXT_GRAY)
    for axes in (left, right):
        axes.set_axis_off()
    return figure


def _what_is_drawn(found: Neighborhood, share: str) -> str:
    drawn, others = len(found.source), len(found.vertices) - found.top
    first = f"Numbered: the {found.top} highest, which have {share} of all rank. "
    if not drawn:
        return first + "No other vertex links to them."
    between = int((found.source < found.top).sum())
    parts = [f"{between} of the {style.counted(found.among, 'link')} among them"] if between else []
    parts += [f"{style.counted(drawn - between, 'link')} from others"] if others else []
    return (
        f"{first}An arrow is a link. To each of them at most {found.links} are drawn, from the highest vertices that "
        f"link to it: {' and '.join(parts)}. The larger, the higher the rank."
    )


def _radii(ranks: Floats, room: Floats, *, top: int) -> Floats:
    """Return the radius of each vertex in points: areas grow with ranks, but each can be seen and has its own room."""
    relative = ranks / max(float(ranks.max()), np.finfo(float).tiny)
    least = np.where(np.arange(len(ranks)) < top, _LEAST_TOP, _LEAST)
    return np.minimum(np.maximum(_LARGEST * np.sqrt(relative), least), room)


def _community_colors(community: Integers) -> tuple[list[str], dict[str, str]]:
    """Return the color of each vertex, and what the colors mean; those of the first vertices have their own.

    Where there is none to tell apart, all have one color, which means nothing.
    """
    drawn = list(dict.fromkeys(community.tolist()))
    if drawn == [-1]:
        return [_COLORS[0]] * len(community), {}
    own = dict(zip(drawn, _COLORS, strict=False))
    entries = {f"community {number}": color for number, color in own.items()}
    if len(drawn) > len(own):
        entries["other communities"] = _OTHER
    return [own.get(number, _OTHER) for number in community.tolist()], entries


def _draw_graph(axes: Axes, found: Neighborhood, places: Floats, radius: Floats, colors: Sequence[str]) -> None:
    from matplotlib.patches import FancyArrowPatch

    for source, target in zip(found.source.tolist(), found.target.tolist(), strict=True):
        axes.add_patch(
            FancyArrowPatch(
                places[source], places[target], arrowstyle="-|>", mutation_scale=8, linewidth=0.8,
                color=style.TEXT_GRAY, alpha=0.75, connectionstyle="arc3,rad=0.1", shrinkA=radius[source],
                shrinkB=radius[target] + 1, zorder=1,
            )
        )  # fmt: skip
    for vertex, (x, y) in enumerate(places.tolist()):
        number = str(vertex + 1) if vertex < found.top else ""
        _draw_circle(axes, x, y, radius[vertex], colors[vertex], number=number)


def _draw_circle(axes: Axes, x: float, y: float, radius: float, color: str, *, number: str = "") -> None:
    axes.plot(
        [x], [y], "o", markersize=2 * radius, color=color, markeredgecolor=style.TEXT_GRAY, markeredgewidth=0.6,
        zorder=2, clip_on=False,
    )  # fmt: skip
    if number:
        axes.text(x, y, number, ha="center", va="center", size=8, weight="bold", zorder=3)


def _write_list(axes: Axes, names: Sequence[str], shares: Sequence[str], colors: Sequence[str]) -> None:
    _write(axes, _SHARE, -0.55, "rank", ha="right", color=style.TEXT_GRAY)
    _write(axes, _NAME, -0.55, "name", ha="left", color=style.TEXT_GRAY)
    for row, (name, share) in enumerate(zip(names, shares, strict=True)):
        _draw_circle(axes, _NUMBER, row + 0.4, _LEAST_TOP, colors[row], number=str(row + 1))
        _write(axes, _SHARE, row + 0.4, share, ha="right")
        _write(axes, _NAME, row + 0.4, name, ha="left")


def _write(axes: Axes, x: float, y: float, text: str, **look: Any) -> None:
    axes.text(x, y, text, va="center", size=_NAME_SIZE, **look)
