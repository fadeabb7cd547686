"""Dumps of a wiki are read as they were written, and links are resolved as a dictionary of titles resolves them."""

from __future__ import annotations

import gzip
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whitewater.config.cluster import Cluster
from whitewater.config.pagerank import EdgeRules, Wikipedia
from whitewater.devices import resolve
from whitewater.errors import InputError
from whitewater.pagerank.documents import open_documents
from whitewater.pagerank.edge_files import text_files
from whitewater.pagerank.edges import edges
from whitewater.pagerank.edges_folder import EdgesFolder, open_edges
from whitewater.pagerank.vertex_ids import vertex_id
from whitewater.pagerank.wikipedia_sql import read_rows
from whitewater.step import Inputs, Output, Run
from whitewater.store import write_json

Row = tuple[Any, ...]
ESCAPES = {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\r": "\\r", "\0": "\\0", "\x1a": "\\Z"}
COLUMNS = {
    "page": ["page_id", "page_namespace", "page_title", "page_is_redirect", "page_random", "page_lang"],
    "redirect": ["rd_from", "rd_namespace", "rd_title", "rd_interwiki", "rd_fragment"],
    "linktarget": ["lt_id", "lt_namespace", "lt_title"],
    "pagelinks": ["pl_from", "pl_from_namespace", "pl_target_id"],
}
OLD_LINKS = ["pl_from", "pl_namespace", "pl_title", "pl_from_namespace"]


def no_list(folder: Path) -> Path:
    """Write a list of inputs without any, so that no checksum is compared."""
    write_json(folder / "inputs.json", {"files": []})
    return folder / "inputs.json"


def sql(value: Any, introducer: str = "") -> str:
    if value is None:
        return "NULL"
    return f"{introducer}'{''.join(ESCAPES.get(c, c) for c in value)}'" if isinstance(value, str) else str(value)


def dump(
    table: str, columns: list[str], rows: list[Row], *, lines: int = 3, between: str = "", end: bool = True
) -> str:
    """Write rows as mysqldump does, some a statement; ``between`` stands between the rows of a statement."""
    statements = [rows[start : start + lines] for start in range(0, len(rows), lines)]
    body = "".join(
        f"INSERT INTO `{table}` VALUES {between}"
        + f",{between}".join(f"({','.join(map(sql, row))})" for row in statement)
        + ";\n"
        for statement in statements
    )
    definitions = "".join(f"  `{column}` int(8) unsigned NOT NULL DEFAULT 0,\n" for column in columns)
    head = f"-- MySQL dump 10.19  Distrib 10.5\n--\nDROP TABLE IF EXISTS `{table}`;\n/*!40101 SET x = 1 */;\n"
    create = f"CREATE TABLE `{table}` (\n{definitions}  PRIMARY KEY (`{columns[0]}`)\n) ENGINE=InnoDB;\n"
    rest = f"/*!40000 ALTER TABLE `{table}` ENABLE KEYS */;\nUNLOCK TABLES;\n"
    return head + create + body + rest + ("-- Dump completed on 2026-11-01\n" if end else "")


def read(path: Path, table: str, columns: dict[str, Any]) -> list[Row]:
    found = []
    for rows in read_rows(path, table, columns):
        values = []
        for name, kind in columns.items():
            column = rows.columns[name].tolist()
            if kind == "text":
                column = [bytes(rows.text[s >> 32 : (s >> 32) + (s & 0xFFFFFFFF)]).decode() for s in column]
            values.append(column)
        found += list(zip(*values, strict=True))
    return found


TITLES = st.text(st.sampled_from("ab_'\"\\();,\n\r\0\x1aäNULL日 -") | st.characters(codec="utf-8"), max_size=12)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.integers(-(10**18) + 1, 10**18 - 1), TITLES, st.none() | st.floats(allow_nan=False), st.none() | TITLES
        ),
        max_size=9,
    ),
    lines=st.integers(1, 4),
    between=st.sampled_from(["", "\n", " "]),
    block=st.integers(200, 400),
)
def test_rows_are_read_as_they_were_written(
    tmp_path: Path, rows: list[Row], lines: int, between: str, block: int
) -> None:
    path = tmp_path / "dump.sql"
    path.write_text(dump("page", ["n", "title", "random", "note"], rows, lines=lines, between=between), newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files.lines, "__kwdefaults__", {"block": block * 4})
        assert read(path, "page", {"n": "integer", "title": "text"}) == [row[:2] for row in rows]
        assert read(path, "page", {"note": "text", "n": "integer"}) == [(row[3] or "", row[0]) for row in rows]


