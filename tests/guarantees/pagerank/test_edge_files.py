"""Files of edges: every line is an edge or is counted; a faulty line or a cut file is named with its file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.guarantees.running import Clone, Ended

GRAPH = "data/pagerank/edges"
COUNTS = f"{GRAPH}/edges.json"
KINDS = ("lines", "comments", "empty_lines", "headers")
BANNER = "%%MatrixMarket matrix coordinate"


def read(clone: Clone, files: Mapping[str, str | bytes], **settings: Any) -> Ended:
    """Write files, and read those whose names begin with e as edges, and those with v as vertices."""
    for name, content in files.items():
        (clone / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    named = {"files": sorted(name for name in files if name[0] == "e")}
    vertices = {"vertices": [name for name in files if name[0] == "v"]}
    return clone.run("pagerank", {"fetch": {"source": "edges", "edges": {**named, **vertices, **settings}}}, GRAPH)


def edges(clone: Clone) -> set[tuple[Any, Any]]:
    """Return the edges, by the names of their ends where these have any."""
    found = pd.concat([pd.read_parquet(path) for path in (clone / GRAPH).glob("edges-*.parquet")])
    pairs = found[["source", "target"]]
    if (clone / f"{GRAPH}/vertices.parquet").exists():
        vertices = pd.read_parquet(clone / f"{GRAPH}/vertices.parquet")
        if "name" in vertices:
            pairs = pairs.replace(dict(zip(vertices["vertex"], vertices["name"], strict=True)))
    return set(pairs.itertuples(index=False, name=None))


def counts(clone: Clone, names: Iterable[str] = KINDS) -> list[int]:
    """Return counts of the lines of files of text; each is an edge or of a kind that is counted."""
    found = clone.json(COUNTS)["counts"]
    assert found["lines"] == found["read"] + sum(found[name] for name in KINDS[1:])
    return [found.get(name, 0) for name in names]


# ---- comments


def test_a_name_that_begins_as_a_comment_is_an_end_of_an_edge(fresh: Clone) -> None:
    files = {"e.tsv": "Java\tC\n#hash\tC\n%41\tJava\n\nC\t#hash\n", "e2.tsv": "# exported\nC\t%41\n#1\tC\n"}
    ended = read(fresh, files, ids="text", delimiter="tab")
    assert ended.status == 0, ended.terminal
    assert edges(fresh) == {
        ("Java", "C"), ("#hash", "C"), ("%41", "Java"), ("C", "#hash"), ("C", "%41"), ("#1", "C"),
    }  # fmt: skip
    assert counts(fresh) == [8, 1, 1, 0]
    assert "8 lines, of which 1 are comments, 1 empty and 0 headers" in ended.terminal
    record = fresh.json("logs/pagerank/edges.json")
    assert '"comments": 1' in json.dumps(record)


def test_below_a_header_no_line_is_a_comment_and_vertices_follow_the_same_rule(fresh: Clone) -> None:
    table = "# of a wiki\n# in 2024\nsource,target\n#hash,C\n%41,#hash\n"
    ended = read(fresh, {"e.csv": table, "v.csv": "name\n#hash\n%41\nC\n"}, ids="text", delimiter="comma", header=True)
    assert ended.status == 0, ended.terminal
    assert edges(fresh) == {("#hash", "C"), ("%41", "#hash")}
    assert counts(fresh) == [5, 2, 0, 1]
    assert counts(fresh, [f"vertex_{kind}" for kind in KINDS]) == [4, 0, 0, 1]


def test_a_key_says_which_lines_are_comments(fresh: Clone) -> None:
    web = "# a b\nx y\n# a b\n%1 y\n"
    ended = read(fresh, {"e.txt": web}, ids="text", comment="#")
    assert ended.status == 0, ended.terminal
    assert (edges(fresh), counts(fresh)) == ({("x", "y"), ("%1", "y")}, [4, 2, 0, 0])
    ended = read(fresh, {"e.txt": "%1 y\nx #2\n"}, ids="text", comment="none")
    assert ended.status == 0, ended.terminal
    assert (edges(fresh), counts(fresh)) == ({("%1", "y"), ("x", "#2")}, [2, 0, 0, 0])


def test_a_comment_that_could_be_an_edge_is_pointed_out(fresh: Clone) -> None:
    ended = read(fresh, {"e.tsv": "%41\tJava\nC\tJava\n"}, ids="text", delimiter="tab")
    assert ended.status == 0, ended.terminal
    assert counts(fresh) == [2, 1, 0, 0]
    assert "e.tsv: the first line with # or % is read as a comment, but could be an edge" in ended.terminal
    assert "pagerank.fetch.edges.comment" in ended.terminal


# ---- what a file declares


def matrix(kind: str, *lines: str) -> str:
    return "\n".join([f"{BANNER} {kind}", *lines, ""])


def test_matrices_that_are_not_what_they_declare_are_all_named(fresh: Clone) -> None:
    files: dict[str, str | bytes] = {
        "e1.mtx": matrix("pattern general", "3 3 5", "1 2"),
        "e2.mtx": matrix("pattern general", "3 3 1", "1 2", "2 3"),
        "e3.mtx.gz": gzip.compress(matrix("integer general", "% made", "3 3 2", "1 2 7").encode()),
    }
    message = read(fresh, files).message
    assert message.startswith("InputError: 3 files cannot be read:")
    for said in ("e1.mtx declares 5 entries, but has 1:", "e2.mtx declares 1 entries, but has 2:",
                 "e3.mtx.gz declares 2 entries, but has 1:"):  # fmt: skip
        assert said in message
    assert not (fresh / GRAPH).exists()


def test_indices_beyond_the_declared_size_are_named_with_their_line(fresh: Clone) -> None:
    files: dict[str, str | bytes] = {
        "e1.mtx": matrix("pattern general", "3 4 2", "3 4", "1 5"),
        "e2.mtx": matrix("pattern general", "3 4 1", "4 1"),
        "e3.mtx": matrix("pattern general", "3 4 1", "0 1"),
    }
    message = read(fresh, files).message
    for said in ("e1.mtx, line 4: an index", "e2.mtx, line 3: an index", "e3.mtx, line 3: an index"):
        assert said in message


def test_kinds_of_matrices_that_are_no_graphs_are_told_apart(fresh: Clone) -> None:
    files: dict[str, str | bytes] = {
        "e1.mtx": matrix("real skew-symmetric", "3 3 1", "2 1 1.5"),
        "e2.mtx": matrix("complex hermitian", "3 3 1", "2 1 1.5 0"),
        "e3.mtx": "%%MatrixMarket matrix array real general\n1 1\n0\n",
        "e4.mtx": matrix("complex general", "3 3 1", "2 1 1.5 0"),
        "e5.mtx": matrix("real genral", "3 3 1", "2 1 1.5"),
        "e6.mtx": matrix("real general", "3 3", "2 1 1.5"),
    }
    message = read(fresh, files).message
    lines = {line.split()[0].rstrip(":"): line for line in message.splitlines()[1:]}
    words = ("opposite sign", "complex", "coordinate", "complex", "general", "line of sizes")
    assert sorted(lines) == sorted(files)
    for name, word in zip(files, words, strict=True):
        assert word in lines[name]


def test_a_whole_matrix_is_read(fresh: Clone) -> None:
    ended = read(fresh, {"e.mtx": matrix("real symmetric", "% a comment", "3 3 2", "2 1 0.5", "3 2 7")},
                 weighted=True, directed=False)  # fmt: skip
    assert ended.status == 0, ended.terminal
    assert edges(fresh) == {(2, 1), (3, 2)}
    assert counts(fresh) == [5, 2, 0, 1]


def test_a_file_with_fewer_edges_than_its_comment_tells_of_is_pointed_out(fresh: Clone) -> None:
    whole, cut = "# Nodes: 3 Edges: 2\n# From\tTo\n1\t2\n2\t3\n", "# Nodes: 3 Edges: 9\n1\t2\n"
    ended = read(fresh, {"e1.txt": whole, "e2.txt": cut})
    assert ended.status == 0, ended.terminal
    assert "e2.txt: a comment tells of 9 edges, but it has 1." in ended.terminal
    assert "e1.txt: a comment" not in ended.terminal
    assert counts(fresh) == [6, 3, 0, 0]


# ---- weights


def test_weights_that_no_sum_can_hold_are_named_with_file_and_line(fresh: Clone) -> None:
    bad = {"e1.txt": "1e308", "e2.txt": "-1", "e3.txt": "nan", "e4.txt": "inf", "e5.txt": "0"}
    files: dict[str, str | bytes] = {name: f"1 2 1\n2 3 {weight}\n" for name, weight in bad.items()}
    frame = pd.DataFrame({"source": [1], "target": [2], "weight": [1e308]})
    files["e6.parquet"] = frame.to_parquet()
    message = read(fresh, files, weighted=True).message
    assert message.startswith("InputError: 6 files cannot be read:")
    for name in bad:
        assert f"{name}, line 2: a weight is not a number above 0 and up to 1e+302" in message
    assert "e6.parquet, row group 0: column 'weight' has 1e+308" in message
    frame = pd.DataFrame({"source": [1], "target": [2], "weight": ["heavy"]})
    message = read(fresh, {"e7.parquet": frame.to_parquet()}, weighted=True).message
    assert "e7.parquet, row group 0: column 'weight' cannot be read as weights" in message


def test_weights_that_are_not_read_are_pointed_out(fresh: Clone) -> None:
    table = pd.DataFrame({"source": [1, 2], "target": [2, 3], "weight": [5.0, 7.0]})
    ended = read(fresh, {"e1.txt": "1 2\n2 3\n", "e2.txt": "1 2\n2 3 7\n", "e3.parquet": table.to_parquet()})
    assert ended.status == 0, ended.terminal
    assert "e2.txt and 1 more files: a third field, or a column 'weight', is not read" in ended.terminal
    assert "pagerank.fetch.edges.weighted" in ended.terminal.replace("\n", "")
    assert fresh.json(COUNTS)["counts"]["unread_fields"] == 1
    ended = read(fresh, {"e4.csv": table.to_csv(index=False)}, header=True, delimiter="comma")
    assert ended.status == 0, ended.terminal
    assert "e4.csv: a third field, or a column 'weight', is not read" in ended.terminal


def test_a_comma_in_a_quoted_name_of_a_column_shifts_no_other(fresh: Clone) -> None:
    lines = '"x,y",source,target,extra\n"p,q",1,2,9\n"p,q",2,3,9\n'
    ended = read(fresh, {"e.csv": lines}, header=True, delimiter="comma")
    assert ended.status == 0, ended.terminal
    assert edges(fresh) == {(1, 2), (2, 3)}


# ---- names of vertices


def test_names_that_are_cut_at_a_blank_are_pointed_out_and_counted(fresh: Clone) -> None:
    ended = read(fresh, {"e.txt": "1 2\n2 3\n", "v.txt": "1 New York\n2 New Delhi\n3 c\n"})
    assert ended.status == 0, ended.terminal
    assert "2 lines of v.txt have fields after the name, which are not read" in " ".join(ended.terminal.split())
    assert fresh.json(COUNTS)["counts"]["vertex_unread_fields"] == 2


def test_names_that_are_not_utf_8_are_refused_though_ids_are_integers(fresh: Clone) -> None:
    message = read(fresh, {"e.txt": "1 2\n", "v.txt": "1 b\n2 Zürich\n".encode("latin-1")}).message
    assert "v.txt, line 2: the line is not UTF-8" in message


def test_names_of_parquet_may_be_of_any_kind_of_text(fresh: Clone) -> None:
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1, 2], "name": pa.array(["a", "b"], pa.string_view())}), buffer)
    ended = read(fresh, {"e.txt": "1 2\n", "v.parquet": buffer.getvalue().to_pybytes()})
    assert ended.status == 0, ended.terminal
    assert edges(fresh) == {("a", "b")}


# ---- mistakes of format


def test_mistakes_of_format_have_their_own_sentence_and_all_files_are_named(fresh: Clone) -> None:
    said = {
        "e1.txt": ("1;2\n3;4\n", "line 1: fields are not separated as delimiter 'whitespace' says, but by semicolon"),
        "e2.txt": ("1 2\n3,4\n", "line 2: fields are not separated as delimiter 'whitespace' says, but by comma"),
        "e3.txt": ("from to\n1 2\n", "line 1: the first line seems to name the columns"),
        "e4.txt": ("1 2\n# c\n3 4\n", "line 2: the line begins with '#', but is not at the head of the file"),
        "e5.txt": ("1 2\n3 4\r5 6\n", "line 2: a carriage return (CR) stands within the line"),
    }  # fmt: skip
    message = read(fresh, {name: content for name, (content, _) in said.items()}).message
    assert message.startswith("InputError: 5 files cannot be read:")
    assert len(message.splitlines()) == 6
    for name, (_, sentence) in said.items():
        assert f"{name}, {sentence}" in message
    assert "pagerank.fetch.edges.header" in message
    assert "pagerank.fetch.edges.comment to '#'" in message


def test_a_header_that_would_be_an_edge_between_names_is_told(fresh: Clone) -> None:
    message = read(fresh, {"e.tsv": "source\ttarget\nJava\tC\n"}, ids="text", delimiter="tab").message
    assert message.startswith("ConfigError: e.tsv: the first line names the columns source, target.")
    assert "pagerank.fetch.edges.header" in message


def test_files_that_are_no_lines_of_utf_8_are_all_named_and_not_printed(fresh: Clone) -> None:
    many = "".join(f"{n} {n + 1}\r" for n in range(5_000))
    files: dict[str, str | bytes] = {
        "e1.txt": many,
        "e2.txt": f"# c\r{many}",
        "e3.txt": "1 2\n".encode("utf-16"),
        "e4.txt": "1 2\n".encode("utf-16-le"),
        "e5.txt.gz": gzip.compress(many.encode() * 9)[:-40],
    }
    message = read(fresh, files).message
    assert len(message) < 1_500
    for said in ("e1.txt, line 1: a carriage return", "e2.txt, line 1: a carriage return",
                 "e3.txt is not text in UTF-8", "e4.txt is not text in UTF-8",
                 "e5.txt.gz is a gzip file that is cut off"):  # fmt: skip
        assert said in message


def test_a_column_that_is_there_twice_is_refused(fresh: Clone) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["source", "target", "source"])
    pq.write_table(twice, fresh / "e1.parquet")
    files: dict[str, str | bytes] = {
        "e1.parquet": Path(fresh / "e1.parquet").read_bytes(),
        "e2.csv": "source,target,target\n1,2,3\n",
        "e3.csv": "from,to\n1,2\n",
        "e4.csv": f"\x1b[2J{'a' * 5_000},to\n1,2\n",
    }
    message = read(fresh, files, header=True, delimiter="comma").message
    assert message.startswith("ConfigError: 4 files cannot be read:")
    for said in (
        "more than one column 'source'",
        "more than one column 'target'",
        "no column 'source'; it has from, to",
    ):
        assert said in message
