"""Values of a source's files as those of a log: labels, other numbers and text, and times as seconds.

Times are numbers of a declared unit or format, text of a format, timestamps, or dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from whitewater.features.log_folder import SINCE, UNTIL
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater_apps.recsys.config import A_SECOND

Values: TypeAlias = pa.ChunkedArray | pa.Array
Seconds = npt.NDArray[np.int64]
_WIDTHS = {"Y": 4, **dict.fromkeys("ymdHMS", 2)}
_DIGITS_ONLY = re.compile(r"(?:%[YymdHMS])+")
_USUAL_FORMATS = tuple(
    year + rest for year in ("%Y", "%y") for rest in ("%m%d", "%m%d%H", "%m%d%H%M", "%m%d%H%M%S")
)  # fmt: skip
# Integers up to here are exact as float64.
_EXACT = 1 << 53
_LARGEST = (1 << 63) - 1
# Far outside of all times, and well inside of 64 bits.
_FAR = 1 << 62


class RefusedError(ValueError):
    """A label or a time that can be read, but that no log may have: unlike a malformed line, it is never left out."""


def is_text(type_: pa.DataType) -> bool:
    """Say whether a type is text, also text that is encoded by a dictionary."""
    inner = type_.value_type if pt.is_dictionary(type_) else type_
    return bool(pt.is_string(inner) or pt.is_large_string(inner) or pt.is_string_view(inner))


def of_text(texts: Values, type_: pa.DataType) -> Values:
    """Return texts as a type, as float64 where integers have a fraction. Raises ValueError if one cannot be read."""
    if is_text(type_) or pt.is_null(type_):
        return texts
    with suppress(pa.ArrowInvalid):
        return pc.cast(texts, type_)
    trimmed = pc.utf8_trim_whitespace(texts)
    with suppress(pa.ArrowInvalid):
        return pc.cast(trimmed, type_)
    return pc.cast(trimmed, pa.float64() if pt.is_integer(type_) else type_)


def labels(values: Values, positive: float | None) -> pa.Array:
    """Return labels, int8. Raises RefusedError if one is null or NaN, or none of 0 and 1 where ``positive`` is None."""
    found = pc.cast(values, pa.float64())
    # NumPy compares, because Arrow imports pandas to compare with a number.
    numbers = np.empty(0) if found.null_count else to_numpy(found)
    if found.null_count or np.isnan(numbers).any():
        raise RefusedError("a label is null")
    other = numbers[(numbers != 0) & (numbers != 1)]
    if positive is None and len(other):
        raise RefusedError(f"a label is {other[0]:g}, neither 0 nor 1")
    return to_arrow((numbers if positive is None else numbers >= positive).astype(np.int8))


def cast(values: Values, type_: pa.DataType) -> Values:
    """Return values as a type of the log.

    Raises ValueError if one is not an integer where an integer is wanted, or too large.
    """
    if pt.is_floating(values.type) and pt.is_integer(type_) and (pc.max(pc.abs(values)).as_py() or 0) > _EXACT:
        raise ValueError("a number is too large to be known exactly")
    if pt.is_uint64(values.type) and (largest := pc.max(values).as_py() or 0) > _LARGEST:
        raise ValueError(f"{largest} is above 2**63 - 1: store the column as float64, or as text")
    return pc.cast(values, type_)


def is_time(type_: pa.DataType, unit: str | None) -> bool:
    """Say whether times can be of a type, if their unit or format is the one that is declared, or None."""
    if pt.is_timestamp(type_) or pt.is_date(type_):
        return unit is None
    if _is_format(unit):
        return bool(pt.is_integer(type_) or is_text(type_) or pt.is_null(type_))
    return bool(pt.is_integer(type_) or pt.is_floating(type_) or pt.is_null(type_))


def seconds(values: Values, unit: str | None) -> pa.Array:
    """Return times as int64 seconds since 1970 in UTC; fractions are cut off downwards.

    Raises RefusedError if one is null or outside of 1980 to 2100, or they are numbers without a unit, and ValueError if
    one is not of the format.
    """
    if values.null_count:
        raise RefusedError("a time is null")
    found = _seconds(values, unit)
    wrong = np.flatnonzero((found < SINCE) | (found >= UNTIL))
    if len(wrong):
        place = int(wrong[0])
        raise RefusedError(_outside(values, place, unit, int(found[place])))
    return to_arrow(found)


def _seconds(values: Values, unit: str | None) -> Seconds:
    if not len(values):
        return np.empty(0, np.int64)
    if pt.is_timestamp(values.type) or pt.is_date(values.type):
        stamps = pc.cast(values, pa.timestamp("s")) if pt.is_date(values.type) else values
        counts: Seconds = to_numpy(pc.cast(stamps, pa.int64()))
        return counts // A_SECOND[stamps.type.unit]
    if unit is None:
        first = _number(values[0].as_py())
        raise RefusedError(f"a time is {first}, and its unit is not declared, by unit of the column{_fitting(first)}")
    return _of_format(values, unit) if _is_format(unit) else _of_numbers(values, A_SECOND[unit])


def _of_numbers(values: Values, a_second: int) -> Seconds:
    if pt.is_floating(values.type):
        floats = to_numpy(pc.cast(values, pa.float64()))
        if np.isnan(floats).any():
            raise RefusedError("a time is null")
        whole: Seconds = np.clip(np.floor(floats / a_second), -_FAR, _FAR).astype(np.int64)
        return whole
    numbers = to_numpy(pc.cast(values, pa.int64() if pt.is_signed_integer(values.type) else pa.uint64()))
    found: Seconds = np.minimum(numbers // numbers.dtype.type(a_second), _FAR).astype(np.int64)
    return found


def _of_format(values: Values, format_: str) -> Seconds:
    texts = pc.cast(values, pa.string())
    distinct = pc.unique(texts)
    padded = pt.is_integer(values.type)
    parsed = np.array([_parsed(text, format_, padded=padded) for text in distinct.to_pylist()], np.int64)
    found: Seconds = parsed[to_numpy(pc.index_in(texts, value_set=distinct))]
    return found


def _parsed(text: str, format_: str, *, padded: bool) -> int:
    """Return the seconds that a text tells; of an integer the zeros before its digits are ``padded``."""
    width = _width(format_)
    given = text.zfill(width) if padded else text
    try:
        if width and len(given) != width:
            raise ValueError
        return _instant(given, format_)
    except ValueError:
        fitting = _fitting(int(text)) if text.isdecimal() else ""
        raise ValueError(f"the time {text!r} is not of the form {format_}{fitting}") from None


def _instant(text: str, format_: str) -> int:
    found = datetime.strptime(text, format_)
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() // 1)


def _is_format(unit: str | None) -> bool:
    return unit is not None and unit not in A_SECOND


def _width(format_: str) -> int:
    """Return how many digits a format of nothing else has, or 0: Python would find one digit where there are two."""
    return sum(_WIDTHS[each] for each in format_[1::2]) if _DIGITS_ONLY.fullmatch(format_) else 0


def _outside(values: Values, place: int, unit: str | None, found: int) -> str:
    is_number = pt.is_integer(values.type) or pt.is_floating(values.type)
    limits = f"outside of {_format_time(SINCE)[:4]} to {_format_time(UNTIL)[:4]}"
    if not is_number or unit is None:
        return f"a time is {_format_time(found)}, {limits}"
    value = _number(values[place].as_py())
    return f"a time is {value}, which as {unit} is {_format_time(found)}, {limits}{_fitting(value)}"


def _number(value: Any) -> int | float:
    return int(value) if float(value).is_integer() else float(value)


def _format_time(second: int) -> str:
    if not 0 <= second + 62_135_596_800 < 315_537_897_600:
        return "before the year 1" if second < 0 else "after the year 9999"
    return str(np.datetime64(second, "s")).replace("T", " ")


def _fitting(value: float) -> str:
    """Return the end of a sentence on the units of which a number is a time."""
    fits = [f"{unit} ({_format_time(second)})" for unit, second in _fits(value) if SINCE <= second < UNTIL]
    return f"; it would fit as {' or '.join(fits)}" if fits else "; no unit would fit"


def _fits(value: float) -> Iterator[tuple[str, int]]:
    if not isfinite(value):
        return
    yield from ((unit, int(value // a_second)) for unit, a_second in A_SECOND.items())
    for format_ in _USUAL_FORMATS:
        # A zero before the digits may be lost, but no more of them.
        if _width(format_) - len(str(value)) in (0, 1):
            with suppress(ValueError):
                yield format_, _instant(str(value).zfill(_width(format_)), format_)
