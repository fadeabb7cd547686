"""Step `drift`: how the columns of a log change from its first day, the reference, to each later day.

A day is what the log's column ``day`` numbers: of some sources a file, or a period of about equally many rows.

The report is that of `whitewater_apps.recsys.drift_report`. All rows are counted, so nothing depends on how the log is
cut. Only where the bins of numbers end is taken from a sample of the reference, if it has more rows than `SAMPLE`.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa

from whitewater.features.categories.groups import enlarge
from whitewater.features.categories.values import CategoryCounter, as_floats
from whitewater.features.columns.parquet import read_columns
from whitewater.features.log_folder import Log, open_log
from whitewater.io.folder import RowGroup
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Drift
from whitewater_apps.recsys.drift_bins import LABELS, SAMPLE, Bins, Counts, category_bins, number_bins, value_counts
from whitewater_apps.recsys.drift_report import drift_report

logger = logging.getLogger(__name__)


def drift(run: Run[Drift], *, events: Path, drift: Output) -> None:
    """Compare each day with the first.

    Memory is that of a row group for each thread, of the categories of the first day, and of one histogram for each
    column and day.

    Raises InputError if a file of the log is missing or damaged.
    """
    log = open_log(events)
    groups, day_of = log.row_groups(), {events / file.name: file.day for file in log.files}
    reference = [group for group in groups if day_of[group.path] == log.files[0].day]
    columns = [name for name, role in log.columns.items() if role in ("continuous", "categorical", "list")]
    days: dict[int, dict[str, Counts]] = defaultdict(dict)
    with run.workers() as workers:
        shared = {"log": log, "reference": reference, "settings": run.settings}
        learned = workers.map(
            learn, columns, label=f"learning the first {log.time.period}", ordered=True, shared=shared
        )
        bins = dict(zip(columns, learned, strict=True))
        shared = {"bins": {log.label: LABELS, **bins}}
        counted = workers.map(count, groups, label="counting", ordered=True, shared=shared)
        for group, counts in zip(groups, counted, strict=True):
            day = days[day_of[group.path]]
            day |= {name: day.get(name, 0) + each for name, each in counts.items()}
    if len(days) == 1:
        logger.warning("%s has one %s only: there is nothing to compare it with", events, log.time.period)
    report = drift_report(log, days, bins, run.settings)
    write_json(drift, report)
    run.note(days=len(days), columns=len(bins), **{verdict: len(names) for verdict, names in report["summary"].items()})
    logger.info(
        "drift of %d columns over %d %ss: %s",
        len(bins), len(days), log.time.period, ", ".join(report["summary"]["drift"]),
    )  # fmt: skip


def learn(name: str, *, log: Log, reference: Sequence[RowGroup], settings: Drift) -> Bins:
    """Return the bins of a column, from the row groups of the first day."""
    columns = (read_columns(group.path, group.number, [name])[name] for group in reference)
    if log.columns[name] == "continuous":
        firsts = [0, *accumulate(group.rows for group in reference)]
        step = -(-firsts[-1] // SAMPLE)
        parts = [as_floats(column)[-first % step :: step] for first, column in zip(firsts, columns, strict=False)]
        sample = np.concatenate(parts)
        return number_bins(sample[~np.isnan(sample)], bins=settings.bins)
    kind = log.types[name]
    counter = CategoryCounter(kind.value_type if pa.types.is_list(kind) else kind)
    rows = np.zeros(0, np.int64)
    for column in columns:
        values, counts, _ = value_counts(column)
        places = counter.add(values)
        rows = enlarge(rows, counter.size)
        np.add.at(rows, places, counts)
    return category_bins(counter.values(), rows[: counter.size], categories=settings.categories)


def count(group: RowGroup, *, bins: Mapping[str, Bins]) -> dict[str, Counts]:
    """Return the rows of a row group at each place of the bins of each column."""
    columns = read_columns(group.path, group.number, list(bins))
    return {name: each.count(columns[name]) for name, each in bins.items()}


if __name__ == "__main__":
    main(drift)
