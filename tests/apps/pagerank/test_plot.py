"""The pictures of the PageRank application: they draw what the files say, and any graph can be drawn."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from tests.apps.pictures import no_text_is_cut, written
from tests.helpers.graphs import Graph, random_graph
from whitewater import engines
from whitewater.figures import style, words
from whitewater.step import Outputs, Run
from whitewater_apps.pagerank import figures
from whitewater_apps.pagerank.config import Plot
from whitewater_apps.pagerank.figures import (
    Neighborhood,
    at_least,
    binned,
    find_neighborhood,
    place_vertices,
    top_vertices,
    without_hosts,
)
from whitewater_apps.pagerank.headline import read_names
from whitewater_apps.pagerank.steps.plot import plot

PICTURES = ("communities", "convergence", "degrees", "neighborhood", "ranks")


def networkx_graph(graph: Graph) -> nx.DiGraph[int]:
    found: nx.DiGraph[int] = nx.DiGraph()
    found.add_nodes_from(range(graph.vertices))
    found.add_edges_from(graph.edges.tolist())
    return found


def ranked(graph: Graph) -> npt.NDArray[np.float64]:
    ranks = nx.pagerank(networkx_graph(graph))
    return np.array([ranks[vertex] for vertex in range(graph.vertices)])


def convergence(graph: Graph, *, iterations: int = 9, **others: Any) -> dict[str, Any]:
    log = [{"iteration": i, "l1_change": 10.0**-i, "error_bound": 5.7 * 10.0**-i} for i in range(1, iterations + 1)]
    return {
        "definition": "networkx", "damping": 0.85, "tolerance": 1e-8, "iterations": iterations, "log": log,
        "error_bound": log[-1]["error_bound"] if log else None, "vertices": graph.vertices, "edges": len(graph.edges),
        **others,
    }  # fmt: skip


def sizes(groups: Sequence[int]) -> dict[str, Any]:
    ordered = sorted(groups, reverse=True)
    return {
        "count": len(ordered), "largest": max(ordered, default=0), "sizes": ordered[:1000],
        "size_counts": [list(each) for each in sorted(Counter(ordered).items())],
    }  # fmt: skip


def grouped(components: Sequence[int], communities: Sequence[int] | None) -> dict[str, Any]:
    method = {"method": "none", "modularity": None} if communities is None else {"method": "leiden", "modularity": 0.7}
    return {"components": sizes(components), "communities": {**sizes(communities or ()), **method}}


def write_results(place: Path, graph: Graph, *, communities: bool = True) -> None:
    """Write what the steps before it leave."""
    graph.write(place / "graph")
    found = networkx_graph(graph)
    components = sorted(map(len, nx.weakly_connected_components(found)))
    columns = {
        "vertex": np.arange(graph.vertices), "name": graph.names, "rank": ranked(graph),
        "in_degree": [found.in_degree(vertex) for vertex in range(graph.vertices)],
        "out_degree": [found.out_degree(vertex) for vertex in range(graph.vertices)],
        "community": np.arange(graph.vertices) % 9 if communities else np.full(graph.vertices, -1),
    }  # fmt: skip
    table = pd.DataFrame({name: column for name, column in columns.items() if column is not None})
    table.astype({"in_degree": "int64", "out_degree": "int64"}).to_parquet(place / "vertices.parquet", index=False)
    contents = {
        "convergence": convergence(graph),
        "communities": grouped(components, components if communities else None),
        "edges": {"duplicates": 3, "self_loops": 0},
    }
    for name, content in contents.items():
        (place / f"{name}.json").write_text(json.dumps(content))


def draw(place: Path, *files: str, top: int = 12) -> list[str]:
    run = Run("pagerank", "plot", engines.resolve("cpu"), Plot(top=top))
    contents = {name: place / f"{name}.json" for name in ("convergence", "communities", "edges")}
    outputs = Outputs({file: place / file for file in files})
    plot(run, graph=place / "graph", vertices=place / "vertices.parquet", **contents, plots=outputs)
    pictures: list[str] = run.facts["pictures"]
    return pictures


def drawn_neighborhood(place: Path, graph: Graph, *, top: int) -> Figure:
    ranks = ranked(graph)
    found = find_neighborhood(graph.write(place / "graph"), ranks, top=top)
    names = [f"name {vertex}" for vertex in found.vertices[: found.top]]
    return figures.neighborhood(found, names=names, ranks=ranks, community=np.arange(len(ranks)))


def line(axes: Axes, start: str) -> npt.NDArray[np.float64]:
    """The points (points, 2) of the line whose label begins so."""
    (found,) = [each for each in axes.lines if str(each.get_label()).startswith(start)]
    return np.column_stack([np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)])


# ---- ranks


def test_ranks_are_drawn_by_position_and_as_shares_of_their_sum() -> None:
    graph = random_graph(40, 0.1)
    values = ranked(graph) * 0.5  # as where rank is lost
    figure = figures.ranks(values, convergence=convergence(graph))
    left, right = figure.axes
    expected = np.sort(values)[::-1]
    np.testing.assert_allclose(line(left, "rank")[:, 1], expected)
    np.testing.assert_array_equal(line(left, "rank")[:, 0], np.arange(1, 41))
    np.testing.assert_allclose(line(right, "of these")[:, 1], np.cumsum(expected) / expected.sum())
    assert "The ranks add up to 0.5" in written(figure)


# ---- degrees


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=300))
@settings(max_examples=60, deadline=None)
def test_bins_hold_every_vertex_with_links_once(values: list[int]) -> None:
    degrees = np.array(values)
    middle, density = binned(degrees)
    # The edges again, from the definition: the first whole degree of each half doubling.
    edges = sorted({int(np.ceil(2 ** (half / 2) - 1e-9)) for half in range(32)})
    widths = {np.sqrt(low * (high - 1)): high - low for low, high in pairwise(edges)}
    counts = np.array([widths[each] for each in middle]) * density * len(values)
    assert counts.sum() == pytest.approx(sum(value > 0 for value in values))
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=50))
@settings(max_examples=40, deadline=None)
def test_shares_of_at_least_a_degree_are_those_counted_one_by_one(values: list[int]) -> None:
    degree, share = at_least(np.array(values))
    assert degree.tolist() == sorted({value for value in values if value})
    assert share.tolist() == [sum(value >= each for value in values) / len(values) for each in degree]


# ---- convergence


def test_change_and_bound_are_drawn_with_the_tolerance() -> None:
    figure = figures.convergence(convergence(random_graph(5, 1)))
    (axes,) = figure.axes
    np.testing.assert_allclose(line(axes, "change"), [[i, 10.0**-i] for i in range(1, 10)])
    np.testing.assert_allclose(line(axes, "bound")[:, 1], [5.7 * 10.0**-i for i in range(1, 10)])
    assert set(line(axes, "tolerance")[:, 1]) == {1e-8}
    assert "After 9 iterations the exact ranks are within 5.7e-09." in written(figure)


# ---- communities


def test_few_groups_have_a_bar_each_and_many_a_point_for_each_size() -> None:
    many = [500, 20, 20, *[1] * 60]
    figure = figures.communities(grouped([600], many), vertices=600)
    left, right = figure.axes
    assert [patch.get_height() for patch in left.patches if isinstance(patch, Rectangle)] == [600]
    (points,) = right.lines
    drawn = np.column_stack([np.asarray(points.get_xdata()), np.asarray(points.get_ydata())])
    assert drawn.tolist() == [[1, 60], [20, 2], [500, 1]]
    assert "63 communities" in written(figure)
    assert "1 component" in written(figure)


# ---- names


def test_of_urls_the_scheme_is_left_out_and_the_host_where_it_is_the_same() -> None:
    same = ["https://a.example/", "https://a.example/caf%C3%A9?x=1"]
    assert without_hosts(same) == ["/", "/café?x=1"]
    other = [*same, "http://b.example/x"]
    assert without_hosts(other) == ["a.example/", "a.example/café?x=1", "b.example/x"]
    assert without_hosts(["https://a.example/x"]) == ["a.example/x"]
    assert without_hosts(["Alps", "https://a.example/x"]) == ["Alps", "https://a.example/x"]


# ---- neighborhood


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=30), st.integers(1, 35))
@settings(max_examples=60, deadline=None)
def test_top_vertices_are_the_first_of_all_sorted_by_rank_then_number(ranks: list[float], count: int) -> None:
    expected = sorted(range(len(ranks)), key=lambda vertex: (-ranks[vertex], vertex))[:count]
    assert top_vertices(np.array(ranks), count).tolist() == expected


@pytest.mark.parametrize(("top", "links"), [(5, 3), (20, 2), (40, 1)])
def test_links_lead_to_each_top_vertex_from_those_of_highest_rank_that_link_to_it(
    tmp_path: Path, top: int, links: int
) -> None:
    graph = random_graph(60, 0.08, seed=3)
    ranks, linked = ranked(graph), networkx_graph(graph)
    found = find_neighborhood(graph.write(tmp_path / "graph"), ranks, top=top)
    drawn = {(int(found.vertices[a]), int(found.vertices[b])) for a, b in zip(found.source, found.target, strict=True)}
    order = sorted(range(60), key=lambda vertex: (-ranks[vertex], vertex))
    best = {
        vertex: [source for source in order if linked.has_edge(source, vertex) and source != vertex][:links]
        for vertex in order[:top]
    }
    assert found.vertices[: found.top].tolist() == order[:top]
    assert drawn == {(source, vertex) for vertex, sources in best.items() for source in sources}
    assert found.among == sum(a != b and linked.has_edge(a, b) for a in order[:top] for b in order[:top])


@pytest.mark.parametrize(
    ("vertices", "density", "top"), [(1, 0, 2), (2, 0, 2), (30, 0.02, 12), (90, 0.5, 16), (90, 0.1, 40)]
)
def test_circles_are_apart_within_the_map(tmp_path: Path, vertices: int, density: float, top: int) -> None:
    left, _ = drawn_neighborhood(tmp_path, random_graph(vertices, density), top=top).axes
    (drawn,) = left.collections
    assert isinstance(drawn, PathCollection)
    radii = np.sqrt(drawn.get_sizes()) / 2
    circles = np.column_stack([np.asarray(drawn.get_offsets()), radii]).tolist()
    assert len(circles) == len(radii) >= min(top, vertices)
    (least_x, most_x), (least_y, most_y) = left.get_xlim(), left.get_ylim()
    for x, y, radius in circles:
        assert least_x <= x - radius < x + radius <= most_x
        assert least_y <= y - radius < y + radius <= most_y
    for (ax, ay, a), (bx, by, b) in combinations(circles, 2):
        assert np.hypot(ax - bx, ay - by) > a + b


def test_others_are_beside_the_vertices_that_they_link_to() -> None:
    source, target = np.array([4, 5, 6, 7]), np.array([2, 0, 3, 1])
    places, _ = place_vertices(Neighborhood(np.arange(8), 4, source, target, 0, 3), width=400, height=400)
    for link in zip(source, target, strict=True):
        one, other = places[list(link)] / np.hypot(*places[list(link)].T)[:, np.newaxis]
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_the_top_vertices_are_numbered_and_listed_and_each_link_is_an_arrow(tmp_path: Path) -> None:
    graph = random_graph(50, 0.1, seed=1)
    figure = drawn_neighborhood(tmp_path, graph, top=6)
    ranks = ranked(graph)
    order = np.argsort(-ranks, kind="stable")[:6]
    found = find_neighborhood(graph.write(tmp_path / "again"), ranks, top=6)
    left, right = figure.axes
    assert sorted(text.get_text() for text in left.texts) == list("123456")
    listed = [text.get_text() for text in right.texts]
    assert [text for text in listed if text.startswith("name ")] == [f"name {vertex}" for vertex in order]
    assert [text for text in listed if text.endswith("%")] == [words.percent(ranks[vertex]) for vertex in order]
    assert sum(isinstance(patch, FancyArrowPatch) for patch in left.patches) == len(found.source)


# ---- all of them


@pytest.mark.parametrize(
    ("graph", "communities"),
    [
        (random_graph(80, 0.05), True), (random_graph(80, 0.9, dangling=0), True), (random_graph(7, 0), False),
        (Graph(1, np.zeros((0, 2), int)), True),
        (Graph(30, np.array([(i, (i + 1) % 30) for i in range(30)])), False),
        (replace(random_graph(9, 0.3), names=[f"https://例え.example/{i}" for i in range(9)]), True),
    ],
    ids=["a graph", "dense", "no edges", "one vertex", "equal ranks", "names"],
)  # fmt: skip
def test_every_graph_has_every_picture_and_no_text_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graph: Graph, communities: bool
) -> None:
    write_results(tmp_path, graph, communities=communities)
    drawn: list[Figure] = []
    monkeypatch.setattr(style, "save", lambda figure, path: drawn.append(figure))
    assert draw(tmp_path, *(f"{name}.png" for name in PICTURES), top=20) == list(PICTURES)
    assert len(drawn) == len(PICTURES)
    assert [name for name, figure in zip(PICTURES, drawn, strict=True) if not no_text_is_cut(figure)] == []


def test_names_are_read_from_their_row_groups_in_any_order(tmp_path: Path) -> None:
    table = pd.DataFrame({"vertex": range(100, 150), "name": [f"n{i}" for i in range(50)]})
    table.to_parquet(tmp_path / "named.parquet", row_group_size=7)
    assert read_names(tmp_path / "named.parquet", [49, 0, 13, 14]) == ["n49", "n0", "n13", "n14"]
    table.drop(columns="name").to_parquet(tmp_path / "ids.parquet", row_group_size=7)
    assert read_names(tmp_path / "ids.parquet", [7, 6]) == ["107", "106"]
