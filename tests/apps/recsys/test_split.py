"""The step `split`: parts by time, compared with a sort of all rows."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.engines import resolve
from whitewater.errors import InputError
from whitewater.features.log_folder import FIRST, Log, LogColumn, LogFile, LogTime, file_name, open_log
from whitewater.io.folder import RowGroup
from whitewater.step import Run, execute
from whitewater_apps.recsys.config import Split
from whitewater_apps.recsys.steps.split import Group, place_file, split, time_of_rank

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Row:
    day: int
    time: int


def make_log(path: Path, rows: Sequence[Row], *, row_group_rows: int = 4, file_rows: int = 10) -> Log:
    """A log of rows whose days ascend, with files of at most so many rows."""
    writer = Log(path, "files", (*FIRST, LogColumn("C1", "categorical", "string")), LogTime("seconds"), row_group_rows)
    files: list[LogFile] = []
    first = 0
    while first < len(rows):
        day = rows[first].day
        stop = first
        while stop < len(rows) and rows[stop].day == day and stop < first + file_rows:
            stop += 1
        with writer.file(file_name(day, len(files))) as file:
            numbers = list(range(first, stop))
            columns = [numbers, [day] * len(numbers), [rows[number].time for number in numbers],
                       [number % 3 == 0 for number in numbers], [f"c{number}" for number in numbers]]  # fmt: skip
            arrays = [pa.array(values).cast(kind) for values, kind in zip(columns, writer.schema.types, strict=True)]
            file.write(pa.Table.from_arrays(arrays, schema=writer.schema))
        files.append(LogFile(file.path.name, file.rows, day))
        first = stop
    return writer.finish(files)


def run_split(place: Path, **given: Any) -> dict[str, Any]:
    run = Run("recsys", "split", resolve("cpu"), Split.model_validate(given), 2)
    outputs = {name: place / name for name in PARTS} | {"summary": place / "split.json"}
    execute(run, split, inputs={"events": place / "events"}, outputs=outputs, record=place / "record.json")
    found: dict[str, Any] = json.loads((place / "split.json").read_text())
    return found


def ids(place: Path, name: str) -> list[int]:
    log = open_log(place / name)
    return [row for file in log.files for row in pq.read_table(log.path / file.name)["row_id"].to_pylist()]


def days(*rows_of_days: int) -> list[Row]:
    """Rows a second after each other, and so many a day."""
    return [
        Row(day, 86_400 * day + second)
        for day, count in enumerate(rows_of_days)
        for second in range(count)
    ]  # fmt: skip


def test_parts_begin_with_days_where_days_are_enough(tmp_path: Path) -> None:
    make_log(tmp_path / "events", days(*[30] * 7))
    summary = run_split(tmp_path)
    assert [len(ids(tmp_path, name)) for name in PARTS] == [150, 30, 30]
    assert summary["whole_days"] is True
    assert summary["unit"] == "seconds"
    assert summary["begins"] == {"train": 0, "valid": 5 * 86_400, "test": 6 * 86_400}
    assert summary["parts"]["valid"] == {"rows": 30, "files": 3, "days": [5], "first_time": 5 * 86_400,
                                         "last_time": 5 * 86_400 + 29, "label_rate": 1 / 3}  # fmt: skip


def test_whole_files_are_hard_links_and_parts_are_logs_like_the_whole(tmp_path: Path) -> None:
    log = make_log(tmp_path / "events", days(*[30] * 7))
    run_split(tmp_path)
    found = [open_log(tmp_path / name) for name in PARTS]
    assert [file for part in found for file in part.files] == list(log.files)
    for part in found:
        assert (part.columns, part.time, part.source, part.row_group_rows) == (
            log.columns, log.time, log.source, log.row_group_rows,
        )  # fmt: skip
        for file in part.files:
            assert (part.path / file.name).samefile(log.path / file.name)
    assert sum(part.rows for part in found) == log.rows


def test_a_file_that_is_placed_again_as_a_worker_died_is_the_same(tmp_path: Path) -> None:
    log = make_log(tmp_path / "events", days(10))
    (tmp_path / "train").mkdir()
    for _ in range(2):
        assert place_file(log.files[0], log=log, folder=tmp_path / "train", begin=0, end=2**62) == log.files[0]
    assert (tmp_path / "train" / log.files[0].name).samefile(log.path / log.files[0].name)


def test_without_hard_links_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no hard links here")

    make_log(tmp_path / "events", days(10, 10, 10))
    monkeypatch.setattr(os, "link", refuse)
    run_split(tmp_path, valid_share=1 / 3, test_share=1 / 3)
    assert [ids(tmp_path, name) for name in PARTS] == [list(range(10)), list(range(10, 20)), list(range(20, 30))]


def test_parts_begin_at_the_row_where_days_are_too_few_or_not_wanted(tmp_path: Path) -> None:
    make_log(tmp_path / "events", days(40, 40, 20))
    assert run_split(tmp_path)["whole_days"] is False
    assert [len(ids(tmp_path, name)) for name in PARTS] == [70, 15, 15]
    assert run_split(tmp_path, valid_share=0.4, test_share=0.2)["whole_days"] is True
    assert [len(ids(tmp_path, name)) for name in PARTS] == [40, 40, 20]
    assert run_split(tmp_path, valid_share=0.41, test_share=0.2, whole_days=False)["whole_days"] is False
    assert [len(ids(tmp_path, name)) for name in PARTS] == [39, 41, 20]
    groups = [size for _, _, size in open_log(tmp_path / "train").row_groups()]
    assert groups == [4, 4, 2] * 3 + [4, 4, 1]


def test_a_part_without_a_share_has_no_rows(tmp_path: Path) -> None:
    make_log(tmp_path / "events", days(10, 10))
    summary = run_split(tmp_path, valid_share=0, test_share=0.5)
    assert [len(ids(tmp_path, name)) for name in PARTS] == [10, 0, 10]
    assert summary["parts"]["valid"] == {"rows": 0, "files": 0, "days": [], "first_time": None, "last_time": None,
                                         "label_rate": None}  # fmt: skip
    run_split(tmp_path, valid_share=0.25, test_share=0, whole_days=False)
    assert [len(ids(tmp_path, name)) for name in PARTS] == [15, 5, 0]
    run_split(tmp_path, valid_share=0, test_share=0)
    assert [len(ids(tmp_path, name)) for name in PARTS] == [20, 0, 0]


@pytest.mark.parametrize(
    ("times", "part"), [([5] * 20, "train"), ([*range(10), *[50] * 10], "valid"), ([1], "train|valid|test")]
)
def test_a_part_that_would_be_empty_is_an_error(tmp_path: Path, times: list[int], part: str) -> None:
    make_log(tmp_path / "events", [Row(0, time) for time in times])
    with pytest.raises(InputError, match=rf"({part}) would have no rows: the {len(times)} rows of .* too few times"):
        run_split(tmp_path)
    assert not (tmp_path / "train").exists()


LOGS = st.lists(st.tuples(st.integers(0, 4), st.integers(-20, 60)), min_size=3, max_size=60).map(
    lambda pairs: [Row(day, time) for day, time in sorted(pairs, key=lambda pair: pair[0])]
)


@settings(max_examples=12, deadline=None)
@given(
    rows=LOGS,
    shares=st.sampled_from([(0.15, 0.15), (0.3, 0.2), (0.0, 0.4), (0.5, 0.0), (0.45, 0.45)]),
    whole_days=st.booleans(),
    sizes=st.tuples(st.integers(1, 7), st.integers(1, 12)),
)
def test_no_row_is_in_a_part_before_that_of_an_earlier_row(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Row],
    shares: tuple[float, float],
    whole_days: bool,
    sizes: tuple[int, int],
) -> None:
    asked = {"valid_share": shares[0], "test_share": shares[1], "whole_days": whole_days}
    outcomes: list[list[list[int]] | None] = []
    for row_group_rows, file_rows in (sizes, (60, 60)):
        place = tmp_path_factory.mktemp("split")
        make_log(place / "events", rows, row_group_rows=row_group_rows, file_rows=file_rows)
        try:
            summary = run_split(place, **asked)
        except InputError:
            outcomes.append(None)
            continue
        parts = [ids(place, name) for name in PARTS]
        outcomes.append(parts)
        assert sorted(row for part in parts for row in part) == list(range(len(rows)))
        assert all(part == sorted(part) for part in parts)
        times = [[rows[row].time for row in part] for part in parts if part]
        assert all(max(before) < min(after) for before, after in pairwise(times))
        told = summary["parts"]
        assert [told[name]["rows"] for name in PARTS] == [len(part) for part in parts]
        assert [told[name]["label_rate"] for name in PARTS] == [
            sum(row % 3 == 0 for row in part) / len(part) if part else None for part in parts
        ]
        if not summary["whole_days"]:
            ordered = sorted(row.time for row in rows)
            rank = len(rows) - round(len(rows) * sum(shares))
            assert len(parts[0]) == (ordered.index(ordered[rank]) if rank < len(rows) else len(rows))
    assert outcomes[0] == outcomes[1]


@settings(max_examples=12, deadline=None)
@given(
    times=st.lists(st.lists(st.integers(-(10**12), 10**12) | st.integers(0, 3), min_size=1), min_size=1, max_size=6),
)
def test_the_time_of_a_rank_is_that_of_a_sort(tmp_path_factory: pytest.TempPathFactory, times: list[list[int]]) -> None:
    path = tmp_path_factory.mktemp("times")
    groups = []
    for number, each in enumerate(times):
        pq.write_table(pa.table({"time": pa.array(each, pa.int64())}), path / f"{number}.parquet")
        file = LogFile(f"{number}.parquet", len(each), 0)
        groups.append(Group(file, RowGroup(path / file.name, 0, len(each)), min(each), max(each)))
    ordered = sorted(time for each in times for time in each)
    for rank in {0, len(ordered) // 3, len(ordered) // 2, len(ordered) - 1}:
        assert time_of_rank(groups, rank) == ordered[rank]
    assert time_of_rank(groups, len(ordered)) == ordered[-1] + 1