def test_quotes_may_be_doubled_and_strings_introduced(tmp_path: Path) -> None:
    path = tmp_path / "dump.sql"
    path.write_text(
        "CREATE TABLE `page` (\n  `a` x,\n  `b` y\n);\nINSERT INTO `page` VALUES (_binary 'it''s',1),('',2);\n"
    )
    assert read(path, "page", {"a": "text", "b": "integer"}) == [("it's", 1), ("", 2)]


HEAD = "CREATE TABLE `page` (\n  `page_id` int,\n  `page_title` varbinary(255)\n);\n"
BOTH: dict[str, Any] = {"page_id": "integer", "page_title": "text"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("<html>", "is no SQL dump"),
        ("", "is no SQL dump|is cut off"),
        ("INSERT INTO `page` VALUES (1,'a');\n" + HEAD, "is no SQL dump: no CREATE TABLE stands at its beginning"),
        (HEAD.replace("`page`", "`redirect`"), "is the dump of table redirect, not of page"),
        (HEAD.replace("page_title", "page_name"), "has no column page_title; it has page_id, page_name"),
        (HEAD + "INSERT INTO `page` VALUES (1,'a'),(2,'b", "line 5: the row"),
        (HEAD + "INSERT INTO `page` VALUES (1,'a'),(2", "line 5: the row"),
        (HEAD + "INSERT INTO `page` VALUES (1,'a'),\n", "is cut off"),
        (HEAD + "INSERT INTO `page` VALUES (1,'a')", "is cut off"),
        (HEAD + "INSERT INTO `page` VALUES (1,'a',2);\n", "line 5: the row"),
        (HEAD + "INSERT INTO `page` VALUES (1);\n", "line 5: the row"),
        (HEAD + "INSERT INTO `page` VALUES (x,'a');\n", "line 5: the row"),
        (HEAD + "INSERT INTO `page` VALUES ('1','a');\n", "line 5: the row"),
        (HEAD + "INSERT INTO `page` VALUES (1,2);\n", "line 5: the row"),
        (HEAD + "INSERT INTO `page` VALUES (1,'a')x;\n", "line 5: the row"),
        (HEAD + "INSERT INTO `page` VALUES (12345678901234567890,'a');\n", "line 5: the row"),
        ("-- MySQL dump 10\n" + HEAD + "INSERT INTO `page` VALUES (1,'a');\n", "is cut off"),
    ],
)
def test_what_is_no_whole_dump_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "page.sql"
    path.write_text(content)
    with pytest.raises(InputError, match=rf"page\.sql.*({problem})"):
        read(path, "page", BOTH)


def test_titles_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "page.sql"
    path.write_bytes(HEAD.encode() + b"INSERT INTO `page` VALUES (1,'\xff');\n")
    with pytest.raises(InputError, match="has a title that is not UTF-8"):
        read(path, "page", BOTH)


Wiki = dict[str, list[Row]]


def run(
    tmp_path: Path, wiki: Wiki, rules: EdgeRules, namespaces: tuple[int, ...] = (0,), threads: int = 1
) -> EdgesFolder:
    files: dict[str, list[str]] = {}
    for table, rows in wiki.items():
        columns = OLD_LINKS if table == "pagelinks" and "linktarget" not in wiki else COLUMNS[table]
        path = tmp_path / f"{table}.sql.gz"
        path.write_bytes(gzip.compress(dump(table, columns, rows).encode()))
        files[table] = [str(path)]
    described = {"format": 1, "source": "wikipedia", "pages": 0, "counts": {}, "files": files}
    write_json(
        tmp_path / "source.json", described | {"settings": Wikipedia(namespaces=namespaces).model_dump(mode="json")}
    )
    output = Path(tempfile.mkdtemp(dir=tmp_path)) / "edges"
    step = Run("pagerank", "edges", resolve("cpu"), rules, threads, Cluster())
    edges(
        step, fetched=tmp_path, documents=Inputs({}), links=Inputs({}), inputs=no_list(tmp_path), edges=Output(output)
    )
    return open_edges(output)


