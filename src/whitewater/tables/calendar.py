"""Calendar fields of timestamps as integers: microseconds since 1970-01-01 in local time, nulls as -1."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from whitewater.engines import Array, Device
from whitewater.tables.blocks import NULL_INTEGER
from whitewater.tables.elementwise import Clock, steps

HOUR = 3_600_000_000
DAY = 24 * HOUR
HOURS_OF_WEEK = 168
FIRST_YEAR, LAST_YEAR = 2000, 2099
MONTHS = (LAST_YEAR - FIRST_YEAR + 1) * 12
# 2000-01-01 was a Saturday; weeks begin on Monday.
_SATURDAY = 5 * 24


def hour_of_week(timestamps: Array, device: Device) -> Array:
    """Return 24 x weekday + hour, Monday 0 h being 0, as int32."""
    first, last = _span()
    return steps(timestamps, Clock(first, last, HOUR, _SATURDAY, HOURS_OF_WEEK), device)


def month_index(timestamps: Array, device: Device) -> Array:
    """Return months since 2000-01 as int32; -1 for nulls and for dates outside 2000 to 2099."""
    first, last = _span()
    days = steps(timestamps, Clock(first, last, DAY, 0, len(_months_of_days())), device)
    # Day -1, no date, takes the last entry.
    result: Array = _table(device)[days]
    return result


def month_number(year: int, month: int) -> int:
    """Return the index of a month, 1 to 12, of a year."""
    return (year - FIRST_YEAR) * 12 + month - 1


def month_name(index: int) -> str:
    """Return ``YYYY-MM`` of a month index."""
    return f"{FIRST_YEAR + index // 12:04d}-{index % 12 + 1:02d}"


@lru_cache
def _span() -> tuple[int, int]:
    """Return the first and the past-the-last microsecond of the calendar."""
    first = int(np.datetime64(f"{FIRST_YEAR}-01-01", "us").astype(np.int64))
    return first, first + len(_months_of_days()) * DAY


@lru_cache
def _months_of_days() -> Array:
    days = np.arange(f"{FIRST_YEAR}-01-01", f"{LAST_YEAR + 1}-01-01", dtype="datetime64[D]")
    months = days.astype("datetime64[M]").astype(np.int64) - (FIRST_YEAR - 1970) * 12
    return months.astype(np.int32)


@lru_cache
def _table(device: Device) -> Array:
    """Return the month of each day, and a -1 at the end, on the device."""
    return device.to_device(np.append(_months_of_days(), np.int32(NULL_INTEGER)))
