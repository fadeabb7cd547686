"""Step `split`: training, validation and test rows, each after the other in time.

A file whose rows are all in one part becomes a hard link, so only files at the boundaries take space.
"""

import os
import shutil
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from whitewater.errors import InputError
from whitewater.features.log_folder import FIRST, FORMAT, LABEL, TIME, Log, LogFile, open_log
from whitewater.io.folder import RowGroup
from whitewater.io.store import write_atomically, write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater_apps.recsys.config import Split


class Group(NamedTuple):
    """A row group of a file of a log, with the times of its first and last row in time."""

    file: LogFile
    group: RowGroup
    first: int
    last: int


def split(run: Run[Split], *, events: Path, train: Output, valid: Output, test: Output, summary: Output) -> None:
    """Split the log by time; rows of one time are in one part, and no row is in a part before that of an earlier row.

    The shares set the boundaries, ``round(rows * share)``. With ``whole_days`` both move to the nearest day, if that is
    less than half of the smallest requested part away; else they stay at the row. Rows with the time of the row at a
    boundary go to the later part.

    The parts are logs like ``events``, with its rows in its order. A part with the share 0 has no rows. ``summary`` is
    JSON: the unit of time, whether the boundaries are at days, the first time of validation and test, and rows, files,
    days, first and last time, and share of label 1 of each part.

    Raises InputError if a part with a share would have no rows.
    """
    log, settings = open_log(events), run.settings
    whole_days, boundaries = _boundaries(settings, _groups(log))
    shares = (1.0, settings.valid_share, settings.test_share)
    folders = {"train": train, "valid": valid, "test": test}
    parts, begins = {}, {}
    with run.workers() as workers:
        for (name, folder), share, (begin, end) in zip(folders.items(), shares, pairwise(boundaries), strict=True):
            folder.mkdir(parents=True, exist_ok=True)
            shared = {"log": log, "folder": folder, "begin": begin, "end": end}
            placed = workers.map(place_file, log.files, label=f"files for {name}", ordered=True, shared=shared)
            part = replace(log, path=folder).finish([file for file in placed if file])
            if part.rows:
                begins[name] = begin
            elif share:
                raise InputError(f"{name} would have no rows: the {log.rows:,} rows of {log.path} have too few times. "
                                 "Change the shares in recsys.split, or fetch more rows.")  # fmt: skip
            parts[name] = _summary(part)
    write_json(summary, {"unit": log.time.unit, "whole_days": whole_days, "begins": begins, "parts": parts})
    run.note(rows={name: each["rows"] for name, each in parts.items()}, whole_days=whole_days)


def _groups(log: Log, *files: LogFile) -> list[Group]:
    """Return the row groups of a log, or of some files of it, with times from Parquet's statistics."""
    groups, time_column = [], [each.name for each in FIRST].index(TIME)
    for file in files or log.files:
        footer = FORMAT.footer(log.path / file.name)
        for group in FORMAT.row_groups(log.path / file.name, rows=file.rows):
            times = footer.row_group(group.number).column(time_column).statistics
            groups.append(Group(file, group, times.min, times.max))
    return groups


def _boundaries(settings: Split, groups: Sequence[Group]) -> tuple[bool, list[int]]:
    """Return whether the parts begin with days, and the times of the boundaries, first and last included."""
    rows = sum(each.group.rows for each in groups)
    ranks = [rows - round(rows * share) for share in (settings.valid_share + settings.test_share, settings.test_share)]
    begin, end = min(each.first for each in groups), max(each.last for each in groups) + 1
    if settings.whole_days:
        days = [list(of_day) for _, of_day in groupby(groups, key=lambda each: each.file.day)]
        times = [*(min(each.first for each in of_day) for of_day in days), end]
        before = np.array([0, *accumulate(sum(each.group.rows for each in of_day) for of_day in days)])
        nearest = [int(np.abs(before - rank).argmin()) for rank in ranks]
        smallest = min(stop - start for start, stop in pairwise([0, *ranks, rows]) if stop > start)
        if (2 * np.abs(before[nearest] - ranks) < smallest).all():
            return True, [begin, *(times[day] for day in nearest), end]
    return False, [begin, *(time_of_rank(groups, rank) for rank in ranks), end]


def time_of_rank(groups: Sequence[Group], rank: int) -> int:
    """Return the time of the row that has ``rank`` rows before it in time; for all rows, the time after the last.

    Bisection reads only row groups with times on both sides: one or two if the log is sorted.
    """

    @lru_cache(16)  # 4 MB each
    def times(group: RowGroup) -> npt.NDArray[np.int64]:
        return to_numpy(FORMAT.read_group(group, [TIME]).column(TIME))

    def rows_until(each: Group, time: int) -> int:
        if each.first <= time < each.last:
            return int(np.count_nonzero(times(each.group) <= time))
        return each.group.rows if each.last <= time else 0

    low, high = min(each.first for each in groups), max(each.last for each in groups) + 1
    return bisect_right(range(low, high), rank, key=lambda time: sum(rows_until(each, time) for each in groups)) + low


def place_file(file: LogFile, *, log: Log, folder: Path, begin: int, end: int) -> LogFile | None:
    """Link a file into a folder, or copy its rows with times from ``begin`` to ``end``; return None if it has none."""
    source, groups = log.path / file.name, _groups(log, file)
    first, last = min(each.first for each in groups), max(each.last for each in groups)
    if last < begin or end <= first:
        return None
    if begin <= first and last < end:
        (folder / file.name).unlink(missing_ok=True)  # of a run of this task whose worker has died
        try:
            os.link(source, folder / file.name)
        except OSError:
            # Some file systems have no hard links.
            write_atomically(folder / file.name, partial(shutil.copyfile, source))
        return file
    with replace(log, path=folder).file(file.name) as written:
        for each in groups:
            table = FORMAT.read_group(each.group)
            time = to_numpy(table.column(TIME))
            written.write(table.take(to_arrow(np.flatnonzero((time >= begin) & (time < end)))))
    return replace(file, rows=written.rows) if written.rows else None


def _summary(log: Log) -> dict[str, Any]:
    groups = _groups(log)
    clicks = sum(pc.sum(FORMAT.table(log.path / file.name, [LABEL]).column(0)).as_py() for file in log.files)
    return {
        "rows": log.rows,
        "files": len(log.files),
        "days": sorted({file.day for file in log.files}),
        "first_time": min((each.first for each in groups), default=None),
        "last_time": max((each.last for each in groups), default=None),
        "label_rate": clicks / log.rows if log.rows else None,
    }


if __name__ == "__main__":
    main(split)
