"""Files of edges are read as pandas, Python and SciPy read them, and what cannot be read is named by file and line."""

from __future__ import annotations

import gzip
import math
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.helpers.real_data import needs_real_data, real_data
from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.graphs.config import EdgeFiles
from whitewater.graphs.edge_files import text
from whitewater.graphs.edge_files.reading import PARQUET, edges_of_group, vertices_of_group
from whitewater.graphs.edges_folder import Batch
from whitewater.graphs.vertex_ids import merge_vertices, vertex_id, vertex_table
from whitewater.io import text_files

FROM_A_FIXTURE = [HealthCheck.function_scoped_fixture]
SEPARATORS = {"whitespace": None, "tab": "\t", "comma": ",", "space": " "}
WHOLE = 1 << 40


def units_of(path: Path, options: EdgeFiles, size: int = WHOLE) -> list[text.Unit]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "RANGE_BYTES", size)
        file = text.open_file(path, options)
        assert file
        return text.units(file)


def pairs(path: Path, size: int = WHOLE, **options: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a file of pairs; ids of text as names."""
    chosen = EdgeFiles(**options)
    batches = [batch for unit in units_of(path, chosen, size) for batch in text.read_edges(unit, chosen)]
    return [row for batch in batches for row in rows_of(batch)]


def rows_of(batch: Batch) -> list[tuple[Any, ...]]:
    columns = [named(batch, batch.source), named(batch, batch.target)]
    return list(zip(*columns, *([] if batch.weight is None else [batch.weight.tolist()]), strict=True))


def named(batch: Batch, ids: Any) -> list[Any]:
    if batch.names is None:
        return list(ids.tolist())
    names = dict(zip(batch.names["vertex"].to_pylist(), batch.names["name"].to_pylist(), strict=True))
    assert all(vertex_id(name) == vertex for vertex, name in names.items())
    return [names[vertex] for vertex in ids.tolist()]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


IDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)
BLANKS = st.text(" \t", min_size=1, max_size=3)
FILLERS = st.sampled_from(["", "{} 1 2", "{}", "  {} x", " \t"])
ENDS = st.sampled_from(["\n", "\r\n"])


@settings(max_examples=100, deadline=None, suppress_health_check=FROM_A_FIXTURE)
@given(
    data=st.data(), rows=st.lists(st.tuples(IDS, IDS), max_size=12), size=st.integers(1, 200), block=st.integers(1, 40)
)
def test_lines_of_any_form_are_read_in_any_pieces(
    tmp_path: Path, data: st.DataObject, rows: list[tuple[int, int]], size: int, block: int
) -> None:
    lines, mark = [], data.draw(st.sampled_from("#%"))
    for source, target in rows:
        lines += [filler.format(mark) for filler in data.draw(st.lists(FILLERS, max_size=2))]
        blank = data.draw(st.lists(BLANKS, min_size=3, max_size=3))
        sign = "+" if target >= 0 and data.draw(st.booleans()) else ""
        third = data.draw(st.sampled_from(["", " 7", "\tx"]))
        lines.append(f"{blank[0]}{source}{blank[1]}{sign}{target}{third}{blank[2]}")
    content = "".join(line + data.draw(ENDS) for line in lines)
    path = written(tmp_path / "graph", content.removesuffix("\n") if data.draw(st.booleans()) else content)
    zipped = written(
        tmp_path / "graph.gz", gzip.compress(path.read_bytes()[:50]) + gzip.compress(path.read_bytes()[50:])
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "BLOCK_BYTES", block)
        assert pairs(path, size, comment=mark) == rows
        assert pairs(zipped, comment=mark) == rows


WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters='",'), min_size=1, max_size=40
)


@settings(max_examples=60, deadline=None, suppress_health_check=FROM_A_FIXTURE)
@given(rows=st.lists(st.tuples(WORDS, WORDS), max_size=8), delimiter=st.sampled_from(list(SEPARATORS)))
def test_names_keep_their_characters_and_become_the_ids_of_names(
    tmp_path: Path, rows: list[tuple[str, str]], delimiter: str
) -> None:
    spaced = [tuple(f"{name} b" for name in row) for row in rows] if delimiter in {"tab", "comma"} else rows
    separator = SEPARATORS[delimiter] or " \t "
    path = written(tmp_path / "graph", "".join(f"{source}{separator}{target}\n" for source, target in spaced))
    assert pairs(path, ids="text", delimiter=delimiter, comment="none") == spaced


@settings(max_examples=80, deadline=None, suppress_health_check=FROM_A_FIXTURE)
@given(
    weights=st.lists(st.floats(0, 1e300, exclude_min=True), min_size=1, max_size=9),
    form=st.sampled_from([repr, "{:.17e}".format, "{:.25g}".format]),
)
@example(weights=[5e-324, 9.999999999999999e299, 0.1, 123456789012345678.0], form=repr)
def test_weights_become_the_nearest_doubles(tmp_path: Path, weights: list[float], form: Any) -> None:
    path = written(tmp_path / "graph", "".join(f"1 2 {form(weight)}\n" for weight in weights))
    assert [weight for _, _, weight in pairs(path, weighted=True)] == [float(form(weight)) for weight in weights]


def test_columns_are_found_by_the_names_in_the_header(tmp_path: Path) -> None:
    content = '\ufeff# exported\r\n"when",to,from,score\r\n2020,1,2,0.5\r\n2021,"3", 4 ,1e3,\r\n'
    path = written(tmp_path / "graph.csv", content)
    options: dict[str, Any] = {"header": True, "delimiter": "comma", "source_column": "from", "target_column": "to"}
    assert pairs(path, **options, weighted=True, weight_column="score") == [(2, 1, 0.5), (4, 3, 1000.0)]
    assert pairs(path, size=1, **options) == [(2, 1), (4, 3)]
    with pytest.raises(ConfigError, match=r"no column 'weight'.* it has when, to, from, score"):
        pairs(path, **options, weighted=True)
    with pytest.raises(InputError, match="has no header"):
        pairs(written(tmp_path / "empty", "# nothing\n"), header=True)


def test_a_matrix_of_matrix_market_is_read_as_scipy_reads_it(tmp_path: Path) -> None:
    matrix = scipy.sparse.coo_matrix(([0.5, 2.0, 0.25], ([0, 2, 1], [1, 2, 0])), shape=(3, 4))
    scipy.io.mmwrite(tmp_path / "graph.mtx", matrix, comment="a comment")
    expected = [
        (row + 1, column + 1, value) for row, column, value in zip(matrix.row, matrix.col, matrix.data, strict=True)
    ]
    assert pairs(tmp_path / "graph.mtx", weighted=True) == expected


FAULTS: list[tuple[str | bytes, dict[str, Any], str]] = [
    ("# c\n1 2\n\nx 3\n", {}, r"line 4: an id is not an integer: 'x 3'.*edges\.ids to text"),
    ("1 2\n1.0 3\n", {}, "line 2: an id is not an integer"),
    ("1 -\n", {}, "line 1: an id is not an integer"),
    ("1 2\r\n1 9223372036854775808\r\n", {}, r"line 2: an id does not fit 64 bits .*: '1 9223372036854775808'\."),
    ("1 -9223372036854775809\n", {}, "line 1: an id does not fit 64 bits"),
    ("1 99999999999999999999999\n", {}, "line 1: an id does not fit 64 bits"),
    ("1 2\n3\n", {}, "line 2: a field is missing: '3'"),
    ("1 2\n", {"weighted": True}, "line 1: a field is missing"),
    ("1,,2\n", {"delimiter": "comma"}, "line 1: a field is missing"),
    (",2\n", {"delimiter": "comma", "ids": "text"}, "line 1: a field is missing"),
    ("1 2 3 4\n", {}, r"line 1: there are too many fields: '1 2 3 4'.*edges\.layout to adj"),
    ("1 2,3\n", {"delimiter": "comma"}, "line 1: an id is not an integer|line 1: something stands"),
    ("1 2 0\n", {"weighted": True}, "line 1: a weight is not a number above 0 and up to 1e\\+302"),
    ("#a #b 0\n", {"weighted": True, "ids": "text", "comment": "none"}, "line 1: a weight is not"),
    ("a,b c,d 0\n", {"weighted": True, "ids": "text"}, "line 1: a weight is not"),
    ("from to weight\n1 2 1\n", {"weighted": True, "ids": "text"}, "line 1: the first line seems to name the columns"),
    ("1 2 -0.5\n", {"weighted": True}, "line 1: a weight is not"),
    ("1 2 nan\n", {"weighted": True}, "line 1: a weight is not"),
    ("1 2 inf\n", {"weighted": True}, "line 1: a weight is not"),
    ("1 2 1e999\n", {"weighted": True}, "line 1: a weight is not"),
    ("1 2 1e308\n", {"weighted": True}, "line 1: a weight is not"),
    ("1 2 1.12345678901234567890e302\n", {"weighted": True}, "line 1: a weight is not"),
    ("1 2 1\n3 4 1e-999\n", {"weighted": True}, "line 2: a weight is not"),
    ("1 2 -0.12345678901234567\n", {"weighted": True}, "line 1: a weight is not"),
    ('"a,b\nc,d\n', {"delimiter": "comma", "ids": "text"}, "line 1: a quoted field has no end"),
    ('"a""b",c\n', {"delimiter": "comma", "ids": "text"}, "line 1: a quoted field has no end, or quotes in it"),
    (b"\x93NUMPY\x01\x00v\x00{'descr'\n\x00\xff\xfe", {}, r"line 1: a field is missing: .\\x93NUMPY"),
    (b"a b\nc \xff\n", {"ids": "text"}, "line 2: the line is not UTF-8"),
    (b"a b\nc \x00\n", {"ids": "text"}, "line 2: the line has a byte 0"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "options", "problem"), FAULTS)
@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_what_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, content: str | bytes, options: dict[str, Any], problem: str, zipped: bool
) -> None:
    data = content.encode() if isinstance(content, str) else content
    path = written(tmp_path / "graph", gzip.compress(data) if zipped else data)
    with pytest.raises(InputError, match=rf"(?s)graph, {problem}"):
        pairs(path, **options)


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_line_numbers_are_those_of_the_file_wherever_a_unit_begins(
    tmp_path: Path, size: int, zipped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = ("1 2\n" * 99 + "1 2 3 4\n" + "1 2\n" * 50).encode()
    path = written(tmp_path / "graph", gzip.compress(content) if zipped else content)
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 64)
    with pytest.raises(InputError, match="graph, line 100: there are too many fields"):
        pairs(path, size)


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_gzip_file_that_is_cut_off_or_damaged_is_refused(tmp_path: Path, share: float) -> None:
    whole = gzip.compress(b"".join(b"%d %d\n" % (n * 7919 % 1000, n) for n in range(10_000)))
    with pytest.raises(InputError, match=r"graph\.gz is a gzip file that is cut off"):
        pairs(written(tmp_path / "graph.gz", whole[: int(share * len(whole))]))
    spoilt = bytearray(whole)
    spoilt[-6] ^= 1
    with pytest.raises(InputError, match=r"graph\.gz is a damaged gzip file"):
        pairs(written(tmp_path / "graph.gz", bytes(spoilt)))


def test_gzip_may_have_members_and_padding(tmp_path: Path) -> None:
    members = gzip.compress(b"1 2\n3") + gzip.compress(b"") + gzip.compress(b" 4\n") + bytes(100)
    assert pairs(written(tmp_path / "graph.gz", members)) == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("start", "form"), [(b"\x28\xb5\x2f\xfd", "Zstandard"), (b"PK\x03\x04", "ZIP"), (b"BZh9", "bzip2")]
)
def test_other_compression_is_named(tmp_path: Path, start: bytes, form: str) -> None:
    with pytest.raises(InputError, match=f"compressed as {form}"):
        pairs(written(tmp_path / "graph", start + bytes(100)))


def test_files_that_are_absent_or_have_no_line_end_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="absent cannot be read: No such file"):
        pairs(tmp_path / "absent")
    monkeypatch.setattr(text_files, "LONGEST_LINE", 1000)
    with pytest.raises(InputError, match="graph: a line is longer than 1,000 bytes"):
        pairs(written(tmp_path / "graph", b"1" * 2_000))


def adjacency(path: Path, size: int = WHOLE, **options: Any) -> tuple[list[Any], list[tuple[Any, ...]]]:
    chosen = EdgeFiles(layout="adjacency", **options)
    batches = [batch for unit in units_of(path, chosen, size) for batch in text.read_edges(unit, chosen)]
    firsts = [name for batch in batches if batch.firsts is not None for name in named(batch, batch.firsts)]
    return firsts, [row for batch in batches for row in rows_of(batch)]


def test_adjacency_has_a_vertex_and_all_its_targets_a_line(tmp_path: Path) -> None:
    path = written(tmp_path / "graph", "# c\n1 2 3\n\n 5 \n-2\t1\r\n")
    for size in (1, WHOLE):
        assert adjacency(path, size) == ([1, 5, -2], [(1, 2), (1, 3), (-2, 1)])
    assert adjacency(written(path, "a b a\nc\n"), ids="text") == (["a", "c"], [("a", "b"), ("a", "a")])
    with pytest.raises(InputError, match="line 2: an id is not an integer: '3 x'"):
        adjacency(written(path, "1 2\n3 x\n"))


def vertices(path: Path, **options: Any) -> tuple[Counter[str], pa.Table]:
    chosen = EdgeFiles(**options)
    [unit] = units_of(path, chosen)
    counts, [table] = text.read_vertices(unit, chosen)
    return counts, table


def test_vertices_are_ids_or_ids_and_names(tmp_path: Path) -> None:
    path = written(tmp_path / "v", "3\n1\n-5\n")
    assert vertices(path)[1].to_pydict() == {"vertex": [3, 1, -5]}
    rows, table = vertices(
        written(path, "7\torg.example www\t12\n0\tcom.a\t1\n7\torg.example www\t12\n"), delimiter="tab"
    )
    assert (rows["rows"], table.to_pydict()) == (3, {"vertex": [0, 7], "name": ["com.a", "org.example www"]})
    rows, table = vertices(written(path, "b\na\n"), ids="text")
    assert dict(zip(table["name"].to_pylist(), table["vertex"].to_pylist(), strict=True)) == {
        name: vertex_id(name) for name in "ab"
    }
    with pytest.raises(InputError, match="vertex 2 has no name, but others do"):
        vertices(written(path, "1 a\n2\n"))
    with pytest.raises(InputError, match="have a name besides"):
        vertices(written(path, "1 a\n"), ids="text")
    with pytest.raises(InputError, match="line 1: there are too many fields"):
        vertices(written(path, "1 a b c\n"))
    with pytest.raises(IntegrityError, match="vertex 1 has two names"):
        vertices(written(path, "1 a\n1 b\n"))


def parquet_rows(path: Path, **options: Any) -> list[tuple[Any, ...]]:
    chosen = EdgeFiles(**options)
    batches = [batch for unit in PARQUET.row_groups(path) for batch in edges_of_group(unit, chosen)]
    return [row for batch in batches for row in rows_of(batch)]


@pytest.mark.parametrize("type_", [pa.int8(), pa.uint16(), pa.int32(), pa.uint64()], ids=str)
def test_columns_of_parquet_are_read_by_name(tmp_path: Path, type_: pa.DataType) -> None:
    table = pa.table({"to": pa.array([1, 2, 3], type_), "w": [0.5, 1.0, 2.0], "from": pa.array([4, 5, 6], type_)})
    pq.write_table(table, tmp_path / "graph.parquet", row_group_size=2)
    options = {"source_column": "from", "target_column": "to"}
    assert parquet_rows(tmp_path / "graph.parquet", **options) == [(4, 1), (5, 2), (6, 3)]
    weighted = parquet_rows(tmp_path / "graph.parquet", **options, weighted=True, weight_column="w")
    assert weighted == [(4, 1, 0.5), (5, 2, 1.0), (6, 3, 2.0)]


def test_parquet_may_hold_names(tmp_path: Path) -> None:
    path = tmp_path / "graph.parquet"
    pq.write_table(
        pa.table({"source": ["ä", "b", "ä"], "target": pa.array(["b", "c d", "ä"]).dictionary_encode()}), path
    )
    assert parquet_rows(path, ids="text") == [("ä", "b"), ("b", "c d"), ("ä", "ä")]
    pq.write_table(pa.table({"source": ["a", None], "target": ["b", "c"]}), path)
    with pytest.raises(InputError, match=r"graph\.parquet, row group 0: column 'source' has a null or an empty text"):
        parquet_rows(path, ids="text")


def test_columns_of_parquet_that_the_settings_name_wrongly_are_told_with_the_setting(tmp_path: Path) -> None:
    path = tmp_path / "graph.parquet"
    pq.write_table(pa.table({"source": ["a"], "to": ["b"]}), path)
    with pytest.raises(ConfigError, match=r"no column 'target'; it has source, to\. Set .*\.target_column"):
        parquet_rows(path, ids="text")
    with pytest.raises(ConfigError, match=r"column 'source' is text, .* Set pagerank\.fetch\.edges\.ids to text"):
        parquet_rows(path, target_column="to")


@pytest.mark.parametrize("weight", [None, math.nan, 0.0, -1.0, math.inf, 1e303])
def test_weights_of_parquet_are_above_0_and_not_too_large(tmp_path: Path, weight: float | None) -> None:
    path = tmp_path / "graph.parquet"
    pq.write_table(pa.table({"source": [1, 2], "target": [2, 1], "weight": [1.0, weight]}), path)
    with pytest.raises(
        InputError, match=r"graph\.parquet, row group 0: column 'weight' has .* not a number above 0 and up to 1e"
    ):
        parquet_rows(path, weighted=True)


def test_vertices_of_parquet_are_its_first_column_and_names_its_second(tmp_path: Path) -> None:
    def read(columns: dict[str, list[Any]], **options: Any) -> tuple[int, dict[str, list[Any]]]:
        pq.write_table(pa.table(columns), tmp_path / "v.parquet")
        [unit] = PARQUET.row_groups(tmp_path / "v.parquet")
        counts, [table] = vertices_of_group(unit, EdgeFiles(**options))
        return counts["rows"], table.to_pydict()

    assert read({"id": [3, 1], "name": ["c", "a"], "n": [1, 2]}) == (2, {"vertex": [1, 3], "name": ["a", "c"]})
    assert read({"id": [3, 1], "n": [1, 2]}) == (2, {"vertex": [3, 1]})
    rows, found = read({"host": ["x", "y", "x"]}, ids="text")
    assert (rows, sorted(found["name"])) == (3, ["x", "y"])


def test_many_names_are_kept_once_and_tables_of_them_merge() -> None:
    random = np.random.default_rng(5)
    names = [f"{'x' * (n % 70)}{n}" for n in random.integers(0, 4_000, 20_000).tolist()]
    ids = np.array([zlib.crc32(name.encode()) - 2**31 for name in names])
    expected = pd.DataFrame({"vertex": ids, "name": names}).drop_duplicates().sort_values("vertex")
    cuts = [slice(start, start + 3_000) for start in range(0, len(names), 3_000)]
    parts = merge_vertices(vertex_table(pa.array(ids[part]), pa.array(names[part])) for part in cuts)
    for table in (vertex_table(pa.array(ids), pa.array(names)), parts):
        assert table is not None
        assert table.to_pydict() == expected.to_dict("list")


def test_an_id_of_two_names_is_refused_within_a_table_and_between_tables() -> None:
    with pytest.raises(IntegrityError, match="vertex 7 has two names"):
        vertex_table(pa.array([7, 7]), pa.array(["a", "b"]))
    with pytest.raises(IntegrityError, match="vertex 7 has two names"):
        merge_vertices([vertex_table(pa.array([7]), pa.array([name])) for name in "ab"])


@needs_real_data
def test_the_edges_of_snap_are_those_that_pandas_reads() -> None:
    path = real_data("graph", "snap", "email-Eu-core.csv")
    expected = pd.read_csv(path, sep=" ", header=None)
    assert pairs(path, 1000, weighted=True) == list(expected.itertuples(index=False, name=None))
