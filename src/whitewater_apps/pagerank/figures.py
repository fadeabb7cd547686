"""Figures of the PageRank application, drawn from arrays and summaries with Matplotlib."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from whitewater import lazy_pandas as pd
from whitewater.figures import shapes, style, words
from whitewater.figures.shapes import Look
from whitewater.graphs.graph_folder import GraphFolder

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# A smaller relative difference between ranks is rounding.
_EQUAL = 1e-9
_COLORS = (style.SKY_BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.YELLOW, style.VERMILION)
_OTHER = style.LIGHT_GRAY
# Radii of vertices in points. A top vertex has room for its number.
_LARGEST, _SMALLEST_TOP, _SMALLEST = 19.0, 8.0, 3.0
# In inches: width of map and list, maximum height of the map, and height of a line of the list.
_MAP, _LIST, _TALLEST_MAP, _LINE = 5.2, 5.0, 6.4, 0.27
# Positions of the columns of the list in inches, and its font size in points.
_NUMBER, _SHARE, _NAME, _NAME_SIZE = 0.22, 0.98, 1.12, 8.5
# Links drawn to each top vertex, for up to 16 and up to 24 top vertices: more would be a tangle.
_LINKS = {16: 3, 24: 2}
# Size of the inner ring relative to the outer one, and the share of a ring that circles may fill.
_INNER, _FILLED = 0.6, 0.9


@style.with_style
def ranks(values: Floats, *, convergence: Mapping[str, Any]) -> Figure:
    """Draw the ranks by position on logarithmic axes, and the cumulative share of all rank.

    ``values`` are the ranks, float64 (vertices,); ``convergence`` is the content of `convergence.json`.
    """
    title = "PageRank by position"
    if len(values) == 1:
        return style.text_figure(title, "The graph has one vertex, which has all rank.")
    ordered = np.sort(values)[::-1]
    total = float(ordered.sum())
    lowest = int((ordered <= ordered[-1] * (1 + _EQUAL)).sum())
    extremes = f"The highest is {ordered[0] * len(ordered):.3g} times the mean; {words.count(lowest)} have the lowest."
    if ordered[0] - ordered[-1] <= _EQUAL * ordered[0]:
        extremes = "All ranks are equal."
    subtitle = (
        f"{words.count(len(ordered))} vertices, {words.count(convergence['edges'])} edges; definition "
        f"{convergence['definition']}, damping {convergence['damping']:g}. {extremes}"
    )
    lost = (
        f"The ranks add up to {total:.4g}: by this definition the rank of vertices without out-edges is lost. "
        "Shares are those of the sum."
    )
    figure, body = style.new_figure(9, 3.9, title=title, subtitle=subtitle, notes=[lost] if total < 1 - 1e-6 else [])
    left, right = body.subplots(1, 2)
    positions = shapes.log_spaced(len(ordered), 600)  # more points would not be visible
    curve, mean = ordered[positions - 1], float(ordered.mean())
    left.plot(positions, curve, color=style.BLUE, marker="o", markersize=2.5, linewidth=1, label="rank")
    shapes.draw_threshold(left, mean, f"mean: {mean:.3g}")
    positive = curve[curve > 0]
    left.set(yscale="log", ylabel="Rank", ylim=(min(positive.min(), mean) / 2, max(positive.max(), mean) * 2))
    left.legend(loc="upper right")
    _draw_shares(right, positions, np.cumsum(ordered) / total)
    for axes in (left, right):
        axes.set(xscale="log", xlim=(0.8, len(ordered) * 1.25), xlabel="Position")
    return figure


def _draw_shares(axes: Axes, positions: Integers, cumulated: Floats) -> None:
    axes.plot(positions, cumulated[positions - 1], color=style.BLUE, label="of these ranks")
    equal = positions / len(cumulated)
    axes.plot(positions, equal, color=style.GRAY, linestyle=":", linewidth=1.4, label="of equal ranks")
    for share in (0.01, 0.1):
        position = round(share * len(cumulated))
        if position >= 10:  # else there is no room for the label
            height = float(cumulated[position - 1])
            axes.plot([position], [height], "o", color=style.VERMILION, markersize=5)
            text = f"first {100 * share:g} %: {words.percent(height)}"
            shapes.write_beside(axes, text, (position, height), (-5, 5), size=8.5, ha="right", color=style.BLACK)
    axes.set(ylabel="Share of all rank up to a position", ylim=(0, 1.05))
    axes.legend(loc="upper left")
    shapes.in_percent(axes.yaxis)


@style.with_style
def degrees(in_degree: Integers, out_degree: Integers, *, counts: Mapping[str, Any]) -> Figure:
    """Draw the distributions of the degrees: in logarithmic bins, and cumulative from the highest degree.

    The degrees are int64 (vertices,); ``counts`` is the content of `edges.json`. The legend counts vertices of degree
    0, which a logarithmic axis cannot show.
    """
    title, vertices, edges = "In- and out-degrees", len(in_degree), int(in_degree.sum())
    if not edges:
        return style.text_figure(title, f"None of the {words.count(vertices)} vertices has an edge.")
    subtitle = (
        f"{words.count(vertices)} vertices, {words.count(edges)} edges: {edges / vertices:.3g} a vertex. Left: a point "
        "for each bin, which are of equal width on the axis; right: all degrees."
    )
    texts = {"duplicates": "edges were merged with others of the same ends", "self_loops": "edges are self-loops"}
    note = "; ".join(f"{words.count(counts[name])} {text}" for name, text in texts.items() if counts[name])
    figure, body = style.new_figure(9, 3.9, title=title, subtitle=subtitle, notes=[f"{note}."] if note else [])
    left, right = body.subplots(1, 2)
    for values, look in ((in_degree, Look("in", style.BLUE, "o")), (out_degree, Look("out", style.ORANGE, "s"))):
        share = float((values == 0).mean())
        zeros = f"{words.percent(share)} have none" if share else "each has some"
        label = f"{look.name}-degree: {zeros}, at most {words.count(int(values.max()))}"
        left.plot(*binned(values), color=look.color, marker=look.mark, linewidth=1, label=label)
        right.step(*at_least(values), where="pre", color=look.color, linewidth=1.5)
    left.set(title="Of a degree", xlabel="Degree", ylabel="Share of vertices")
    right.set(title="Of a degree or more", xlabel="Degree", ylabel="Share of vertices")
    highest = max(10, int(in_degree.max()), int(out_degree.max()))
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlim=(0.8, highest * 1.3))
        axes.margins(y=0.08)
    body.legend(handles=left.get_lines(), loc="outside upper left", ncols=2)
    return figure


def binned(values: Integers) -> tuple[Floats, Floats]:
    """Return the middle of each nonempty logarithmic bin, and its share of vertices per degree, without degree 0.

    Shares are divided by the number of degrees in the bin, so that a power law is a straight line (M. Newman 2005,
    "Power laws, Pareto distributions and Zipf's law", section II.A).
    """
    highest = int(values.max(initial=1))
    doublings = np.arange(0, 2 * (np.log2(highest) + 1) + 1) / 2  # two bins per doubling
    edges = np.unique(np.ceil(np.exp2(doublings) - 1e-9).astype(np.int64))
    counts = np.add.reduceat(np.bincount(values, minlength=edges[-1]), edges[:-1])
    middle = np.sqrt(edges[:-1] * (edges[1:] - 1.0))
    used = counts > 0
    return middle[used], (counts / np.diff(edges) / len(values))[used]


def at_least(values: Integers) -> tuple[Integers, Floats]:
    """Return the distinct degrees above 0, and the share of vertices with at least that degree."""
    counts = np.bincount(values)[1:]
    distinct = np.flatnonzero(counts) + 1
    return distinct, np.cumsum(counts[::-1])[::-1][distinct - 1] / len(values)


@style.with_style
def convergence(summary: Mapping[str, Any]) -> Figure:
    """Draw the change of the ranks per iteration, and their error bound, from `convergence.json`."""
    title, log = "How the ranks converged", summary["log"]
    if not log:
        return style.text_figure(title, "There was no iteration: none was asked for.")
    change, bound = (np.array([step[name] for step in log], dtype=float) for name in ("l1_change", "error_bound"))
    fixed_count, count = summary["definition"] == "graphalytics", words.pluralize(len(log), "iteration")
    outcome = (
        f"The definition asks for exactly {count}, converged or not."
        if fixed_count
        else f"After {count} the exact ranks are within {summary['error_bound']:.2g}."
    )
    subtitle = (
        f"Definition {summary['definition']}, damping {summary['damping']:g}; {words.count(summary['vertices'])} "
        f"vertices, {words.count(summary['edges'])} edges. {outcome}"
    )
    zeros = words.pluralize(int((change == 0).sum()), "iteration")
    notes = [] if change.all() else [
        f"Not shown, for want of a place on a logarithmic axis: {zeros} without any change."
    ]  # fmt: skip
    figure, body = style.new_figure(9, 3.7, title=title, subtitle=subtitle, notes=notes)
    axes = body.subplots()
    numbers = np.array([step["iteration"] for step in log])
    for values, look in (
        (bound, Look("bound on the distance to the exact ranks (L1)", style.BLUE, "s")),
        (change, Look("change in an iteration (L1)", style.ORANGE, "o")),
    ):
        shown = values > 0
        axes.plot(numbers[shown], values[shown], color=look.color, marker=look.mark, markersize=3.5, label=look.name)
    if not fixed_count:
        shapes.draw_threshold(axes, summary["tolerance"], f"tolerance: {summary['tolerance']:g}")
    axes.set(yscale="log", xlabel="Iteration", ylabel="L1 norm", xlim=(0.5, len(log) + 0.5))
    shapes.limit_ticks(axes.xaxis, 12, integer=True, min_n_ticks=1)
    if not change.any():
        axes.text(0.5, 0.5, "The first ranks were exact.", transform=axes.transAxes, ha="center", color=style.TEXT_GRAY)
    axes.legend(loc="best")
    return figure


@style.with_style
def communities(summary: Mapping[str, Any], *, vertices: int) -> Figure:
    """Draw the sizes of components and communities from `communities.json`: bars, or points if there are many."""
    title, components, groups = "Components and communities", summary["components"], summary["communities"]
    subtitle = (
        f"{words.count(vertices)} vertices; the largest weakly connected component has "
        f"{words.count(components['largest'])} of them ({words.percent(components['largest'] / vertices)})."
    )
    if groups["method"] != "none":
        subtitle += f" Communities by {groups['method'].capitalize()}, modularity {groups['modularity']:.3f}."
    figure, body = style.new_figure(9, 3.7, title=title, subtitle=subtitle)
    left, right = body.subplots(1, 2)
    _draw_sizes(left, components, vertices=vertices, what="component", color=style.SKY_BLUE)
    if groups["method"] != "none":
        _draw_sizes(right, groups, vertices=vertices, what="community", color=style.GREEN)
    else:
        style.write_text(right, "No communities were sought:", "pagerank.communities.method is none.")
    return figure


def _draw_sizes(axes: Axes, groups: Mapping[str, Any], *, vertices: int, what: str, color: str) -> None:
    axes.set_title(words.pluralize(groups["count"], what))
    if groups["count"] <= 24:  # with more, the distribution of sizes
        sizes = groups["sizes"]
        tick_step, rotation = (1, 0) if len(sizes) <= 12 else (3, 90)
        bars = axes.bar(range(len(sizes)), sizes, 0.75, color=color)
        axes.bar_label(bars, list(map(words.short_count, sizes)), padding=2, size=7.5, rotation=rotation)
        axes.set(xticks=range(0, len(sizes), tick_step), xlim=(-1, max(4, len(sizes))), ylim=(0, max(sizes) * 1.18))
        axes.set(xlabel=what.capitalize(), ylabel="Vertices")
        axes.xaxis.set_major_formatter("{x:.0f}")
        shapes.limit_ticks(axes.yaxis, 6, integer=True, min_n_ticks=1)
        axes.grid(visible=False, axis="x")
        return
    sizes, counts = np.array(sorted(map(tuple, groups["size_counts"])), dtype=float).reshape(-1, 2).T
    axes.plot(sizes, counts, "o", color=color, markeredgecolor="white", markeredgewidth=0.4, markersize=6)
    plural = words.pluralize(2, what).removeprefix("2 ").capitalize()
    axes.set(xscale="log", yscale="log", xlim=(0.7, vertices * 1.4), ylim=(0.7, counts.max() * 1.6))
    axes.set(xlabel=f"Vertices of a {what}", ylabel=f"{plural} of that size")


@dataclass(frozen=True)
class Neighborhood:
    """The top vertices, and others that link to them."""

    vertices: Integers  # the first ``top`` by descending rank
    top: int
    source: Integers  # (links,), indices into ``vertices``
    target: Integers
    among: int  # links among the top vertices, drawn or not
    links: int  # maximum number of links drawn to each


def top_vertices(ranks: Floats, count: int) -> Integers:
    """Return the vertices of the highest ranks, the highest first; ties by number."""
    return pd.Series(ranks).nlargest(count).index.to_numpy(np.int64)


def find_neighborhood(graph: GraphFolder, ranks: Floats, *, top: int) -> Neighborhood:
    """Return the top vertices, and the links to each from the highest-ranked vertices that link to it.

    Only the in-edges of the top vertices are read. ``ranks`` are float64 (vertices,).
    """
    best = top_vertices(ranks, top)
    links = next((number for maximum, number in _LINKS.items() if len(best) <= maximum), 1)
    sources, targets, among = list[Integers](), list[Integers](), 0
    for vertex in best.tolist():
        linking = np.asarray(graph.sources[graph.indptr[vertex] : graph.indptr[vertex + 1]], np.int64)
        linking = linking[linking != vertex]
        among += int(np.isin(best, linking).sum())
        sources.append(linking[top_vertices(ranks[linking], links)])
        targets.append(np.full(len(sources[-1]), vertex))
    source, target = np.concatenate(sources), np.concatenate(targets)
    vertices = pd.Index(np.concatenate([best, np.setdiff1d(source, best)]))
    source, target = vertices.get_indexer(source), vertices.get_indexer(target)
    return Neighborhood(vertices.to_numpy(), len(best), source, target, among, links)


def without_hosts(names: Sequence[str]) -> list[str]:
    """Shorten URLs: no scheme, no host if all share one, no percent-escapes. Other names are returned as they are."""
    if not all(re.match("https?://", name, re.IGNORECASE) for name in names):
        return list(names)
    parts = [urlsplit(name) for name in names]
    one_host = len({url.netloc for url in parts}) == 1 and len(parts) > 1
    return [
        unquote(f"{'' if one_host else url.netloc}{url.path}{f'?{url.query}' if url.query else ''}") for url in parts
    ]


def place_vertices(subgraph: Neighborhood, *, width: float, height: float) -> tuple[Floats, Floats]:
    """Return positions (vertices, 2) in a rectangle around (0, 0), and the maximum radius of each circle.

    The top vertices form a ring by rank, clockwise from the top. The others form a ring around it, in the direction of
    the vertices that they link to.
    """
    top, others = subgraph.top, len(subgraph.vertices) - subgraph.top
    turns = np.concatenate([np.arange(top) / top, np.zeros(others)])
    direction = np.zeros(len(turns), complex)
    np.add.at(direction, subgraph.source, np.exp(2j * np.pi * turns[subgraph.target]))
    # Rounded, so that nearly equal directions keep the order of the ranks.
    order = np.argsort(np.angle(direction[top:]).round(9) % (2 * np.pi), kind="stable")
    turns[top + order] = np.arange(others) / max(others, 1)
    inner = np.arange(len(turns)) < top
    inner_size = _INNER if others else 1.0
    ring = np.where(inner, inner_size if top > 1 else 0.0, 1.0)
    angle = 2 * np.pi * turns
    places = np.stack([np.sin(angle) * width, np.cos(angle) * height], axis=1) * ring[:, np.newaxis] / 2
    count = np.where(inner, top, others)
    # On a ring of few vertices, the other ring is nearer than the next vertex.
    distance = np.minimum(np.sin(np.pi / np.maximum(count, 2)) * np.maximum(ring, _INNER), 1 - _INNER)
    return places, _FILLED * distance * min(width, height) / 2


@style.with_style
def neighborhood(subgraph: Neighborhood, *, names: Sequence[str], ranks: Floats, community: Integers) -> Figure:
    """Draw the neighborhood: sizes by rank, colors by community, top vertices numbered and listed by name.

    ``names`` are those of the top vertices; ``ranks`` and ``community`` (-1 without communities) those of the whole
    graph, float64 and int64 (vertices,).
    """
    title, top, total = "The top of the ranking and links to it", subgraph.top, float(ranks.sum())
    ranks, community = ranks[subgraph.vertices], community[subgraph.vertices]
    labels = [style.fit_text(name, points=72 * (_LIST - _NAME - 0.1), size=_NAME_SIZE) for name in without_hosts(names)]
    # The communities of the first vertices have their own colors.
    numbers = list(dict.fromkeys(community.tolist()))
    palette = dict(zip(numbers, _COLORS, strict=False))
    colors = [palette.get(number, _OTHER) for number in community.tolist()]
    legend = {} if numbers == [-1] else {f"community {number}": color for number, color in palette.items()}
    if len(numbers) > len(palette):
        legend["other communities"] = _OTHER
    height = max(4.2, _LINE * (top + (len(legend) + 1.4 if legend else 0) + 1.2))
    lacks_letters = any(style.NO_LETTER in name for name in labels)
    notes = [f"{style.NO_LETTER}: a letter that the font of the pictures lacks."] if lacks_letters else []
    subtitle = _describe(subgraph, words.percent(float(ranks[:top].sum()) / total))
    figure, body = style.new_figure(_MAP + _LIST, height, title=title, subtitle=subtitle, notes=notes)
    left, right = body.subplots(1, 2, width_ratios=(_MAP, _LIST))
    width, depth = 72 * (_MAP - 0.4), 72 * (min(height, _TALLEST_MAP) - 0.4)
    left.set(xlim=(-width / 2, width / 2), ylim=(-depth / 2, depth / 2), aspect="equal", anchor="N")
    places, room = place_vertices(subgraph, width=width - 2 * _LARGEST, height=depth - 2 * _LARGEST)
    # Areas are proportional to ranks, within limits: circles are visible and do not overlap.
    smallest = np.where(np.arange(len(ranks)) < top, _SMALLEST_TOP, _SMALLEST)
    radius = np.minimum(np.maximum(_LARGEST * np.sqrt(ranks / ranks.max()), smallest), room)
    _draw_graph(left, subgraph, places, radius, colors)
    right.set(xlim=(0, _LIST - 0.2), ylim=(height / _LINE - 0.5, -0.8))
    _write_list(right, labels, [words.percent(rank / total) for rank in ranks[:top].tolist()], colors, legend)
    for axes in (left, right):
        axes.set_axis_off()
    return figure


def _describe(subgraph: Neighborhood, share: str) -> str:
    links, others = len(subgraph.source), len(subgraph.vertices) - subgraph.top
    top = f"Numbered: the {subgraph.top} highest, which have {share} of all rank. "
    if not links:
        return top + "No other vertex links to them."
    among_top = int((subgraph.source < subgraph.top).sum())
    parts = [f"{among_top} of the {words.pluralize(subgraph.among, 'link')} among them"] if among_top else []
    parts += [f"{words.pluralize(links - among_top, 'link')} from others"] if others else []
    return (
        f"{top}An arrow is a link. To each of them at most {subgraph.links} are drawn, from the highest vertices that "
        f"link to it: {' and '.join(parts)}. The larger, the higher the rank."
    )


def _draw_graph(axes: Axes, subgraph: Neighborhood, places: Floats, radius: Floats, colors: Sequence[str]) -> None:
    for source, target in zip(subgraph.source.tolist(), subgraph.target.tolist(), strict=True):
        axes.add_patch(
            FancyArrowPatch(
                places[source], places[target], arrowstyle="-|>", mutation_scale=8, linewidth=0.8,
                color=style.TEXT_GRAY, alpha=0.75, connectionstyle="arc3,rad=0.1", shrinkA=radius[source],
                shrinkB=radius[target] + 1, zorder=1,
            )
        )  # fmt: skip
    _draw_circles(axes, places, radius, colors, numbered=subgraph.top)


def _draw_circles(axes: Axes, places: Floats, radius: Floats, colors: Sequence[str], *, numbered: int) -> None:
    """Draw circles at places (n, 2) with radii in points; number the first ones."""
    axes.scatter(
        places[:, 0], places[:, 1], s=(2 * radius) ** 2, c=colors, edgecolors=style.TEXT_GRAY, linewidths=0.6,
        zorder=2, clip_on=False,
    )  # fmt: skip
    for number, (x, y) in enumerate(places[:numbered].tolist(), start=1):
        axes.text(x, y, str(number), ha="center", va="center", size=8, weight="bold", zorder=3)


def _write_list(
    axes: Axes, names: Sequence[str], shares: Sequence[str], colors: Sequence[str], legend: Mapping[str, str]
) -> None:
    """Write number, share and name of each top vertex, and below them the legend of colors."""
    top, gray = len(names), style.TEXT_GRAY
    rows = np.append(np.arange(top) + 0.4, np.arange(len(legend)) + top + 1)
    radius = np.repeat([_SMALLEST_TOP, 5.0], [top, len(legend)])
    circles = np.column_stack([np.full(len(rows), _NUMBER), rows])
    _draw_circles(axes, circles, radius, [*colors[:top], *legend.values()], numbered=top)
    write = partial(axes.text, va="center", size=_NAME_SIZE)
    write(_SHARE, -0.55, "rank", ha="right", color=gray)
    write(_NAME, -0.55, "name", color=gray)
    for row, name, share in zip(rows.tolist(), names, shares, strict=False):
        write(_SHARE, row, share, ha="right")
        write(_NAME, row, name)
    for row, name in zip(rows[top:].tolist(), legend, strict=True):
        write(_NUMBER + 0.2, row, name, color=gray)
