"""The report of drift: how far each column of each later day is from the reference, and whether it matters.

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

A measure is null where a day has nothing to compare. The bins are those of `whitewater_apps.recsys.drift_bins`. Few
rows in many bins are apart although nothing has changed: hence the limits of chance, which are somewhat too low where
bins hold few rows.
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
"""From the worst on."""
DayCounts = Mapping[str, Counts]
"""The rows of a day at each place of the bins of each column; of the label those with 0 and those with 1."""
_DIGITS = 6
# An empty bin counts as half a row, so that it is neither infinitely far from a full one, nor nearer in more rows.
EMPTY = 0.5
# How often a measure is above its limit by chance alone.
_CHANCE = 0.001


def drift_report(log: Log, days: Mapping[int, DayCounts], bins: Mapping[str, Bins], settings: Drift) -> dict[str, Any]:
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
    compared = [{"day": day, **compare(bins, reference, counts, settings)} for day, counts in later]
    known = {"known": len(bins.places) - 1} if isinstance(bins, CategoryBins) else {}
    worst = min((VERDICTS.index(each["verdict"]) for each in compared), default=len(VERDICTS) - 1)
    return {
        "name": name,
        "role": log.columns[name],
        "nulls": _share(int(reference[-1]), int(reference.sum())),
        **known,
        "verdict": VERDICTS[worst],
        "days": compared,
    }


def compare(bins: Bins, reference: Counts, counts: Counts, settings: Drift) -> dict[str, Any]:
    """Return the measures of a day, the limits of chance, and the verdict, given rows by place of the bins."""
    before, now = (np.bincount(bins.bins, each).astype(np.int64) for each in (reference, counts))
    rows, values, known = int(counts.sum()), int(counts[:-1].sum()), int(reference[:-1].sum())
    # A list without a value is not a row here, so there may be none.
    measures: dict[str, float | None] = {"psi": None, "jensen_shannon": None}
    limits = dict.fromkeys(measures, 0.0)
    if before.any() and now.any():
        measures = {"psi": psi(before, now), "jensen_shannon": jensen_shannon(before, now)}
        limits = chance(before, now)
    if isinstance(bins, NumberBins):
        both = known > 0 and values > 0
        measures["ks"] = kolmogorov_smirnov(reference[:-1], counts[:-1]) if both else None
        limits["ks"] = chance_of_ks(known, values) if both else 1.0
    else:
        measures["new_categories"] = _share(int(counts[-2]), rows)
        limits["new_categories"] = (
            chance_of_new_categories(bins.once, reference=known, rows=rows) if known and rows else 1.0
        )
    measured = {name: value for name, value in measures.items() if value is not None}
    over = [name for name, value in measured.items() if value > getattr(settings, name)]
    above = [name for name in over if measured[name] > limits[name]]
    return {
        "nulls": _share(int(counts[-1]), rows),
        **{name: None if value is None else round(value, _DIGITS) for name, value in measures.items()},
        "chance": {name: round(value, _DIGITS) for name, value in limits.items()},
        "above": above,
        "verdict": "drift" if above else "chance" if over else "stable",
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, _DIGITS) if whole else None


# ---- two histograms over the same bins, int64 (bins,), each of at least one row


def psi(reference: Counts, counts: Counts) -> float:
    """Return the population stability index: the sum of (q - p) log(q / p) over the bins.

    p and q are the shares in the reference and now. A bin that is empty in one of them counts as `EMPTY` rows there,
    one that is empty in both does not count. By convention a change is small below 0.1, and large above 0.25 (Siddiqi,
    Credit Risk Scorecards, 2006).
    """
    some = (reference > 0) | (counts > 0)
    before = np.maximum(reference[some], EMPTY) / reference.sum()
    now = np.maximum(counts[some], EMPTY) / counts.sum()
    return float((rel_entr(now, before) + rel_entr(before, now)).sum())


def jensen_shannon(reference: Counts, counts: Counts) -> float:
    """Return the Jensen-Shannon distance: the root of the divergence to the base 2, from 0 to 1.

    The divergence is the mean of those of Kullback and Leibler of both from their mean (Lin 1991); its root is a metric
    (Endres and Schindelin 2003). SciPy's function gives NaN where rounding makes the divergence negative.
    """
    before, now = reference / reference.sum(), counts / counts.sum()
    mean = (before + now) / 2
    divergence = (rel_entr(before, mean) + rel_entr(now, mean)).sum() / ln(4)
    return sqrt(min(max(divergence, 0.0), 1.0))


def kolmogorov_smirnov(reference: Counts, counts: Counts) -> float:
    """Return the Kolmogorov-Smirnov distance at the ends of ascending bins.

    The true one is larger by the share of the reference in a bin, at most; and not, if each of its values is a bin.
    """
    return float(np.abs(np.cumsum(reference) / reference.sum() - np.cumsum(counts) / counts.sum()).max())


def chance(reference: Counts, counts: Counts) -> dict[str, float]:
    """Return the limits of `psi` and `jensen_shannon` for so many rows in so many bins.

    Both grow with the chi-square statistic of the histograms: the index is about (1/n + 1/m) times it (Yurdakul and
    Naranjo 2020), the squared distance 1 / (8 log 2) of that. Where bins expect less than a row this is rough.
    """
    freedom = int(((reference > 0) | (counts > 0)).sum()) - 1
    quantile = chdtri(freedom, _CHANCE) if freedom else 0.0
    expected = float(quantile * (1 / int(reference.sum()) + 1 / int(counts.sum())))
    return {"psi": expected, "jensen_shannon": min(sqrt(expected / (8 * ln(2))), 1.0)}


def chance_of_ks(reference: int, rows: int) -> float:
    """Return the limit of `kolmogorov_smirnov` for so many values (Smirnov 1948)."""
    return float(min(kolmogi(_CHANCE) * sqrt(1 / reference + 1 / rows), 1.0))


def chance_of_new_categories(once: int, *, reference: int, rows: int) -> float:
    """Return the limit of the share of rows with a category that the reference lacks.

    Of ``reference`` rows with a category ``once`` have one that no other has: by about their share the next row has a
    category not seen yet (Good 1953). Three more are what may be seen where there were none (the rule of three).
    """
    share = (once + 3) / reference
    return float(min(share + ndtri(1 - _CHANCE) * sqrt(share * (1 / reference + 1 / rows)), 1.0))
