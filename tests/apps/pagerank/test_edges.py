"""Edges of pages and of files are those of NetworkX and pandas, by every rule, and no row is lost uncounted."""

from __future__ import annotations

import gzip
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import resolve
from whitewater.engines.config import Cluster
from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.graphs.config import EdgeFiles, EdgeRules
from whitewater.graphs.edge_files import text
from whitewater.graphs.edges_folder import EdgesFolder, open_edges
from whitewater.graphs.vertex_ids import find_positions, vertex_id
from whitewater.io.store import sha256, write_json
from whitewater.step import Inputs, Output, Run
from whitewater.text.documents import ALIASES, DOCUMENTS, write_aliases
from whitewater.text.documents import LINKS as LINKS_FORMAT
from whitewater_apps.pagerank.steps.edges import edges

DROP, KEEP = EdgeRules(), EdgeRules(broken="keep", self_loops="keep")
BOTH = [DROP, KEEP, EdgeRules(broken="keep"), EdgeRules(self_loops="keep")]


@settings(max_examples=100, deadline=None)
@given(
    known=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-30, 30), unique=True, max_size=50),
    wanted=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-40, 40), max_size=30),
)
@example(known=[-(2**63), 2**63 - 1], wanted=[])
@example(known=[4, 5, 6], wanted=[2**63 - 1, -(2**63)])
def test_ids_are_found_at_their_places(known: list[int], wanted: list[int]) -> None:
    ascending = sorted(known)
    places = {each: place for place, each in enumerate(ascending)}
    asked = [*wanted, *known]
    found = find_positions(np.array(asked, np.int64), np.array(ascending, np.int64))
    assert found.tolist() == [places.get(each, -1) for each in asked]


def run_of(rules: EdgeRules, threads: int = 1) -> Run[EdgeRules]:
    return Run("pagerank", "edges", resolve("cpu"), rules, threads, Cluster())


def rows(folder: EdgesFolder) -> list[tuple[Any, ...]]:
    """Return the edges, by names where there are any, in ascending order."""
    tables = [pq.ParquetFile(path).read_row_group(index) for path, index, _ in folder.row_groups()]
    found = [tuple(row.values()) for table in tables for row in table.to_pylist()]
    vertices = folder.vertices()
    if folder.named and vertices is not None:
        names = dict(zip(vertices["vertex"].to_pylist(), vertices["name"].to_pylist(), strict=True))
        found = [(names[source], names[target], *weight) for source, target, *weight in found]
    counts = folder.counts
    assert counts["edges"] == len(found)
    assert counts["read"] == len(found) + sum(count for name, count in counts.items() if name.startswith("dropped_"))
    return sorted(found)


def vertices_of(folder: EdgesFolder, column: str = "vertex") -> list[Any] | None:
    table = folder.vertices()
    return None if table is None else sorted(table[column].to_pylist())


def no_list(folder: Path) -> Path:
    """Write a list of inputs without any, so that no checksum is compared."""
    write_json(folder / "inputs.json", {"files": []})
    return folder / "inputs.json"


def from_files(tmp_path: Path, rules: EdgeRules = DROP, threads: int = 1, **options: Any) -> EdgesFolder:
    """Run the step on the files ``e*`` and ``v*`` of a folder."""
    files = {role: sorted(map(str, tmp_path.glob(f"{role[0]}*"))) for role in ("edges", "vertices")}
    described = {"format": 1, "source": "edges", "pages": 0, "counts": {}, "files": files}
    write_json(
        tmp_path / "fetched" / "source.json", described | {"settings": EdgeFiles(**options).model_dump(mode="json")}
    )
    output = Path(tempfile.mkdtemp(dir=tmp_path)) / "edges"
    edges(
        run_of(rules, threads),
        fetched=tmp_path / "fetched",
        documents=Inputs({}),
        links=Inputs({}),
        inputs=no_list(tmp_path),
        edges=Output(output),
    )
    return open_edges(output)


def write(path: Path, content: str) -> None:
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())


def test_edges_of_integers_keep_their_ids_and_lose_their_loops(tmp_path: Path) -> None:
    write(tmp_path / "e1", "1 2\n2 2\n7 7\n-9 1\n")
    folder = from_files(tmp_path)
    assert rows(folder) == [(-9, 1), (1, 2)]
    assert folder.counts["dropped_self_loops"] == 2
    assert not folder.named
    # Of 7 there is only the loop: it is a vertex nevertheless.
    assert vertices_of(folder) == [2, 7]
    kept = from_files(tmp_path, KEEP)
    assert rows(kept) == [(-9, 1), (1, 2), (2, 2), (7, 7)]
    assert vertices_of(kept) is None


