"""Step `drift`: how the columns of a log change from its first day, the reference, to each later day.

A day is what the log's column ``day`` numbers: of some sources a file, or a period of about equally many rows.

``drift.json``:

========================= =============================================================================================
``period``                what a day is: ``day``, ``file`` or ``period``
``reference``             day and rows of the reference
``thresholds``            the settings: what is above them is reported
``days``                  of each day: ``day``, ``rows``, ``label_rate``, the share of rows with label 1
``days_without_rows``     how many days between the first and the last have no rows, and so are not compared
``columns``               of each column ``name``, ``role``, ``nulls``, the share of rows of the reference without a
                          value; of categories ``known``, how many the reference has; ``verdict``, the worst of its
                          days; and ``days``
``summary``               the names of the columns by verdict
========================= =============================================================================================

Of each column and later day:

========================= =============================================================================================
``nulls``                 share of the rows without a value (of lists: without an element)
``psi``                   population stability index over the bins of the column, nulls among them
``jensen_shannon``        Jensen-Shannon distance (base 2, 0 to 1) over the same bins
``ks``                    of numbers: Kolmogorov-Smirnov distance (0 to 1) of the values that are not null; exact if the
                          reference has few values, else about 0.001 below the true one at most
``new_categories``        of categories: share of the rows with a category that the reference has not
``chance``                of each measure the limit that it exceeds by chance alone in about one of a thousand columns
                          that do not change
``above``                 the measures above their threshold and above chance
``verdict``               ``drift`` if there are any; else ``chance`` if a measure is above its threshold, but of so few
                          rows that it tells nothing; else ``stable``
========================= =============================================================================================

A measure is null where a day has nothing to compare. The measures are those of `whitewater_apps.recsys.drift_measures`,
the bins those of `whitewater_apps.recsys.drift_bins`. All rows are counted, so nothing depends on how the log is cut.
Only where the bins of numbers end is taken from a sample of the reference, if it has more rows than `SAMPLE`.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.features.categories.groups import grown
from whitewater.features.categories.values import CategoryCounter, as_floats
from whitewater.features.log_folder import Log, open_log
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.arrow_arrays import to_arrow
from whitewater.tables.categories import count_codes
from whitewater.tables.parquet.columns import read_columns
from whitewater_apps.recsys import drift_measures as measures
from whitewater_apps.recsys.config import Drift
from whitewater_apps.recsys.drift_bins import (
    SAMPLE,
    Bins,
    CategoryBins,
    NumberBins,
    category_bins,
    elements,
    number_bins,
)
from whitewater_apps.recsys.drift_measures import VERDICTS

if TYPE_CHECKING:
    from whitewater.engines import Device
    from whitewater.engines.workers import Workers
    from whitewater.tables.columns import Column
    from whitewater_apps.recsys.drift_measures import Counts

logger = logging.getLogger(__name__)

FORMAT = 1
_DIGITS = 6
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
DayCounts = Mapping[str, "Counts"]
"""The rows of a day at each place of the bins of each column; of the label those with 0 and those with 1."""
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
    report = described(log, days, bins, run.settings)
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
    shared = {"numbers": numbers, "categories": categories, "step": step, "device": run.device}
    label = f"learning the first {log.time.period}"
    for sampled, present in workers.map(see, reference, label=label, ordered=True, shared=shared):
        for name, sample in sampled.items():
            samples[name].append(sample)
        for name, (values, rows) in present.items():
            places = counters[name].add(values)
            rows_of[name] = grown(rows_of[name], counters[name].size)
            np.add.at(rows_of[name], places, rows)
    most = run.settings.categories
    bins: dict[str, Bins] = {
        name: number_bins(np.concatenate(each), bins=run.settings.bins) for name, each in samples.items()
    }
    return bins | {
        name: category_bins(counter, rows_of[name][: counter.size], categories=most)
        for name, counter in counters.items()
    }


def see(group: Group, *, numbers: Sequence[str], categories: Sequence[str], step: int, device: "Device") -> Seen:
    """Return what a row group tells of its columns; of numbers each row of the day whose number ``step`` divides."""
    columns = read_columns(device, group.path, group.number, [*numbers, *categories])
    first = -group.first % step
    samples = {name: _values(columns[name], device, first=first, step=step) for name in numbers}
    return samples, {name: _present(columns[name], device) for name in categories}


def _values(column: "Column", device: "Device", *, first: int, step: int) -> npt.NDArray[np.float64]:
    values = device.to_host(as_floats(column, device)[first::step])
    return values[~np.isnan(values)]


def _present(column: "Column", device: "Device") -> "tuple[pa.Array, Counts]":
    """Return the entries of the dictionary that occur, and the rows of each."""
    categories, _ = elements(column, device)
    rows = device.to_host(count_codes(categories.codes, len(categories.dictionary), device))
    present = np.flatnonzero(rows)
    return categories.dictionary.take(to_arrow(present)), rows[present]


def _count(
    run: Run[Drift], log: Log, groups: Sequence[Group], bins: Mapping[str, Bins], *, workers: "Workers"
) -> dict[int, DayCounts]:
    """Return the counts of each day, ascending."""
    days: dict[int, DayCounts] = {}
    shared = {"bins": {log.label: _LABELS, **bins}, "device": run.device}
    for group, counts in workers.map(count, groups, label="counting", shared=shared):
        before = days.get(group.day, {})
        days[group.day] = {name: each + before.get(name, 0) for name, each in counts.items()}
    return dict(sorted(days.items()))


def count(group: Group, *, bins: Mapping[str, Bins], device: "Device") -> tuple[Group, DayCounts]:
    """Return what is counted in a row group."""
    columns = read_columns(device, group.path, group.number, list(bins))
    return group, {name: each.count(columns[name], device) for name, each in bins.items()}


def _columns(log: Log) -> tuple[list[str], list[str]]:
    """Return the names of the columns of numbers, and of categories."""
    numbers = [name for name, role in log.columns.items() if role == "continuous"]
    return numbers, [name for name, role in log.columns.items() if role in _CATEGORIES]


def described(log: Log, days: Mapping[int, DayCounts], bins: Mapping[str, Bins], settings: Drift) -> dict[str, Any]:
    """Return the report as values of JSON; the first of the days is the reference."""
    numbers, labels = list(days), {day: each[log.label] for day, each in days.items()}
    columns = [_column(log, days, name, bins[name], settings) for name in log.columns if name in bins]
    return {
        "format": FORMAT,
        "source": log.source,
        "period": log.time.period,
        "reference": {"day": numbers[0], "rows": int(labels[numbers[0]].sum())},
        "thresholds": settings.model_dump(include={"psi", "ks", "jensen_shannon", "new_categories"}),
        "days": [
            {"day": day, "rows": int(rows.sum()), "label_rate": _share(int(rows[1]), int(rows.sum()))}
            for day, rows in labels.items()
        ],
        "days_without_rows": numbers[-1] - numbers[0] + 1 - len(numbers),
        "columns": columns,
        "summary": {verdict: [each["name"] for each in columns if each["verdict"] == verdict] for verdict in VERDICTS},
    }


def _column(log: Log, days: Mapping[int, DayCounts], name: str, bins: Bins, settings: Drift) -> dict[str, Any]:
    (_, reference), *later = ((day, each[name]) for day, each in days.items())
    found = [{"day": day, **compare(bins, reference, counts, settings)} for day, counts in later]
    known = {"known": len(bins.places) - 1} if isinstance(bins, CategoryBins) else {}
    worst = min((VERDICTS.index(each["verdict"]) for each in found), default=len(VERDICTS) - 1)
    return {
        "name": name,
        "role": log.columns[name],
        "nulls": _share(int(reference[-1]), int(reference.sum())),
        **known,
        "verdict": VERDICTS[worst],
        "days": found,
    }


def compare(bins: Bins, reference: "Counts", counts: "Counts", settings: Drift) -> dict[str, Any]:
    """Return the measures of a day, the limits of chance, and the verdict, given rows by place of the bins."""
    before, now = bins.binned(reference), bins.binned(counts)
    chance = measures.chance(before, now)
    found = {"psi": measures.psi(before, now), "jensen_shannon": measures.jensen_shannon(before, now)}
    rows, values, known = int(counts.sum()), int(counts[:-1].sum()), int(reference[:-1].sum())
    if isinstance(bins, NumberBins):
        found["ks"] = measures.kolmogorov_smirnov(reference[:-1], counts[:-1])
        chance["ks"] = measures.chance_of_ks(known, values)
    else:
        found["new_categories"] = _share(int(counts[bins.unknown]), rows)
        chance["new_categories"] = measures.chance_of_new_categories(bins.once, reference=known, rows=rows)
    over = [name for name, value in found.items() if value is not None and value > getattr(settings, name)]
    above = [name for name in over if (found[name] or 0.0) > chance[name]]
    return {
        "nulls": _share(int(counts[-1]), rows),
        **{name: None if value is None else round(value, _DIGITS) for name, value in found.items()},
        "chance": {name: round(value, _DIGITS) for name, value in chance.items()},
        "above": above,
        "verdict": "drift" if above else "chance" if over else "stable",
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, _DIGITS) if whole else None


if __name__ == "__main__":
    main(drift)
