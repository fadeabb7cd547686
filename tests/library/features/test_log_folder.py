"""The folder of a log: what is written is what is read, and a folder that is none is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from whitewater.errors import InputError, IntegrityError
from whitewater.features.dataset import Dataset
from whitewater.features.log_folder import FIRST, Log, LogColumn, LogFile, LogTime, file_name, open_log

COLUMNS = (
    *FIRST,
    LogColumn("I1", "continuous", "float64"),
    LogColumn("C1", "categorical", "string"),
    LogColumn("L1", "list", "list<int64>"),
)


def rows(writer: Log, first: int, stop: int, *, day: int) -> pa.Table:
    """Rows whose every value tells its number."""
    numbers = list(range(first, stop))
    columns = {
        "row_id": numbers,
        "day": [day] * len(numbers),
        "time": [10 * number for number in numbers],
        "label": [number % 2 for number in numbers],
        "I1": [None if number % 3 else number / 2 for number in numbers],
        "C1": [None if number % 5 == 0 else f"c{number % 7}" for number in numbers],
        "L1": [list(range(number % 3)) for number in numbers],
    }
    return pa.table([columns[name] for name in writer.schema.names], schema=writer.schema)


def written(path: Path, *, row_group_rows: int = 10, pieces: tuple[int, ...] = (3, 30, 4)) -> Log:
    """A log of two days, of which the first is written in pieces, and the second has one row."""
    writer = Log(path, "files", COLUMNS, LogTime("seconds"), row_group_rows)
    first = 0
    with writer.file(file_name(0)) as file:
        for size in pieces:
            file.write(rows(writer, first, first + size, day=0))
            first += size
    with writer.file(file_name(2)) as last:
        last.write(rows(writer, first, first + 1, day=2))
    return writer.finish(
        [LogFile(each.path.name, each.rows, day) for each, day in ((file, 0), (last, 2))], counts={"lines": first + 1}
    )


def table(log: Log) -> pa.Table:
    return pa.concat_tables([pq.read_table(log.path / file.name) for file in log.files])


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    log = written(tmp_path / "log")
    found = open_log(tmp_path / "log")
    assert found == log
    assert found.rows == 38
    assert found.columns == {"row_id": "key", "day": "key", "time": "time", "label": "label", "I1": "continuous",
                             "C1": "categorical", "L1": "list"}  # fmt: skip
    assert found.types["L1"] == pa.list_(pa.int64())
    assert found.files == (LogFile("day-00000-0000.parquet", 37, 0), LogFile("day-00002-0000.parquet", 1, 2))
    assert (found.time.column, found.time.unit, found.label) == ("time", "seconds", "label")
    assert found.counts == {"lines": 38}
    assert table(found) == pa.concat_tables([rows(found, 0, 37, day=0), rows(found, 37, 38, day=2)])


def test_a_log_without_rows_can_be_written_and_opened(tmp_path: Path) -> None:
    Log(tmp_path / "log", "files", COLUMNS, LogTime("position"), 10).finish([])
    found = open_log(tmp_path / "log")
    assert (found.rows, found.files, found.row_groups()) == (0, (), [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 7}, "describes no log.*7 rows"),
        ({"columns": []}, "describes no log"),
        ({"files": [{"name": "../x.parquet", "rows": 38, "day": 0}]}, "a file is not in the folder"),
        ({"files": [{"name": "x.parquet", "rows": 38, "day": 0}]}, "lacks x.parquet"),
        ({"time": {"column": "time", "unit": "weeks", "period": "day"}}, "time in weeks"),
        ({"time": {"column": "time", "unit": "seconds", "period": "moon"}}, "by moon"),
        ({"time": None}, "describes no log"),
    ],
)
def test_a_folder_that_is_not_a_log_is_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = written(tmp_path / "log").path / "log.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=message):
        open_log(tmp_path / "log")


def test_files_that_were_changed_are_refused(tmp_path: Path) -> None:
    log = written(tmp_path / "log")
    first, last = (log.path / file.name for file in log.files)
    first.write_bytes(last.read_bytes())
    with pytest.raises(IntegrityError, match="has 1 rows, not 37"):
        log.row_groups()
    first.write_bytes(last.read_bytes()[:-5])
    with pytest.raises(InputError, match=r"day-00000-0000\.parquet cannot be read"):
        log.row_groups()


def test_files_out_of_order_are_not_finished(tmp_path: Path) -> None:
    log = written(tmp_path / "log")
    with pytest.raises(IntegrityError, match="in no order"):
        log.finish(log.files[::-1])
    with pytest.raises(IntegrityError, match="empty"):
        log.finish([LogFile("a.parquet", 0, 0)])


def test_a_log_whose_file_was_replaced_by_a_shorter_one_is_refused(tmp_path: Path) -> None:
    log = written(tmp_path / "log")
    path = log.path / log.files[0].name
    pq.write_table(pq.read_table(path).slice(0, 20), path)
    with pytest.raises(IntegrityError, match="has 21 rows, not 38"):
        Dataset(log.path)
