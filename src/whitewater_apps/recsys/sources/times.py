"""Times of a source as seconds since 1970: numbers of a unit, text or digits of a format, timestamps, or dates."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeAlias

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
_USUAL_FORMATS = [f"%{year}%m%d{rest}" for year in "Yy" for rest in ("", "%H", "%H%M", "%H%M%S")]
# Far outside of all times, and well inside of 64 bits.
_FAR = 1 << 62


class RefusedError(ValueError):
    """A label or a time that can be read, but must not be in a log: it stops the run, as no malformed line does."""


def seconds(values: Values, unit: str | None) -> pa.Array:
    """Return times, at least one, as int64 seconds since 1970 in UTC, rounded down.

    Raises RefusedError if a time is null or outside of 1980 to 2100, or numbers have no unit; and ValueError if a time
    is not of the format.
    """
    is_number = pt.is_integer(values.type) or pt.is_floating(values.type)
    if values.null_count or (pt.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()):
        raise RefusedError("a time is null")
    if is_number and unit is None:
        first = _number(values[0])
        raise RefusedError(f"a time is {first}, and its unit is not declared, by unit of the column{_fitting(first)}")
    times = _of_format(values, unit) if unit and unit not in A_SECOND else _of_numbers(values, unit)
    outside = np.flatnonzero((times < SINCE) | (times >= UNTIL))
    if len(outside):
        time = _format_time(int(times[outside[0]]))
        limits = f"outside of {_format_time(SINCE)[:4]} to {_format_time(UNTIL)[:4]}"
        if not is_number:
            raise RefusedError(f"a time is {time}, {limits}")
        number = _number(values[int(outside[0])])
        raise RefusedError(f"a time is {number}, which as {unit} is {time}, {limits}{_fitting(number)}")
    return to_arrow(times)


def _of_numbers(values: Values, unit: str | None) -> Seconds:
    """Return times of a unit, timestamps or dates as seconds."""
    if pt.is_date(values.type):
        values = pc.cast(values, pa.timestamp("s"))
    if pt.is_timestamp(values.type):
        unit = values.type.unit
    a_second = A_SECOND[unit or "s"]
    if pt.is_floating(values.type):
        numbers = to_numpy(pc.cast(values, pa.float64()))
        return np.clip(np.floor(numbers / a_second), -_FAR, _FAR).astype(np.int64)
    return np.asarray(to_numpy(pc.cast(values, pa.int64())) // a_second)


def _of_format(values: Values, format_: str) -> Seconds:
    # Integers have lost the zeros before their digits.
    width = _width(format_) if pt.is_integer(values.type) else 0
    texts = pc.cast(values, pa.string())
    distinct = pc.unique(texts)
    parsed = []
    for text in distinct.to_pylist():
        try:
            parsed.append(_instant(text.zfill(width), format_))
        except ValueError:
            fitting = _fitting(int(text)) if text.isdecimal() else ""
            raise ValueError(f"the time {text!r} is not of the form {format_}{fitting}") from None
    return np.asarray(np.array(parsed, np.int64)[to_numpy(pc.index_in(texts, value_set=distinct))])


def _instant(text: str, format_: str) -> int:
    """Return a text as seconds since 1970. Raises ValueError if it is of another format."""
    # Python would find one digit where there are two.
    if _width(format_) not in (0, len(text)):
        raise ValueError("digits are missing")
    time = datetime.strptime(text, format_)
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() // 1)


def _width(format_: str) -> int:
    """Return how many digits a format has that consists of nothing else, or 0."""
    return sum(_WIDTHS[letter] for letter in format_[1::2]) if _DIGITS_ONLY.fullmatch(format_) else 0


def _number(value: pa.Scalar) -> float:
    number: float = value.as_py()
    return int(number) if float(number).is_integer() else number


def _format_time(second: int) -> str:
    return str(np.datetime64(second, "s")).replace("T", " ")


def _fitting(number: float) -> str:
    """Return the end of a sentence on the units and formats in which a number is a time."""
    whole = math.floor(number) if math.isfinite(number) else 0
    times = [(unit, whole // a_second) for unit, a_second in A_SECOND.items()]
    for format_ in _USUAL_FORMATS:
        # One zero before the digits may be lost.
        for text in (str(whole), f"0{whole}"):
            with suppress(ValueError):
                times.append((format_, _instant(text, format_)))
    fits = [f"{unit} ({_format_time(second)})" for unit, second in times if SINCE <= second < UNTIL]
    return f"; it would fit as {' or '.join(fits)}" if fits else "; no unit would fit"