def by_names(folder: EdgesFolder) -> list[tuple[str, str]]:
    vertices = folder.vertices()
    assert vertices is not None
    names = dict(zip(vertices["vertex"].to_pylist(), vertices["name"].to_pylist(), strict=True))
    assert all(vertex == vertex_id(name) for vertex, name in names.items())
    tables = [pq.ParquetFile(path).read_row_group(index) for path, index, _ in folder.row_groups()]
    counts = folder.counts
    assert counts["read"] == counts["edges"] + sum(n for name, n in counts.items() if name.startswith("dropped_"))
    return sorted((names[row["source"]], names[row["target"]]) for table in tables for row in table.to_pylist())


def page(number: int, title: str, *, redirect: int = 0, namespace: int = 0) -> Row:
    return number, namespace, title, redirect, 0.25, None


WIKI: Wiki = {
    "page": [
        page(1, "Tim_Berners-Lee"),
        page(2, "O'Reilly_(media);"),
        page(9, 'A"B\\'),
        page(4, "TBL", redirect=1),
        page(5, "T", redirect=1),
        page(6, "Loop_1", redirect=1),
        page(7, "Loop_2", redirect=1),
        page(8, "To_nowhere", redirect=1),
        page(10, "Elsewhere", redirect=1),
        page(11, "Lost", redirect=1),
        page(12, "Physics", namespace=14),
    ],
    "redirect": [
        (4, 0, "Tim_Berners-Lee", "", ""),
        (5, 0, "TBL", None, "x"),
        (6, 0, "Loop_2", "", ""),
        (7, 0, "Loop_1", "", ""),
        (8, 0, "Missing", "", ""),
        (10, 0, "Tim_Berners-Lee", "de", ""),
    ],
    "linktarget": [
        (100, 0, "Tim_Berners-Lee"), (101, 0, "T"), (102, 0, "O'Reilly_(media);"), (103, 0, 'A"B\\'),
        (104, 0, "Loop_1"), (105, 0, "To_nowhere"), (106, 0, "Elsewhere"),
        (107, 0, "Red_link"), (108, 14, "Physics"), (109, 0, "Lost"),
    ],
    "pagelinks": [
        (2, 0, 100), (2, 0, 101), (9, 0, 101), (1, 0, 102), (1, 0, 103), (1, 0, 101), (9, 0, 104), (9, 0, 105),
        (9, 0, 106), (9, 0, 107), (9, 0, 109), (9, 0, 108), (4, 0, 100), (12, 14, 100), (77, 0, 100), (9, 0, 777),
    ],
}  # fmt: skip
EXPECTED = [
    ('A"B\\', "Tim Berners-Lee"),
    ("O'Reilly (media);", "Tim Berners-Lee"),
    ("O'Reilly (media);", "Tim Berners-Lee"),
    ("Tim Berners-Lee", 'A"B\\'),
    ("Tim Berners-Lee", "O'Reilly (media);"),
]
COUNTED = {
    "read": 16, "edges": 5, "broken": 5, "dropped_broken": 5, "self_loops": 1, "dropped_self_loops": 1, "redirected": 3,
    "redirects": 2, "redirects_in_loops": 2, "dropped_other_namespaces": 2, "dropped_from_redirects": 1,
    "dropped_unknown_sources": 1, "dropped_unknown_targets": 1,
}  # fmt: skip


def old(wiki: Wiki) -> Wiki:
    """Return the same dumps as they were before 2024, without the link whose target is not known."""
    titles = {number: (namespace, title) for number, namespace, title in wiki["linktarget"]}
    links = [(s, *titles[target], namespace) for s, namespace, target in wiki["pagelinks"] if target in titles]
    return {"page": wiki["page"], "redirect": wiki["redirect"], "pagelinks": links}


def test_redirects_are_resolved_and_every_other_link_is_counted(tmp_path: Path) -> None:
    folder = run(tmp_path, WIKI, EdgeRules())
    assert by_names(folder) == EXPECTED
    assert folder.counts == COUNTED
    older = run(tmp_path, old(WIKI), EdgeRules())
    assert by_names(older) == EXPECTED
    assert older.counts == COUNTED | {"read": 15, "dropped_unknown_targets": 0}


@pytest.mark.parametrize("wiki", [WIKI, old(WIKI)], ids=["new", "old"])
def test_kept_broken_links_lead_to_the_titles_that_are_missing(tmp_path: Path, wiki: Wiki) -> None:
    folder = run(tmp_path, wiki, EdgeRules(broken="keep"))
    missing = ["Loop 1", "To nowhere", "Elsewhere", "Red link", "Lost"]
    assert by_names(folder) == sorted([*EXPECTED, *(('A"B\\', title) for title in missing)])


