"""The tips tables: statistics of groups as data frames, one row for each group and service, and for all services."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from whitewater.devices import NULL_INTEGER, Array
from whitewater.devices.group_statistics import medians
from whitewater.taxi.calendar import HOURS_OF_WEEK, month_name
from whitewater.taxi.schema import PAYMENT_NAMES, SERVICES, Service
from whitewater.taxi.tip_groups import ALL_MONTHS, TipStatistics, group_sizes
from whitewater.taxi.zones import Zones

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"


def tip_tables(
    statistics: Mapping[Service, Mapping[str, TipStatistics]],
    zones: Zones,
    *,
    confidence: float,
    months: range = ALL_MONTHS,
) -> dict[str, pd.DataFrame]:
    """Return the tables by name: hour, weekday_hour, month, payment_type, passenger_count, borough, zone.

    ``statistics`` are by service, then by key of `whitewater.taxi.tip_groups.group_sizes`. Columns: ``service``, the
    key, ``all_trips``, ``trips``, ``mean``, ``mean_low``, ``mean_high``, ``median``, ``plain_trips``, ``plain_mean``.
    The interval is mean ± z s / sqrt(n) (normal approximation); the median is read from a histogram, within 0.2 %; a
    null key is a row with a null key. Groups without trips are left out.
    """
    import pandas as pd

    named = [service for service in SERVICES if service in statistics]
    by_key: dict[str, dict[str, TipStatistics]] = {
        key: {service: statistics[service][key] for service in named} for key in group_sizes(months)
    }
    for key, services in by_key.items():
        services[ALL] = sum(services.values(), TipStatistics.nothing(group_sizes(months)[key]))

    def table(key: str, groups: pd.DataFrame, members: Array | None = None) -> pd.DataFrame:
        frames = [_rows(service, each, groups, members, confidence) for service, each in by_key[key].items()]
        return pd.concat(frames, ignore_index=True)

    hours = np.arange(HOURS_OF_WEEK + 1)
    of_day = np.where(hours == HOURS_OF_WEEK, 24, hours % 24)
    codes = np.append(zones.borough_codes, NULL_INTEGER).astype(np.int64)
    borough = np.where(codes == NULL_INTEGER, len(zones.boroughs), codes)
    return {
        "hour": table("hour_of_week", _frame(hour=_nullable(np.arange(24))), of_day),
        "weekday_hour": table(
            "hour_of_week", _frame(weekday=_nullable(hours[:-1] // 24), hour=_nullable(hours[:-1] % 24))
        ),
        "month": table("month", _frame(month=[*map(month_name, months), None])),
        "payment_type": table(
            "payment_type",
            _frame(payment_type=_nullable(np.arange(7)), payment_name=[*PAYMENT_NAMES.values(), None]),
        ),
        "passenger_count": table("passenger_count", _frame(passenger_count=_nullable(np.arange(10)))),
        "borough": table("location", _frame(borough=[*zones.boroughs, None]), borough),
        "zone": table(
            "location",
            _frame(
                location_id=_nullable(np.arange(266)),
                zone=[*zones.names, None],
                borough=[[*zones.boroughs, None][place] for place in borough],
            ),
        ),
    }


def _rows(
    service: str, statistics: TipStatistics, groups: pd.DataFrame, members: Array | None, confidence: float
) -> pd.DataFrame:
    """Return the rows of one service: groups summed up by ``members``, the index of the table's row for each group."""
    gathered = statistics if members is None else statistics.gathered(members, len(groups))
    recorded, plain, count = gathered.recorded, gathered.plain, gathered.recorded.count
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = recorded.total / count
        spread = np.maximum(recorded.total_of_squares - count * mean**2, 0) / (count - 1)
        margin = NormalDist().inv_cdf(0.5 + confidence / 2) * np.sqrt(spread / count)
        plain_mean = plain.total / plain.count
    columns = {
        "all_trips": gathered.all_trips,
        "trips": count,
        "mean": mean,
        # One trip has no spread: its interval is unknown, not empty.
        "mean_low": np.where(count > 1, mean - margin, np.nan),
        "mean_high": np.where(count > 1, mean + margin, np.nan),
        "median": medians(recorded),
        "plain_trips": plain.count,
        "plain_mean": plain_mean,
    }
    rows = groups.assign(**columns)
    rows.insert(0, "service", service)
    # Kept in the Parquet file; the pictures say it.
    rows.attrs["confidence"] = confidence
    return rows[rows["all_trips"] > 0].reset_index(drop=True)


def _frame(**columns: object) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns)


def _nullable(values: Array) -> pd.api.extensions.ExtensionArray:
    """Return the values as nullable integers with a null at the end."""
    import pandas as pd

    return pd.array([*values.tolist(), None], dtype="Int16")
