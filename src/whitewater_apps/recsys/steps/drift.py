"""Step `drift`: how the columns of a log change from its first day, the reference, to each later day.

A day is what the log's column ``day`` numbers: of some sources a file, or a period of about equally many rows.

The report is that of `whitewater_apps.recsys.drift_report`. All rows are counted, so nothing depends on how the log is
cut. Only where the bins of numbers end is taken from a sample of the reference, if it has more rows than `SAMPLE`.
"""

import logging
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.features.categories.groups import enlarge
from whitewater.features.categories.values import CategoryCounter, as_floats
from whitewater.features.columns.codes import count_codes
from whitewater.features.columns.parquet import read_columns
from whitewater.features.log_folder import Log, open_log
from whitewater.io.folder import RowGroup
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.arrow_arrays import to_arrow
from whitewater_apps.recsys.config import Drift
from whitewater_apps.recsys.drift_bins import SAMPLE, Bins, Counts, NumberBins, category_bins, elements, number_bins
from whitewater_apps.recsys.drift_report import DayCounts, drift_report

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers
    from whitewater.features.columns.column import Column

logger = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]
Task = tuple[int, RowGroup]
_LABELS = NumberBins(np.array([0.5]), np.arange(3))


def drift(run: Run[Drift], *, events: Path, drift: Output) -> None:
    """Compare each day with the first.

    Memory is that of a row group for each thread, of the categories of the first day, and of one histogram for each
    column and day.

    Raises InputError if a file of the log is missing or damaged.
    """
    log = open_log(events)
    days_of = {events / file.name: file.day for file in log.files}
    groups = [(days_of[group.path], group) for group in log.row_groups()]
    with run.workers() as workers:
        bins = _learn(run.settings, log, [group for day, group in groups if day == groups[0][0]], workers)
        days = _count(log, groups, bins, workers)
    if len(days) == 1:
        logger.warning("%s has one %s only: there is nothing to compare it with", events, log.time.period)
    report = drift_report(log, days, bins, run.settings)
    write_json(drift, report)
    run.note(days=len(days), columns=len(bins), **{verdict: len(names) for verdict, names in report["summary"].items()})
    logger.info(
        "drift of %d columns over %d %ss: %s",
        len(bins), len(days), log.time.period, ", ".join(report["summary"]["drift"]),
    )  # fmt: skip


def _learn(settings: Drift, log: Log, reference: Sequence[RowGroup], workers: "Workers") -> dict[str, Bins]:
    """Return the bins of each column, from the row groups of the first day."""
    numbers = [name for name, role in log.columns.items() if role == "continuous"]
    categories = [name for name, role in log.columns.items() if role in ("categorical", "list")]
    firsts = [0, *accumulate(group.rows for group in reference)]
    step = -(-firsts[-1] // SAMPLE)
    tasks = [(-first % step, group) for first, group in zip(firsts, reference, strict=False)]
    kinds = {name: log.types[name] for name in categories}
    counters = {
        name: CategoryCounter(kind.value_type if pa.types.is_list(kind) else kind) for name, kind in kinds.items()
    }
    rows_of = {name: np.zeros(0, np.int64) for name in categories}
    samples: dict[str, list[Floats]] = {name: [] for name in numbers}
    shared = {"numbers": numbers, "categories": categories, "step": step}
    label = f"learning the first {log.time.period}"
    for sampled, present in workers.map(see, tasks, label=label, ordered=True, shared=shared):
        for name, sample in sampled.items():
            samples[name].append(sample)
        for name, (values, rows) in present.items():
            places = counters[name].add(values)
            rows_of[name] = enlarge(rows_of[name], counters[name].size)
            np.add.at(rows_of[name], places, rows)
    bins: dict[str, Bins] = {
        name: number_bins(np.concatenate(each), bins=settings.bins) for name, each in samples.items()
    }
    for name, counter in counters.items():
        bins[name] = category_bins(counter, rows_of[name][: counter.size], categories=settings.categories)
    return bins


def see(
    task: Task, *, numbers: Sequence[str], categories: Sequence[str], step: int
) -> tuple[dict[str, Floats], dict[str, tuple[pa.Array, Counts]]]:
    """Return samples of a row group's columns of numbers, and which categories the others have, with the rows of each.

    The samples are each ``step``-th row, from that row on whose number in the row group is the first of the task.
    """
    first, group = task
    columns = read_columns(group.path, group.number, [*numbers, *categories])
    samples = {name: as_floats(columns[name])[first::step] for name in numbers}
    known = {name: sample[~np.isnan(sample)] for name, sample in samples.items()}
    return known, {name: _present(columns[name]) for name in categories}


def _present(column: "Column") -> tuple[pa.Array, Counts]:
    """Return the entries of the dictionary that occur, and the rows of each."""
    categories, _ = elements(column)
    rows = count_codes(categories.codes, len(categories.dictionary))
    present = np.flatnonzero(rows)
    return categories.dictionary.take(to_arrow(present)), rows[present]


def _count(log: Log, groups: Sequence[Task], bins: Mapping[str, Bins], workers: "Workers") -> dict[int, DayCounts]:
    """Return the counts of each day, ascending."""
    days: dict[int, DayCounts] = {}
    shared = {"bins": {log.label: _LABELS, **bins}}
    for day, counts in workers.map(count, groups, label="counting", shared=shared):
        before = days.get(day, {})
        days[day] = {name: each + before.get(name, 0) for name, each in counts.items()}
    return dict(sorted(days.items()))


def count(task: Task, *, bins: Mapping[str, Bins]) -> tuple[int, DayCounts]:
    """Return what is counted in a row group of a day, and the day."""
    day, group = task
    columns = read_columns(group.path, group.number, list(bins))
    return day, {name: each.count(columns[name]) for name, each in bins.items()}


if __name__ == "__main__":
    main(drift)