@pytest.mark.parametrize("wiki", [WIKI, old(WIKI)], ids=["new", "old"])
def test_namespaces_without_pages_are_refused(tmp_path: Path, wiki: Wiki) -> None:
    with pytest.raises(InputError, match=r"no page in the namespaces 7, 9, .*wikipedia\.namespaces"):
        run(tmp_path, wiki, EdgeRules(), namespaces=(7, 9))


def test_a_table_of_targets_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no rows, but pagelinks names targets by number"):
        run(tmp_path, WIKI | {"linktarget": []}, EdgeRules())


def test_other_namespaces_have_their_number_ahead_of_the_title(tmp_path: Path) -> None:
    folder = run(tmp_path, WIKI, EdgeRules(), namespaces=(0, 14))
    assert by_names(folder) == sorted([*EXPECTED, ('A"B\\', "14:Physics"), ("14:Physics", "Tim Berners-Lee")])


def test_articles_are_documents_with_a_title(tmp_path: Path) -> None:
    folder = run(tmp_path, WIKI, EdgeRules(broken="keep"))
    opened = open_documents(folder.path)
    [table] = opened.read()
    assert sorted(table["title"].to_pylist()) == sorted(["Tim Berners-Lee", "O'Reilly (media);", 'A"B\\'])
    assert table["url"] == table["title"]
    assert table["vertex"].to_pylist() == sorted(map(vertex_id, table["title"].to_pylist()))
    aliases = {vertex_id(name): vertex_id("Tim Berners-Lee") for name in ("T", "TBL")}
    found = opened.aliases()
    assert dict(zip(found["alias"].to_pylist(), found["vertex"].to_pylist(), strict=True)) == aliases


def test_dumps_that_are_missing_or_lack_columns_are_named(tmp_path: Path) -> None:
    without = {table: rows for table, rows in WIKI.items() if table != "redirect"}
    with pytest.raises(InputError, match=r"no dump of table redirect. Set pagerank\.fetch\.wikipedia\.redirect"):
        run(tmp_path, without, EdgeRules())
    run(tmp_path, WIKI, EdgeRules())
    source = (tmp_path / "source.json").read_text()
    (tmp_path / "source.json").write_text(source.replace('"linktarget": [', '"other": ['))
    step = Run("pagerank", "edges", resolve("cpu"), EdgeRules(), 1, Cluster())
    with pytest.raises(InputError, match=r"names targets by number. Set pagerank\.fetch\.wikipedia\.linktarget"):
        edges(step, fetched=tmp_path, documents=Inputs({}), links=Inputs({}), inputs=no_list(tmp_path),
              edges=Output(tmp_path / "out"))  # fmt: skip
    twice = WIKI | {"page": [*WIKI["page"], page(1, "Again")]}
    with pytest.raises(InputError, match="two rows have page_id 1"):
        run(tmp_path, twice, EdgeRules())


def follow(title: str, redirects: dict[str, str | None], articles: set[str]) -> str | None:
    """Return the article that a title leads to."""
    seen: set[str] = set()
    current: str | None = title
    while current in redirects and current not in seen:
        seen.add(current)
        current = redirects[current]
    return current if current in articles else None


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    # The first one is an article: a wiki without any is refused.
    kinds=st.lists(st.integers(-2, 14), max_size=13).map(lambda kinds: [-1, *kinds]),
    links=st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=30),
)
def test_links_are_those_of_a_dictionary(tmp_path: Path, kinds: list[int], links: list[tuple[int, int]]) -> None:
    # A page is an article (-2, -1), or redirects to the page of a number, which may not exist.
    titles = [f"P{number}" for number in range(15)]
    articles = {titles[number] for number, kind in enumerate(kinds) if kind < 0}
    redirects: dict[str, str | None] = {titles[number]: titles[kind] for number, kind in enumerate(kinds) if kind >= 0}
    wiki = {
        "page": [page(number, titles[number], redirect=int(kind >= 0)) for number, kind in enumerate(kinds)],
        "redirect": [(number, 0, titles[kind], "", "") for number, kind in enumerate(kinds) if kind >= 0],
        "linktarget": [(number + 50, 0, title) for number, title in enumerate(titles)],
        "pagelinks": [(source, 0, target + 50) for source, target in links],
    }
    folder = run(tmp_path, wiki, EdgeRules(), threads=2)
    resolved = [(titles[source], follow(titles[target], redirects, articles)) for source, target in links]
    expected = Counter((s, t) for s, t in resolved if s in articles and t is not None and s != t)
    assert Counter(by_names(folder)) == expected
