"""Raw files are read whole, whatever the units and blocks they are cut into."""

import gzip
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.errors import InputError
from whitewater.io import text_files
from whitewater.tables import raw_files
from whitewater.tables.casts import Clock
from whitewater.tables.eras import Source

SOURCE = Source(
    aliases={"sensor": "sensor", "value": "value"},
    kinds={"sensor": "number", "value": "number"},
    required=("value",),
    of=("a file of readings", "the station"),
    rows="readings",
    setting="files.paths",
    clock=Clock("UTC"),
)


def read(path: Path, *, block_rows: int = 1_000, source: Source = SOURCE) -> tuple[int, list[float], list[str]]:
    """Return the rows, the values and the malformed lines of a file."""
    rows = 0
    values: list[float] = []
    malformed: list[str] = []
    for file in raw_files.open_raw(path, source):
        for unit in raw_files.units([file], rows=block_rows):
            for table, torn in raw_files.arrow_blocks(unit, rows=block_rows):
                rows += len(table) + len(torn)
                values += table["value"].to_pylist()
                malformed += torn
    return rows, values, malformed


def lines_of(values: Iterable[int]) -> list[str]:
    return [f"7,{value}" for value in values]


def write_csv(path: Path, lines: Iterable[str], *, end: str = "\n") -> Path:
    path.write_bytes(end.join(["sensor,value", *lines, ""]).encode())
    return path


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(60, 400), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_every_line_is_read_once_whatever_the_size_of_units(rows: int, size: int, end: str, last_end: bool) -> None:
    import tempfile
    from unittest import mock

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(raw_files, "BYTES_A_ROW", 1):
        path = write_csv(Path(folder) / "plain.csv", lines_of(range(rows)), end=end)
        if not last_end:
            path.write_bytes(path.read_bytes().rstrip())
        assert read(path, block_rows=size) == (rows, list(range(rows)), [])


def test_a_file_that_was_emptied_since_is_told(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "plain.csv", lines_of(range(5)))
    [unit] = raw_files.units(raw_files.open_raw(path, SOURCE), rows=1_000)
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"plain\.csv is empty\. Fetch it again\."):
        list(raw_files.arrow_blocks(unit, rows=1_000))


def test_a_line_that_is_too_long_is_not_cut_in_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_csv(tmp_path / "plain.csv", ["7," + "1" * 1_000, *lines_of(range(5))])
    monkeypatch.setattr(text_files, "LONGEST_LINE", 100)
    with pytest.raises(InputError, match=r"plain\.csv: a line is longer than 100 bytes"):
        read(path, block_rows=1)


def test_gzip_gives_the_rows_of_the_plain_file(tmp_path: Path) -> None:
    plain = write_csv(tmp_path / "plain.csv", lines_of(range(500)))
    packed = tmp_path / "packed.csv"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read(packed, block_rows=7) == read(plain)


def test_parquet_blocks_hold_all_row_groups(tmp_path: Path) -> None:
    path, values = tmp_path / "no suffix needed", [float(value) for value in range(2_500)]
    pq.write_table(pa.table({"sensor": [7] * len(values), "value": values}), path, row_group_size=1_000)
    assert read(path, block_rows=300) == (2_500, values, [])


def test_rows_longer_than_the_header_keep_their_columns(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "2016-10.csv", [line + ",," for line in lines_of([1, 2])])
    assert read(path) == (2, [1.0, 2.0], [])


def test_rows_longer_than_the_header_with_values_are_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "shifted.csv", [line + ",7,8" for line in lines_of([1, 2])])
    with pytest.raises(InputError, match="rows have 4 fields, but the header names 2"):
        raw_files.open_raw(path, SOURCE)


@pytest.mark.parametrize("pads", ["", ",,"])
def test_commas_in_quotes_do_not_count_as_fields(tmp_path: Path, pads: str) -> None:
    lines = [f'"5 Av, 3",{value}{pads}' for value in range(150)] + [f"Main St,{value}{pads}" for value in range(150)]
    source = replace(SOURCE, kinds={"sensor": "text", "value": "number"})
    assert read(write_csv(tmp_path / "quoted.csv", lines), source=source) == (300, [*range(150)] * 2, [])


def test_a_torn_row_is_malformed_and_the_others_are_read(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "torn.csv", [*lines_of([1, 2]), "7", "7,1o", "7,10"])
    assert read(path) == (5, [1.0, 2.0, 10.0], ["7", "7,1o"])


def test_missing_and_empty_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv cannot be read"):
        raw_files.open_raw(tmp_path / "none.csv", SOURCE)
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(InputError, match=r"empty\.csv is empty"):
        raw_files.open_raw(tmp_path / "empty.csv", SOURCE)


def zipped(path: Path, members: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_each_member_of_a_zip_file_is_a_file_of_its_own(tmp_path: Path) -> None:
    texts = {
        name: write_csv(tmp_path / "plain.csv", lines_of(fares)).read_bytes()
        for name, fares in {"2019/a.csv": [1, 2], "b.csv": [3]}.items()
    }
    path = zipped(tmp_path / "both.zip", {"2019/": b"", **texts, "__MACOSX/._b.csv": b"x"})
    assert [file.name for file in raw_files.open_raw(path, SOURCE)] == [f"{path}/2019/a.csv", f"{path}/b.csv"]
    assert read(path) == (3, [1.0, 2.0, 3.0], [])


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({}, "both.zip is a zip file without files"),
        ({"notes.txt": b"hello\n"}, "both.zip/notes.txt: columns not understood: 'hello'"),
        ({"a.parquet": b"PAR1 and so on\n"}, "both.zip/a.parquet is packed once more"),
        ({"a.csv": b""}, "both.zip/a.csv is empty"),
    ],
)
def test_a_member_that_is_not_a_csv_of_readings_is_refused_by_its_name(
    members: Mapping[str, bytes], said: str, tmp_path: Path
) -> None:
    path = zipped(tmp_path / "both.zip", members)
    with pytest.raises(InputError, match=said):
        raw_files.open_all([path], SOURCE)


def test_bytes_under_the_name_of_parquet_are_not_read_as_text(tmp_path: Path) -> None:
    (tmp_path / "trips.parquet").write_bytes(b"\x00\rnoise\r")
    with pytest.raises(InputError, match=r"trips\.parquet is damaged, or not Parquet"):
        raw_files.open_raw(tmp_path / "trips.parquet", SOURCE)


def test_a_damaged_zip_file_is_refused(tmp_path: Path) -> None:
    text = write_csv(tmp_path / "plain.csv", lines_of(range(5_000))).read_bytes()
    data = zipped(tmp_path / "good.zip", {"a.csv": text}).read_bytes()
    (tmp_path / "cut.zip").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"cut\.zip is a damaged or truncated zip file"):
        raw_files.open_raw(tmp_path / "cut.zip", SOURCE)
    middle = len(data) // 2
    (tmp_path / "bad.zip").write_bytes(data[:middle] + bytes(200) + data[middle + 200 :])
    with pytest.raises(InputError, match=r"bad\.zip/a\.csv"):
        read(tmp_path / "bad.zip")