def test_names_become_vertices(tmp_path: Path) -> None:
    write(tmp_path / "e1.gz", "a b\nb c\n")
    write(tmp_path / "e2", "c a\nd d\n")
    folder = from_files(tmp_path, ids="text")
    assert rows(folder) == [("a", "b"), ("b", "c"), ("c", "a")]
    assert vertices_of(folder, "name") == ["a", "b", "c", "d"]
    assert vertices_of(folder) == sorted(map(vertex_id, "abcd"))


@pytest.mark.parametrize("rules", BOTH)
def test_ends_that_the_table_of_vertices_lacks_are_broken(tmp_path: Path, rules: EdgeRules) -> None:
    write(tmp_path / "v1", "10 ten\n12 twelve\n")
    write(tmp_path / "v2.gz", "11 eleven\n10 ten\n")
    write(tmp_path / "e1", "10 11\n11 99\n98 10\n97 97\n12 12\n12 10\n")
    folder = from_files(tmp_path, rules)
    expected = {("ten", "eleven"), ("twelve", "ten")}
    names = {"ten", "eleven", "twelve"}
    if rules.broken == "keep":
        expected |= {("eleven", "99"), ("98", "ten")}
        names |= {"97", "98", "99"}
    if rules.self_loops == "keep":
        expected |= {("twelve", "twelve")}
    if rules == KEEP:
        expected |= {("97", "97")}
    assert rows(folder) == sorted(expected)
    assert vertices_of(folder, "name") == sorted(names)
    assert folder.counts["broken"] == 3
    assert folder.counts["repeated_vertices"] == 1


def test_names_that_the_table_lacks_are_broken(tmp_path: Path) -> None:
    write(tmp_path / "v", "a\nb\nlonely\n")
    write(tmp_path / "e", "a b\nb x\ny y\n")
    dropped, kept = from_files(tmp_path, ids="text"), from_files(tmp_path, KEEP, ids="text")
    assert (rows(dropped), vertices_of(dropped, "name")) == ([("a", "b")], ["a", "b", "lonely"])
    assert rows(kept) == [("a", "b"), ("b", "x"), ("y", "y")]
    assert vertices_of(kept, "name") == ["a", "b", "lonely", "x", "y"]


def test_a_table_of_vertices_may_have_gaps_or_none(tmp_path: Path) -> None:
    for ids in ([5, 6, 7, 8], [-(2**63), 6, 8, 2**63 - 1]):
        write(tmp_path / "v", "".join(f"{vertex}\n" for vertex in ids))
        everything = [(source, target) for source in [*ids, 4, 9] for target in [*ids, 4, 9]]
        write(tmp_path / "e", "".join(f"{source} {target}\n" for source, target in everything))
        folder = from_files(tmp_path, EdgeRules(self_loops="keep"))
        assert rows(folder) == sorted((s, t) for s, t in everything if s in ids and t in ids)
        assert vertices_of(folder) == ids


def test_adjacency_gives_vertices_without_edges(tmp_path: Path) -> None:
    write(tmp_path / "e", "1 2 3\n4\n3 3\n")
    folder = from_files(tmp_path, layout="adjacency")
    assert rows(folder) == [(1, 2), (1, 3)]
    assert vertices_of(folder) == [1, 3, 4]
    write(tmp_path / "e", "a b\nlonely\n")
    assert vertices_of(from_files(tmp_path, layout="adjacency", ids="text"), "name") == ["a", "b", "lonely"]
    with pytest.raises(ConfigError, match="layout adjacency has no weights"):
        from_files(tmp_path, layout="adjacency", weighted=True)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), ids=st.sampled_from(["integer", "text"]), weighted=st.booleans(), keep=st.booleans())
