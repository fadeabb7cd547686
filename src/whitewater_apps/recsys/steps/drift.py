"""Step `drift`: how the columns of a log change from its first day, the reference, to each later day.

A day is what the log's column ``day`` numbers: of some sources a file, or a period of about equally many rows.

The report is that of `whitewater_apps.recsys.drift_report`. All rows are counted, so nothing depends on how the log is
cut. Only where the bins of numbers end is taken from a sample of the reference, if it has more rows than `SAMPLE`.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.arrow_arrays import to_arrow
from whitewater_apps.recsys.config import Drift
from whitewater_apps.recsys.drift_bins import (
    SAMPLE,
    Bins,
    NumberBins,
    category_bins,
    elements,
    number_bins,
)
from whitewater_apps.recsys.drift_report import DayCounts, drift_report

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers
    from whitewater.features.columns.column import Column
    from whitewater_apps.recsys.drift_measures import Counts

logger = logging.getLogger(__name__)

_CATEGORIES = ("categorical", "list")


@dataclass(frozen=True)
class Group:
    """A row group: where it is, its day, and the number of its first row in the day."""

    path: Path
    number: int
    day: int
    first: int
    rows: int


Seen = tuple[dict[str, npt.NDArray[np.float64]], dict[str, tuple[pa.Array, "Counts"]]]
"""What a row group of the reference tells: samples of the columns of numbers, and the categories of the others."""
_LABELS = NumberBins(np.array([0.5]), np.arange(3))


def drift(run: Run[Drift], *, events: Path, drift: Output) -> None:
    """Compare each day with the first.

    Memory is that of a row group for each thread, of the categories of the first day, and of one histogram for each
    column and day.

    Raises InputError if a file of the log is missing or damaged.
    """
    log = open_log(events)
    groups = _groups(log)
    with run.workers() as workers:
        bins = _learn(run, log, groups, workers=workers)
        days = _count(run, log, groups, bins, workers=workers)
    if len(days) == 1:
        logger.warning("%s has one %s only: there is nothing to compare it with", events, log.time.period)
    report = drift_report(log, days, bins, run.settings)
    write_json(drift, report)
    run.note(days=len(days), columns=len(bins), **{verdict: len(names) for verdict, names in report["summary"].items()})
    logger.info(
        "drift of %d columns over %d %ss: %s",
        len(bins), len(days), log.time.period, ", ".join(report["summary"]["drift"]),
    )  # fmt: skip


def _groups(log: Log) -> list[Group]:
    days = {log.path / file.name: file.day for file in log.files}
    rows_of = dict.fromkeys(days.values(), 0)
    groups = []
    for path, number, rows in log.row_groups():
        day = days[path]
        groups.append(Group(path, number, day, rows_of[day], rows))
        rows_of[day] += rows
    return groups


def _learn(run: Run[Drift], log: Log, groups: Sequence[Group], *, workers: "Workers") -> dict[str, Bins]:
    """Return the bins of each column, from the first day."""
    reference = [group for group in groups if group.day == groups[0].day]
    step = -(-sum(group.rows for group in reference) // SAMPLE)
    numbers, categories = _columns(log)
    types = {name: log.types[name] for name in categories}
    counters = {
        name: CategoryCounter(type_.value_type if pa.types.is_list(type_) else type_) for name, type_ in types.items()
    }
    rows_of = {name: np.zeros(0, np.int64) for name in categories}
    samples: dict[str, list[npt.NDArray[np.float64]]] = {name: [] for name in numbers}
    shared = {"numbers": numbers, "categories": categories, "step": step}
    label = f"learning the first {log.time.period}"
    for sampled, present in workers.map(see, reference, label=label, ordered=True, shared=shared):
        for name, sample in sampled.items():
            samples[name].append(sample)
        for name, (values, rows) in present.items():
            places = counters[name].add(values)
            rows_of[name] = enlarge(rows_of[name], counters[name].size)
            np.add.at(rows_of[name], places, rows)
    most = run.settings.categories
    bins: dict[str, Bins] = {
        name: number_bins(np.concatenate(each), bins=run.settings.bins) for name, each in samples.items()
    }
    return bins | {
        name: category_bins(counter, rows_of[name][: counter.size], categories=most)
        for name, counter in counters.items()
    }


def see(group: Group, *, numbers: Sequence[str], categories: Sequence[str], step: int) -> Seen:
    """Return what a row group tells of its columns; of numbers each row of the day whose number ``step`` divides."""
    columns = read_columns(group.path, group.number, [*numbers, *categories])
    first = -group.first % step
    samples = {name: _values(columns[name], first=first, step=step) for name in numbers}
    return samples, {name: _present(columns[name]) for name in categories}


def _values(column: "Column", *, first: int, step: int) -> npt.NDArray[np.float64]:
    values = as_floats(column)[first::step]
    return values[~np.isnan(values)]


def _present(column: "Column") -> "tuple[pa.Array, Counts]":
    """Return the entries of the dictionary that occur, and the rows of each."""
    categories, _ = elements(column)
    rows = count_codes(categories.codes, len(categories.dictionary))
    present = np.flatnonzero(rows)
    return categories.dictionary.take(to_arrow(present)), rows[present]


def _count(
    run: Run[Drift], log: Log, groups: Sequence[Group], bins: Mapping[str, Bins], *, workers: "Workers"
) -> dict[int, DayCounts]:
    """Return the counts of each day, ascending."""
    days: dict[int, DayCounts] = {}
    shared = {"bins": {log.label: _LABELS, **bins}}
    for group, counts in workers.map(count, groups, label="counting", shared=shared):
        before = days.get(group.day, {})
        days[group.day] = {name: each + before.get(name, 0) for name, each in counts.items()}
    return dict(sorted(days.items()))


def count(group: Group, *, bins: Mapping[str, Bins]) -> tuple[Group, DayCounts]:
    """Return what is counted in a row group."""
    columns = read_columns(group.path, group.number, list(bins))
    return group, {name: each.count(columns[name]) for name, each in bins.items()}


def _columns(log: Log) -> tuple[list[str], list[str]]:
    """Return the names of the columns of numbers, and of categories."""
    numbers = [name for name, role in log.columns.items() if role == "continuous"]
    return numbers, [name for name, role in log.columns.items() if role in _CATEGORIES]


if __name__ == "__main__":
    main(drift)
