"""Calendar fields of timestamps as integers: microseconds since 1970-01-01 in local time, nulls as -1."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from whitewater.devices import NULL_INTEGER, Array, Device

MICROSECONDS = 1_000_000
HOUR = 3_600 * MICROSECONDS
DAY = 24 * HOUR
HOURS_OF_WEEK = 168
FIRST_YEAR, LAST_YEAR = 2000, 2099
MONTHS = (LAST_YEAR - FIRST_YEAR + 1) * 12
# 1970-01-01 was a Thursday; weeks begin on Monday.
_THURSDAY = 3 * 24


def hour_of_week(timestamps: Array, device: Device) -> Array:
    """Return 24 x weekday + hour, Monday 0 h being 0, as int32."""
    xp = device.xp
    known = in_range(timestamps, device)
    hours = (timestamps // HOUR + _THURSDAY) % HOURS_OF_WEEK
    result: Array = xp.where(known, hours, NULL_INTEGER).astype(xp.int32)
    return result


def month_index(timestamps: Array, device: Device) -> Array:
    """Return months since 2000-01 as int32; -1 for nulls and for dates outside 2000 to 2099."""
    xp = device.xp
    days = (timestamps // DAY).clip(_first_day() - 1, _first_day() + len(_months_of_days()))
    result: Array = xp.take(_table(device), days - (_first_day() - 1))
    return result


def in_range(timestamps: Array, device: Device) -> Array:
    """Return where a timestamp is known and within 2000 to 2099."""
    first = _first_day() * DAY
    within: Array = (timestamps >= first) & (timestamps < first + len(_months_of_days()) * DAY)
    return within


def month_number(year: int, month: int) -> int:
    """Return the index of a month, 1 to 12, of a year."""
    return (year - FIRST_YEAR) * 12 + month - 1


def month_name(index: int) -> str:
    """Return ``YYYY-MM`` of a month index."""
    return f"{FIRST_YEAR + index // 12:04d}-{index % 12 + 1:02d}"


@lru_cache
def _first_day() -> int:
    return int(np.datetime64(f"{FIRST_YEAR}-01-01", "D").astype(np.int64))


@lru_cache
def _months_of_days() -> Array:
    days = np.arange(f"{FIRST_YEAR}-01-01", f"{LAST_YEAR + 1}-01-01", dtype="datetime64[D]")
    months = days.astype("datetime64[M]").astype(np.int64) - (FIRST_YEAR - 1970) * 12
    return months.astype(np.int32)


@lru_cache
def _table(device: Device) -> Array:
    """Return the month of each day, with a -1 before and after, on the device."""
    outside = np.array([NULL_INTEGER], np.int32)
    return device.from_host(np.concatenate([outside, _months_of_days(), outside]))