def test_any_files_give_the_graph_of_networkx(
    tmp_path_factory: pytest.TempPathFactory, seed: int, ids: str, weighted: bool, keep: bool
) -> None:
    tmp_path = tmp_path_factory.mktemp("graph")
    generator = np.random.default_rng(seed)
    graph = nx.MultiDiGraph()
    for number in range(generator.integers(1, 4)):
        table = pd.DataFrame(generator.integers(0, 9, (generator.integers(1, 30), 2)), columns=["source", "target"])
        table = table.astype(str) if ids == "text" else table
        table["weight"] = generator.random(len(table)) + 0.1
        graph.add_weighted_edges_from(table.itertuples(index=False, name=None))
        path = tmp_path / f"e{number}"
        if generator.random() < 0.5:
            table.to_parquet(path, row_group_size=7)
        else:
            table.to_csv(path, sep=" ", header=False, index=False, compression="gzip" if number % 2 else None)
    folder = from_files(tmp_path, EdgeRules(self_loops="keep" if keep else "drop"), ids=ids, weighted=weighted)
    expected = [edge if weighted else edge[:2] for edge in graph.edges(data="weight") if keep or edge[0] != edge[1]]
    assert rows(folder) == sorted(expected)
    ends = {end for row in rows(folder) for end in row[:2]}
    assert set(graph) == ends | set(vertices_of(folder, "name" if ids == "text" else "vertex") or [])


@pytest.mark.parametrize("options", [{}, {"ids": "text"}, {"layout": "adjacency"}], ids=str)
def test_workers_change_no_byte(tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "RANGE_BYTES", 500)
    generator = np.random.default_rng(2)
    for number, name in enumerate(["e1", "e2.gz", "e3"]):
        write(tmp_path / name, "".join(f"{s} {t}\n" for s, t in generator.integers(0, 50, (300 + number, 2))))
    one, four = (from_files(tmp_path, threads=threads, **options) for threads in (1, 4))
    assert len(one.row_groups()) > 3
    assert sha256(one.path) == sha256(four.path)


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "e", "# nothing\n")
    with pytest.raises(InputError, match="no edge was found, and no vertex"):
        from_files(tmp_path)
    write(tmp_path / "v", "\n")
    with pytest.raises(InputError, match="the other files of vertices hold none"):
        from_files(tmp_path)
    write(tmp_path / "v", "1\n")
    write(tmp_path / "v2", "2 two\n")
    with pytest.raises(InputError, match="some files of vertices give names and others do not"):
        from_files(tmp_path)


def test_directions_and_weights_are_told(tmp_path: Path) -> None:
    write(tmp_path / "e", "1 2 0.5\n")
    folder = from_files(tmp_path, directed=False, weighted=True)
    assert (folder.directed, folder.weighted, rows(folder)) == (False, True, [(1, 2, 0.5)])


