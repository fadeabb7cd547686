"""The drift report: how far each column on each later day is from the reference, and whether that is significant.

``drift.json``:

========================= =============================================================================================
``period``                what a day is: ``day``, ``file`` or ``period``
``reference``             day and rows of the reference
``thresholds``            the settings: a measure above its threshold is reported
``days``                  for each day: ``day``, ``rows``, ``label_rate``, the share of rows with label 1
``days_without_rows``     how many days between the first and the last have no rows, and so are not compared
``columns``               for each column: ``name``; ``role``; ``nulls``, the share of null rows in the reference; if it
                          is categorical, ``known``, the number of categories in the reference; ``verdict``, the worst
                          of its days; and ``days``, see below
``summary``               the names of the columns by verdict
========================= =============================================================================================

For each column and later day:

========================= =============================================================================================
``nulls``                 share of rows that are null (for lists: empty)
``psi``                   population stability index over the bins of the column, including that of nulls
``jensen_shannon``        Jensen-Shannon distance (base 2, 0 to 1) over the same bins
``ks``                    for numbers: Kolmogorov-Smirnov distance (0 to 1) of the values that are not null; exact if
                          the reference has few distinct values, else at most about 0.001 below the true one
``new_categories``        for categories: share of the rows with a category that is not in the reference
``chance``                for each measure, the limit that it exceeds by chance in about one of a thousand columns that
                          do not change
``above``                 the measures above both their threshold and their limit of chance
``verdict``               ``drift`` if there are any; else ``chance`` if a measure is above its threshold, but not above
                          its limit of chance; else ``stable``
========================= =============================================================================================

A measure is null if there is nothing to compare. With few rows in many bins, two samples of the same distribution
differ: hence the limits of chance, which are somewhat too low if bins hold few rows.

Rows are counted at *places*, of which each is in a bin. Those of numbers are intervals, ``(., e0], (e0, e1], ... (en,
.)``, then nulls. Categories have a place for each of the most frequent of the reference, then one for all others that
it has, one for those that it has not, and one for nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log as ln
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import chdtri, kolmogi, ndtri, rel_entr

from whitewater.features.categories.groups import enlarge
from whitewater.features.categories.values import (
    CategoryCounter,
    CategoryTable,
    as_categories,
    as_floats,
    order_by_frequency,
)
from whitewater.features.columns.codes import count_codes
from whitewater.features.columns.column import Column, Lists
from whitewater.features.columns.parquet import read_columns
from whitewater.features.log_folder import FORMAT as LOG_FORMAT
from whitewater.features.log_folder import Log, LogFile
from whitewater.tables.arrow_arrays import to_arrow
from whitewater_apps.recsys.config import Drift

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
FORMAT = 1
VERDICTS = ("drift", "chance", "stable")
"""From worst to best."""
EDGES = 1024
"""Values of a column of numbers, about, at most, before and at which its distribution is known."""
LEAST_ROWS = 10
"""Of the reference in the place of a single category; of rarer ones, chance makes too much for the shares to tell."""
SAMPLE = 1 << 18
"""Rows of the reference, at most, from which the edges are taken: each second, third, ... of them if it has more."""
_DIGITS = 6
# An empty bin counts as half a row: its distance from a full one is finite, and does not shrink with more rows.
EMPTY = 0.5
# Probability that a measure exceeds its limit of chance although nothing has changed.
_CHANCE = 0.001


@dataclass(frozen=True)
class Bins:
    """Bins of a column. ``bins``, int64 (places,), is the bin of each place; ``count`` counts rows at the places.

    Of categories, ``known`` is how many the reference has, and ``once`` how many of them it has once.
    """

    bins: Counts
    count: Callable[[Column], Counts]
    known: int | None = None
    once: int = 0


def drift_report(log: Log, columns: list[dict[str, Any]], settings: Drift) -> dict[str, Any]:
    """Return the report as JSON values, given what it has of the columns; see `column_report`."""
    days = []
    for day, files in _days(log):
        rows = sum(file.rows for file in files)
        clicks = sum(pc.sum(LOG_FORMAT.table(log.path / file.name, [log.label]).column(0)).as_py() for file in files)
        days.append({"day": day, "rows": rows, "label_rate": _share(clicks, rows)})
    return {
        "format": FORMAT,
        "source": log.source,
        "period": log.time.period,
        "reference": {name: days[0][name] for name in ("day", "rows")},
        "thresholds": settings.model_dump(include={"psi", "ks", "jensen_shannon", "new_categories"}),
        "days": days,
        "days_without_rows": log.files[-1].day - log.files[0].day + 1 - len(days),
        "columns": columns,
        "summary": {
            verdict: [column["name"] for column in columns if column["verdict"] == verdict] for verdict in VERDICTS
        },
    }


def column_report(name: str, *, log: Log, settings: Drift) -> dict[str, Any]:
    """Return what the report has of a column."""
    (_, first), *later = _days(log)
    if log.columns[name] == "continuous":
        bins = number_bins(_sample(log, name, first), bins=settings.bins)
    else:
        kind = log.types[name]
        counter = CategoryCounter(kind.value_type if pa.types.is_list(kind) else kind)
        rows = np.zeros(0, np.int64)
        for part in _read(log, name, first):
            values, counts, _ = value_counts(part)
            numbers = counter.add(values)
            rows = enlarge(rows, counter.size)
            np.add.at(rows, numbers, counts)
        bins = category_bins(counter.values(), rows[: counter.size], categories=settings.categories)
    reference = sum(map(bins.count, _read(log, name, first)), np.zeros(len(bins.bins), np.int64))
    days = []
    for day, files in later:
        counts = sum(map(bins.count, _read(log, name, files)), np.zeros_like(reference))
        days.append({"day": day, **compare(bins, reference, counts, settings)})
    return {
        "name": name,
        "role": log.columns[name],
        "nulls": _share(int(reference[-1]), int(reference.sum())),
        **({} if bins.known is None else {"known": bins.known}),
        "verdict": min((day["verdict"] for day in days), key=VERDICTS.index, default=VERDICTS[-1]),
        "days": days,
    }


def _days(log: Log) -> list[tuple[int, list[LogFile]]]:
    return [(day, list(files)) for day, files in groupby(log.files, key=lambda file: file.day)]


def _read(log: Log, name: str, files: Iterable[LogFile]) -> Iterator[Column]:
    """Yield a column of some files, by row group."""
    for file in files:
        for group in LOG_FORMAT.row_groups(log.path / file.name, rows=file.rows):
            yield read_columns(group.path, group.number, [name])[name]


def _sample(log: Log, name: str, files: Sequence[LogFile]) -> Floats:
    """Return numbers of some files that are not null, of more than `SAMPLE` each second, third, ..."""
    step, first, parts = -(-sum(file.rows for file in files) // SAMPLE), 0, []
    for part in _read(log, name, files):
        parts.append(as_floats(part)[-first % step :: step])
        first += len(part)
    sample: Floats = np.concatenate(parts)
    return sample[~np.isnan(sample)]


def number_bins(sample: Floats, *, bins: int) -> Bins:
    """Return the bins for a sample of the reference, float64 (values,), without NaN.

    Bins end at the quantiles 1 / ``bins``, 2 / ``bins``, ... of the sample: (., q1], (q1, q2], ..., (qn, .). A value
    that has a share of at least 1 / ``bins`` is a bin of its own. So a column of one value has three bins, of which two
    are empty until it changes. Places end before and at each value, or the quantiles 1 / `EDGES`, 2 / `EDGES`, ...
    """
    values, rows = np.unique(sample, return_counts=True)
    heavy = values[rows * bins >= len(sample)]
    cuts = np.unique(np.concatenate([_quantiles(sample, bins)[:-1], _before(heavy), heavy]))
    fine = values if len(values) <= EDGES else np.append(values[0], _quantiles(sample, EDGES))
    edges = np.unique(np.concatenate([_before(fine), fine, cuts, [np.inf]]))

    def count(column: Column) -> Counts:
        # A null is NaN, which is sorted after infinity.
        return np.bincount(np.searchsorted(edges, as_floats(column)), minlength=len(edges) + 1)

    return Bins(np.append(np.searchsorted(cuts, edges), len(cuts) + 1), count)


def _before(values: Floats) -> Floats:
    """Return the largest number below each: a place that begins there and ends with a value has no other."""
    return np.nextafter(values, -np.inf)


def _quantiles(sample: Floats, count: int) -> Floats:
    """Return the smallest values that a share of 1/count, 2/count, ..., all values do not exceed."""
    ranks = -(-np.arange(1, count + 1) * len(sample) // count) - 1
    return np.sort(sample)[ranks] if len(sample) else sample


def category_bins(values: pa.Array, rows: Counts, *, categories: int) -> Bins:
    """Return the bins for the categories of the reference, given the rows of each, at least one.

    The ``categories`` most frequent have a place of their own if they have `LEAST_ROWS`; where several are equally
    frequent it is the first ones in ascending order that have. Of lists the elements are counted.
    """
    frequent = np.flatnonzero(rows >= LEAST_ROWS)
    if len(frequent) > categories:
        frequent = frequent[order_by_frequency(rows[frequent], values.take(to_arrow(frequent)))[:categories]]
    others = len(frequent)
    # What is not known is found at -1.
    places = np.append(np.full(len(rows), others), others + 1)
    places[frequent] = np.arange(others)
    known = CategoryTable(values)

    def count(column: Column) -> Counts:
        found, counts, nulls = value_counts(column)
        at_places = np.zeros(others + 3, np.int64)
        np.add.at(at_places, places[known.look_up(found)], counts)
        at_places[-1] = nulls
        return at_places

    bins = np.array([*range(others), others, others, others + 1])
    return Bins(bins, count, known=len(values), once=int((rows == 1).sum()))


def value_counts(column: Column) -> tuple[pa.Array, Counts, int]:
    """Return the categories of a column or of its lists' elements, the rows of each, and the nulls or empty lists.

    A category of a dictionary may come twice.
    """
    if isinstance(column, Lists):
        values, rows, _ = value_counts(column.values)
        return values, rows, int((column.offsets[1:] == column.offsets[:-1]).sum())
    categories = as_categories(column)
    rows = count_codes(categories.codes, len(categories.dictionary))
    present = np.flatnonzero(rows)
    return categories.dictionary.take(to_arrow(present)), rows[present], len(categories) - int(rows.sum())


def compare(bins: Bins, reference: Counts, counts: Counts, settings: Drift) -> dict[str, Any]:
    """Return the measures of a day, their limits of chance and the verdict, given the rows at places of the bins."""
    before, now = (np.bincount(bins.bins, places).astype(np.int64) for places in (reference, counts))
    rows, values, total = int(counts.sum()), int(counts[:-1].sum()), int(reference[:-1].sum())
    # Columns of lists count elements, so there may be none.
    measures: dict[str, float | None] = {"psi": None, "jensen_shannon": None}
    limits = dict.fromkeys(measures, 0.0)
    if before.any() and now.any():
        measures = {"psi": psi(before, now), "jensen_shannon": jensen_shannon(before, now)}
        limits = chance(before, now)
    if bins.known is None:
        comparable = total > 0 and values > 0
        measures["ks"] = kolmogorov_smirnov(reference[:-1], counts[:-1]) if comparable else None
        limits["ks"] = chance_of_ks(total, values) if comparable else 1.0
    else:
        measures["new_categories"] = _share(int(counts[-2]), rows)
        comparable = total > 0 and rows > 0
        limits["new_categories"] = chance_of_new_categories(bins.once, total, rows) if comparable else 1.0
    above_threshold = [name for name, value in measures.items() if value and value > getattr(settings, name)]
    above = [name for name in above_threshold if (measures[name] or 0.0) > limits[name]]
    return {
        "nulls": _share(int(counts[-1]), rows),
        **{name: None if value is None else round(value, _DIGITS) for name, value in measures.items()},
        "chance": {name: round(value, _DIGITS) for name, value in limits.items()},
        "above": above,
        "verdict": "drift" if above else "chance" if above_threshold else "stable",
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, _DIGITS) if whole else None


# ---- measures of two histograms over the same bins, int64 (bins,), both of at least one row


def psi(reference: Counts, counts: Counts) -> float:
    """Return the population stability index: the sum of (q - p) log(q / p) over the bins.

    p and q are the shares of a bin in the reference and now. A bin that is empty in one of them counts as `EMPTY` rows
    there; one that is empty in both is skipped. By convention a change is small below 0.1, and large above 0.25
    (Siddiqi, Credit Risk Scorecards, 2006).
    """
    occupied = (reference > 0) | (counts > 0)
    before = np.maximum(reference[occupied], EMPTY) / reference.sum()
    now = np.maximum(counts[occupied], EMPTY) / counts.sum()
    return float((rel_entr(now, before) + rel_entr(before, now)).sum())


def jensen_shannon(reference: Counts, counts: Counts) -> float:
    """Return the Jensen-Shannon distance: the square root of the divergence with base 2, from 0 to 1.

    The divergence is the mean of the Kullback-Leibler divergences of both histograms from their mean (Lin 1991); its
    root is a metric (Endres and Schindelin 2003). SciPy's function returns NaN if rounding makes it negative.
    """
    before, now = reference / reference.sum(), counts / counts.sum()
    mean = (before + now) / 2
    divergence = (rel_entr(before, mean) + rel_entr(now, mean)).sum() / ln(4)
    return sqrt(min(max(divergence, 0.0), 1.0))


def kolmogorov_smirnov(reference: Counts, counts: Counts) -> float:
    """Return the Kolmogorov-Smirnov distance, taken at the ends of ascending bins only.

    The true distance is larger by at most the share of the reference in one bin, and equal if bins are single values.
    """
    return float(np.abs(np.cumsum(reference) / reference.sum() - np.cumsum(counts) / counts.sum()).max())


def chance(reference: Counts, counts: Counts) -> dict[str, float]:
    """Return the limits of chance of `psi` and `jensen_shannon`, given the rows and bins of both histograms.

    Both grow with the chi-square statistic of the histograms: the index is about (1/n + 1/m) times the statistic
    (Yurdakul and Naranjo 2020), and the squared distance about 1 / (8 log 2) times the index. With fewer than one
    expected row per bin this is rough.
    """
    degrees_of_freedom = int(((reference > 0) | (counts > 0)).sum()) - 1
    quantile = chdtri(degrees_of_freedom, _CHANCE) if degrees_of_freedom else 0.0
    psi_limit = float(quantile * (1 / int(reference.sum()) + 1 / int(counts.sum())))
    return {"psi": psi_limit, "jensen_shannon": min(sqrt(psi_limit / (8 * ln(2))), 1.0)}


def chance_of_ks(reference: int, rows: int) -> float:
    """Return the limit of chance of `kolmogorov_smirnov` for samples of these sizes (Smirnov 1948)."""
    return float(min(kolmogi(_CHANCE) * sqrt(1 / reference + 1 / rows), 1.0))


def chance_of_new_categories(once: int, reference: int, rows: int) -> float:
    """Return the limit of chance of the share of rows with a category that the reference lacks.

    Of its ``reference`` rows with a category, ``once`` have one that occurs only once: their share estimates the
    probability of an unseen category in the next row (Good 1953). The 3 comes from the rule of three, for none seen.
    """
    share = (once + 3) / reference
    return float(min(share + ndtri(1 - _CHANCE) * sqrt(share * (1 / reference + 1 / rows)), 1.0))
