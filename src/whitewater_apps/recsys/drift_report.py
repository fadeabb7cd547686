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

A measure is null if there is nothing to compare. The bins are those of `whitewater_apps.recsys.drift_bins`. With few
rows in many bins, two samples of the same distribution differ: hence the limits of chance, which are somewhat too low
if bins hold few rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log as ln
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import chdtri, kolmogi, ndtri, rel_entr

from whitewater.features.log_folder import Log
from whitewater_apps.recsys.config import Drift
from whitewater_apps.recsys.drift_bins import Bins, CategoryBins, Counts, NumberBins

FORMAT = 1
VERDICTS = ("drift", "chance", "stable")
"""From worst to best."""
DayCounts = Mapping[str, Counts]
"""The number of rows of a day at each place of a column's bins, by column; for the label, of rows with 0 and with 1."""
_DIGITS = 6
# An empty bin counts as half a row: its distance from a full one is finite, and does not shrink with more rows.
EMPTY = 0.5
# Probability that a measure exceeds its limit of chance although nothing has changed.
_CHANCE = 0.001


def drift_report(log: Log, days: Mapping[int, DayCounts], bins: Mapping[str, Bins], settings: Drift) -> dict[str, Any]:
    """Return the report as JSON values; the first day is the reference."""
    numbers, labels = list(days), {day: counts[log.label] for day, counts in days.items()}
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
        "summary": {
            verdict: [column["name"] for column in columns if column["verdict"] == verdict] for verdict in VERDICTS
        },
    }


def _column(log: Log, days: Mapping[int, DayCounts], name: str, bins: Bins, settings: Drift) -> dict[str, Any]:
    (_, reference), *later = ((day, counts[name]) for day, counts in days.items())
    comparisons = [{"day": day, **compare(bins, reference, counts, settings)} for day, counts in later]
    known = {"known": len(bins.places) - 1} if isinstance(bins, CategoryBins) else {}
    worst = min((VERDICTS.index(day["verdict"]) for day in comparisons), default=len(VERDICTS) - 1)
    return {
        "name": name,
        "role": log.columns[name],
        "nulls": _share(int(reference[-1]), int(reference.sum())),
        **known,
        "verdict": VERDICTS[worst],
        "days": comparisons,
    }


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
    if isinstance(bins, NumberBins):
        comparable = total > 0 and values > 0
        measures["ks"] = kolmogorov_smirnov(reference[:-1], counts[:-1]) if comparable else None
        limits["ks"] = chance_of_ks(total, values) if comparable else 1.0
    else:
        measures["new_categories"] = _share(int(counts[-2]), rows)
        limits["new_categories"] = (
            chance_of_new_categories(bins.once, reference=total, rows=rows) if total and rows else 1.0
        )
    numbers = {name: value for name, value in measures.items() if value is not None}
    above_threshold = [name for name, value in numbers.items() if value > getattr(settings, name)]
    above = [name for name in above_threshold if numbers[name] > limits[name]]
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


def chance_of_new_categories(once: int, *, reference: int, rows: int) -> float:
    """Return the limit of chance of the share of rows with a category that the reference lacks.

    Of its ``reference`` rows with a category, ``once`` have one that occurs only once: their share estimates the
    probability of an unseen category in the next row (Good 1953). The 3 comes from the rule of three, for none seen.
    """
    share = (once + 3) / reference
    return float(min(share + ndtri(1 - _CHANCE) * sqrt(share * (1 / reference + 1 / rows)), 1.0))
