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

A measure is null where a day has nothing to compare. The measures are those of `whitewater_apps.recsys.drift_measures`,
the bins those of `whitewater_apps.recsys.drift_bins`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whitewater.features.log_folder import Log
from whitewater_apps.recsys import drift_measures as measures
from whitewater_apps.recsys.config import Drift
from whitewater_apps.recsys.drift_bins import Bins, CategoryBins, NumberBins
from whitewater_apps.recsys.drift_measures import VERDICTS, Counts

FORMAT = 1
_DIGITS = 6
DayCounts = Mapping[str, Counts]
"""The rows of a day at each place of the bins of each column; of the label those with 0 and those with 1."""


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


def compare(bins: Bins, reference: Counts, counts: Counts, settings: Drift) -> dict[str, Any]:
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
