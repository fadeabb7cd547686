"""What ``drift.json`` says of each column and day; see `whitewater.recsys.drift`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from whitewater.recsys import drift_measures as measures
from whitewater.recsys.drift_bins import Bins, CategoryBins, NumberBins

if TYPE_CHECKING:
    from whitewater.config.recsys import Drift
    from whitewater.recsys.drift import DayCounts
    from whitewater.recsys.drift_measures import Counts
    from whitewater.recsys.log_folder import Log

FORMAT = 1
VERDICTS = ("drift", "chance", "stable")
"""From the worst on."""
_DIGITS = 6


def described(log: Log, days: Mapping[int, DayCounts], bins: Mapping[str, Bins], settings: Drift) -> dict[str, Any]:
    """Return the report as values of JSON; the first of the days is the reference."""
    numbers = list(days)
    columns = [_column(log, days, name, bins[name], settings) for name in log.columns if name in bins]
    return {
        "format": FORMAT,
        "source": log.source,
        "period": log.time.period,
        "reference": {"day": numbers[0], "rows": days[numbers[0]].rows},
        "thresholds": settings.model_dump(include={"psi", "ks", "jensen_shannon", "new_categories"}),
        "days": [
            {"day": day, "rows": each.rows, "label_rate": _share(each.clicks, each.rows)} for day, each in days.items()
        ],
        "days_without_rows": numbers[-1] - numbers[0] + 1 - len(numbers),
        "columns": columns,
        "summary": {verdict: [each["name"] for each in columns if each["verdict"] == verdict] for verdict in VERDICTS},
    }


def _column(log: Log, days: Mapping[int, DayCounts], name: str, bins: Bins, settings: Drift) -> dict[str, Any]:
    (_, reference), *later = ((day, each.columns[name]) for day, each in days.items())
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
    limits = measures.chance(before, now)
    found: dict[str, float | None] = {
        "psi": measures.psi(before, now),
        "jensen_shannon": measures.jensen_shannon(before, now),
    }
    chance = {"psi": limits.psi, "jensen_shannon": limits.jensen_shannon}
    error: dict[str, float | None] = {}
    if isinstance(bins, NumberBins):
        distance = measures.kolmogorov_smirnov(reference[:-1], counts[:-1])
        found["ks"], error["ks_error"] = distance or (None, None)
        chance["ks"] = measures.chance_of_ks(int(reference[:-1].sum()), int(counts[:-1].sum()))
    else:
        found["new_categories"] = _share(int(counts[bins.unknown]), int(counts.sum()))
        chance["new_categories"] = measures.chance_of_new_categories(
            bins.once, reference=int(reference[:-1].sum()), rows=int(counts.sum())
        )
    return {
        "nulls": _share(int(counts[-1]), int(counts.sum())),
        **{name: _rounded(value) for name, value in {**found, **error}.items()},
        "chance": {name: _rounded(value) for name, value in chance.items()},
        **_verdict(found, chance, settings),
    }


def _verdict(found: Mapping[str, float | None], chance: Mapping[str, float], settings: Drift) -> dict[str, Any]:
    over = [name for name, value in found.items() if value is not None and value > getattr(settings, name)]
    above = [name for name in over if (found[name] or 0.0) > chance[name]]
    return {"above": above, "verdict": "drift" if above else "chance" if over else "stable"}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, _DIGITS) if whole else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
