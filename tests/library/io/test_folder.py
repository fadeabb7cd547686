"""Every format of folders refuses, in one sentence, what is none of its folders, or of another version."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whitewater.errors import InputError, IntegrityError
from whitewater.features import feature_folder, log_folder
from whitewater.genotypes import genotypes as genotype_folder
from whitewater.graphs import edges_folder, graph_folder
from whitewater.io.folder import Format, RowGroupWriter, numbered_files, numbered_path, write_file
from whitewater.text import documents, index_folder
from whitewater.web import pages

FORMAT = Format("thing.json", 2, "thing")
FORMATS: list[tuple[Format, Callable[[Path], Any]]] = [
    (genotype_folder.FORMAT, genotype_folder.open_genotypes),
    (documents.DOCUMENTS, documents.DOCUMENTS.parts),
    (documents.LINKS, documents.LINKS.parts),
    (edges_folder.FORMAT, edges_folder.open_edges),
    (graph_folder.FORMAT, graph_folder.open_graph),
    (index_folder.FORMAT, index_folder.open_index),
    (pages.FORMAT, pages.open_pages),
    (feature_folder.FORMAT, feature_folder.open_features),
    (log_folder.FORMAT, log_folder.open_log),
]


@pytest.mark.parametrize(("described", "opened"), FORMATS, ids=[described.name for described, _ in FORMATS])
def test_a_folder_of_another_kind_or_version_is_refused(
    tmp_path: Path, described: Format, opened: Callable[[Path], Any]
) -> None:
    newer, own = described.version + 1, {"format": described.version}
    for written, message in (
        (None, rf"{described.name} is not a readable JSON file"),
        ([], rf"has format None; this version reads {described.version}\. {described.remedy}"),
        ({"format": 0}, rf"has format 0; this version reads {described.version}\. {described.remedy}"),
        ({"format": newer}, rf"has format {newer}; this version reads {described.version}\. A newer version"),
        (own, rf"{described.name} describes no {described.what}: .*{described.remedy}"),
        ({**own, "more": 1}, rf"{described.name} describes no {described.what}"),
    ):
        if written is not None:
            (tmp_path / described.name).write_text(json.dumps(written))
        with pytest.raises(InputError, match=message):
            opened(tmp_path)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.integers(0, 12), max_size=8), group_rows=st.integers(1, 9))
def test_row_groups_do_not_depend_on_how_the_rows_came(tmp_path: Path, sizes: list[int], group_rows: int) -> None:
    path = tmp_path / "rows.parquet"
    path.unlink(missing_ok=True)
    table = pa.table({"number": np.arange(sum(sizes))})
    with RowGroupWriter(path, table.schema, group_rows=group_rows) as writer:
        for start, size in zip(np.cumsum([0, *sizes]).tolist(), sizes, strict=False):
            writer.write(table.slice(start, size))
    assert path.exists() == bool(sum(sizes))
    groups = FORMAT.row_groups(path, rows=sum(sizes)) if path.exists() else []
    assert [group.rows for group in groups[:-1]] == [group_rows] * len(groups[:-1])
    read = [number for group in groups for number in FORMAT.read_group(group)["number"].to_pylist()]
    assert read == list(range(sum(sizes)))


def test_while_a_task_runs_again_its_file_stays_whole_and_an_unfinished_one_is_removed(tmp_path: Path) -> None:
    path, table = tmp_path / "rows.parquet", pa.table({"number": range(7)})
    with RowGroupWriter(path, table.schema, group_rows=2) as writer:
        writer.write(table)
        assert not path.exists()
    with suppress(KeyError), RowGroupWriter(path, table.schema, group_rows=2) as writer:
        writer.write(table)
        assert pq.read_table(path) == table
        raise KeyError
    assert pq.read_table(path) == table
    FORMAT.write(tmp_path, {})
    assert {file.name for file in tmp_path.iterdir()} == {path.name, FORMAT.name}


def test_numbered_files_come_in_the_order_of_their_numbers_beyond_five_digits(tmp_path: Path) -> None:
    for number in (100_000, 99_999, 0):
        numbered_path(tmp_path, "part", number).touch()
    assert [file.stem for file in numbered_files(tmp_path, "part")] == ["part-00000", "part-99999", "part-100000"]


def test_a_column_that_a_file_lacks_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    (group,) = FORMAT.row_groups(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet cannot be read: it has no column b"):
        FORMAT.read_group(group, ["a", "b"])


@pytest.mark.parametrize("bit", [1, 0x10])
def test_any_changed_byte_of_a_signed_folder_is_refused(tmp_path: Path, bit: int) -> None:
    files = {"a/b.txt": write_file(tmp_path / "a" / "b.txt", b"text")}
    FORMAT.write_signed(tmp_path, {"what": [1, {"a": "\u00fc"}]}, files)
    assert FORMAT.read_signed(tmp_path)["what"] == [1, {"a": "\u00fc"}]
    for path in (tmp_path / FORMAT.name, tmp_path / "a" / "b.txt"):
        data = path.read_bytes()
        for place in range(len(data)):
            path.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
            with pytest.raises(IntegrityError, match=rf"{path.name} was changed or cut off"):
                FORMAT.read_signed(tmp_path)
        path.write_bytes(data)


def test_a_signed_folder_of_another_version_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    replace(FORMAT, version=3).write_signed(tmp_path, {}, {})
    with pytest.raises(InputError, match=r"has format 3; this version reads 2\. A newer version .* wrote it \("):
        FORMAT.read_signed(tmp_path)
    (tmp_path / FORMAT.name).write_text('{"format": 1, "sha256": "of another kind"}')
    with pytest.raises(InputError, match=r"has format 1; this version reads 2\. Run the step"):
        FORMAT.read_signed(tmp_path)
    with pytest.raises(InputError, match="holds no thing"):
        FORMAT.read_signed(tmp_path / "nowhere")