def test_a_symmetric_matrix_is_not_a_directed_graph(tmp_path: Path) -> None:
    write(tmp_path / "e", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n3 1\n")
    with pytest.raises(
        ConfigError, match=r"e is a .* symmetric matrix, but pagerank\.fetch\.edges\.directed is true. Set it to false"
    ):
        from_files(tmp_path)
    assert rows(from_files(tmp_path, directed=False)) == [(3, 1)]


@needs_real_data
def test_the_graphs_of_snap_and_ldbc_are_those_of_networkx(tmp_path: Path) -> None:
    (tmp_path / "e").symlink_to(real_data("graph", "snap", "email-Eu-core.csv"))
    table = pd.read_csv(tmp_path / "e", sep=" ", names=["source", "target", "weight"])
    folder = from_files(tmp_path)
    assert folder.counts["dropped_self_loops"] == 642
    loopless = table[table["source"] != table["target"]]
    assert rows(folder) == sorted(zip(loopless["source"], loopless["target"], strict=True))
    (tmp_path / "e").unlink()
    for name in ("pr_dir-input", "example_example-directed-input"):
        (tmp_path / "e").symlink_to(real_data("graph", "ldbc", name))
        graph = nx.read_adjlist(tmp_path / "e", create_using=nx.DiGraph, nodetype=int)
        folder = from_files(tmp_path, layout="adjacency")
        assert rows(folder) == sorted(graph.edges)
        assert vertices_of(folder) == sorted(graph)
        (tmp_path / "e").unlink()
    (tmp_path / "e").symlink_to(real_data("graph", "ldbc", "example_example-directed.e"))
    (tmp_path / "v").symlink_to(real_data("graph", "ldbc", "example_example-directed.v"))
    folder = from_files(tmp_path, weighted=True)
    assert [row[:2] for row in rows(folder)] == sorted(graph.edges)
    assert vertices_of(folder) == sorted(graph)


def url(name: str) -> str:
    return f"https://example.org/{name}"


def from_pages(
    tmp_path: Path,
    rules: EdgeRules,
    documents: str,
    links: list[tuple[str, str]],
    aliases: dict[str, str],
) -> EdgesFolder:
    """Run the step on documents that are named by letters."""
    pages, linked, output = tmp_path / "documents", tmp_path / "links", Path(tempfile.mkdtemp(dir=tmp_path)) / "edges"
    for path in (pages, linked):
        path.mkdir(exist_ok=True)
    urls = [url(name) for name in documents]
    columns = {"vertex": [vertex_id(each) for each in urls], "url": urls, "title": urls, "text": urls}
    DOCUMENTS.write_part(pages, 0, pa.table(columns))
    resolved = {"alias": [vertex_id(url(a)) for a in aliases], "vertex": [vertex_id(url(a)) for a in aliases.values()]}
    table = pa.table({**resolved, "reason": ["redirect"] * len(aliases)}, schema=ALIASES)
    write_aliases(pages, table)
    DOCUMENTS.finish(pages, len(documents))
    for number in range(2):
        some = links[number::2]
        LINKS_FORMAT.write_part(linked, number, pa.table({
            "source": pa.array([vertex_id(url(source)) for source, _ in some], pa.int64()),
            "target": pa.array([vertex_id(url(target)) for _, target in some], pa.int64()),
            "target_url": pa.array([url(target) for _, target in some], pa.string()),
        }))  # fmt: skip
    LINKS_FORMAT.finish(linked, len(links))
    edges(
        run_of(rules),
        fetched=tmp_path,
        documents=Inputs({"documents": pages}),
        links=Inputs({"links": linked}),
        inputs=tmp_path,
        edges=Output(output),
    )
    return open_edges(output)


LINKS = [
    ("a", "b"),
    ("a", "B"),
    ("b", "b"),
    ("b", "A"),
    ("c", "C"),
    ("c", "gone"),
    ("a", "G"),
    ("B", "c"),
    ("c", "gone"),
]
REDIRECTS = {"A": "a", "B": "b", "C": "c", "G": "lost"}


def test_links_are_resolved_and_broken_ones_dropped(tmp_path: Path) -> None:
    folder = from_pages(tmp_path, DROP, "abcd", LINKS, REDIRECTS)
    assert rows(folder) == [(url(s), url(t)) for s, t in [("a", "b"), ("a", "b"), ("b", "a"), ("b", "c")]]
    assert vertices_of(folder, "name") == [url(name) for name in "abcd"]
    assert folder.counts == {
        "read": 9, "edges": 4, "broken": 3, "dropped_broken": 3, "self_loops": 2, "dropped_self_loops": 2,
        "redirected": 3,
    }  # fmt: skip


def test_kept_broken_links_lead_to_vertices_named_by_the_address(tmp_path: Path) -> None:
    folder = from_pages(tmp_path, KEEP, "abcd", LINKS, REDIRECTS)
    expected = [
        ("a", "b"),
        ("a", "b"),
        ("b", "b"),
        ("b", "a"),
        ("c", "c"),
        ("b", "c"),
        *[("c", "gone")] * 2,
        ("a", "G"),
    ]
    assert rows(folder) == sorted((url(s), url(t)) for s, t in expected)
    assert vertices_of(folder, "name") == sorted(url(name) for name in [*"abcd", "gone", "G"])


def test_pages_without_links_are_vertices(tmp_path: Path) -> None:
    folder = from_pages(tmp_path, DROP, "ab", [], {})
    assert (rows(folder), vertices_of(folder, "name")) == ([], [url("a"), url("b")])


def test_pages_of_which_none_is_a_document_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"documents holds no document: .* parse\.json"):
        from_pages(tmp_path, DROP, "", [], {})


def test_documents_and_links_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match=f"a link comes from page {vertex_id(url('x'))}, which is not a document"):
        from_pages(tmp_path, DROP, "ab", [("x", "a")], {})
    with pytest.raises(IntegrityError, match=f"documents {url('a')} and {url('a')} have the same id"):
        from_pages(tmp_path, DROP, "aa", [], {})


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    links=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcABxy")), max_size=20),
    rules=st.sampled_from(BOTH),
)
def test_links_are_those_of_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, links: list[tuple[str, str]], rules: EdgeRules
) -> None:
    aliases = {"A": "a", "B": "b"}
    folder = from_pages(tmp_path_factory.mktemp("pages"), rules, "abc", links, aliases)
    resolved = [(source, aliases.get(target, target)) for source, target in links]
    expected = Counter(
        (url(s), url(t))
        for s, t in resolved
        if (t in "abc" or rules.broken == "keep") and (s != t or rules.self_loops == "keep")
    )
    assert Counter(rows(folder)) == expected
