"""Arrow arrays as the arrays of a block: one dtype and one null for each kind, whatever type the file chose.

Text becomes a number only where every character of it belongs to one number, so a torn field is never half read.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines import Array
from whitewater.tables.blocks import BAD_INTEGER, NULL_INTEGER, NULL_TIMESTAMP, Encoded, Kind

MICROSECONDS = pa.timestamp("us")
# Only trips have times of this kind, and theirs are New York's.
LOCAL_ZONE = "America/New_York"
# Longest date with a fraction that fits microseconds: what follows in a nanosecond text is cut off, as flooring does.
_LEAP_YEAR = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY_OF_YEAR = r"(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31"
_TIME_OF_DAY = r"(?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?)?"
_TIMESTAMP_TEXT = rf"^(?:\d{{4}}-(?:{_DAY_OF_YEAR})|{_LEAP_YEAR}-02-29)(?:[ T]{_TIME_OF_DAY})?$"
_TIMESTAMP_CHARACTERS = 26
_EXACT = float(2**53)
NULL_ID = "has a null, which is no id"
_NUMBER_TEXT = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def from_arrow(column: pa.Array | pa.ChunkedArray, kind: Kind) -> Array | Encoded:
    """Return the values of an Arrow column as an array of the kind.

    Columns are of numbers, booleans, timestamps, dates, text (plain or dictionary encoded), or Arrow's null type; see
    `whitewater.tables.blocks` for dtypes and nulls. Nanoseconds are floored, a time with a zone gives what a clock in
    `LOCAL_ZONE` read at that instant, NaN is null, and empty text is null.

    Raises ValueError if a value, or the type, cannot become the kind. Integers that are out of range become
    ``BAD_INTEGER`` instead, but an id must be an integer of 64 bits and not null.
    """
    values = one_array(column)
    if kind == "text":
        return encoded(values)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if kind == "id":
        return _ids(values)
    if pa.types.is_null(values.type):
        return np.full(len(values), null_of(kind), dtype=dtype_of(kind))
    if kind == "timestamp":
        return _timestamps(values)
    if kind == "float64":
        return _floats(values)
    return _integers(values, np.dtype(kind))


def dtype_of(kind: Kind) -> np.dtype[Any]:
    """Return the dtype of a kind's array (for text: of its codes)."""
    return np.dtype({"timestamp": "int64", "id": "int64", "text": "int32"}.get(kind, kind))


def empty(length: int, dtype: np.dtype[Any]) -> Array:
    """Return an array whose content is arbitrary, in memory of Arrow's pool.

    The pool keeps what is freed for the next block; malloc returns it to the system, and its page faults would take a
    third of the time of reading Parquet.
    """
    return np.frombuffer(pa.allocate_buffer(length * dtype.itemsize), dtype)


def null_of(kind: Kind) -> int | float:
    """Return the value that stands for null in a kind's array; ids have none, and the value is of no use."""
    if kind == "timestamp":
        return NULL_TIMESTAMP
    return float("nan") if kind == "float64" else NULL_INTEGER


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece, with one dictionary."""
    if isinstance(column, pa.Array):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _is_text(values: pa.Array) -> bool:
    return bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))


def encoded(values: pa.Array) -> Encoded:
    """Return values of any type as text, numbers as pyarrow writes them; empty text is null."""
    if not pa.types.is_dictionary(values.type):
        values = values.cast(pa.string()).dictionary_encode()
    codes = _numpy(values.indices.cast(pa.int32()), NULL_INTEGER)
    words = values.dictionary.cast(pa.string()).to_pylist()
    vocabulary = {word: code for code, word in enumerate(dict.fromkeys(filter(None, words)))}
    if len(vocabulary) == len(words):
        return Encoded(codes, tuple(words))
    renumbered = np.array([*(vocabulary.get(word, NULL_INTEGER) for word in words), NULL_INTEGER], np.int32)
    return Encoded(renumbered[codes], tuple(vocabulary))


def _timestamps(values: pa.Array) -> Array:
    if _is_text(values):
        values = _timestamps_of_text(values)
    if pa.types.is_date(values.type):
        values = values.cast(MICROSECONDS)
    if not pa.types.is_timestamp(values.type):
        raise ValueError(f"{values.type} is not a point in time")
    if values.type.tz is not None:
        values = pc.local_timestamp(values.cast(pa.timestamp(values.type.unit, LOCAL_ZONE)))
    microseconds = microseconds_of(_numpy(values.cast(pa.int64()), 0), values.type.unit)
    return np.where(_nulls(values), NULL_TIMESTAMP, microseconds) if values.null_count else microseconds


def microseconds_of(ticks: Array, unit: str) -> Array:
    """Return int64 counts of a unit (s, ms, us, ns), of either device, as microseconds, nanoseconds floored.

    Raises ValueError if int64 cannot hold them: beyond the year 290,000.
    """
    if unit == "ns":
        return ticks // 1000
    factor = {"s": 1_000_000, "ms": 1000, "us": 1}[unit]
    microseconds = ticks * factor if factor > 1 else ticks
    if factor > 1 and bool((microseconds // factor != ticks).any()):
        raise ValueError("has a time beyond the year 290,000")
    return microseconds


def _numpy(values: pa.Array, null: int | float) -> Array:
    """Return numbers as NumPy's, without the import of pandas, a quarter of a second, that `to_numpy` costs."""
    return np.from_dlpack(values.fill_null(null) if values.null_count else values)


def _nulls(values: pa.Array) -> Array:
    return _numpy(values.is_null().cast(pa.int8()), 0).view(bool)


def readable(column: pa.ChunkedArray, kind: Kind) -> Array:
    """Return which texts can be read as a kind of number or time, or as its null, bool (rows,)."""
    texts = _null_when_empty(one_array(column))
    accepted = _are_times(texts) if kind == "timestamp" else _are_numbers(texts)
    return _numpy(accepted.fill_null(True).cast(pa.int8()), 1).view(bool)


def _are_times(texts: pa.Array) -> pa.Array:
    return pc.match_substring_regex(texts, _TIMESTAMP_TEXT)


def _are_numbers(texts: pa.Array) -> pa.Array:
    """Tell numbers of any size but those beyond the doubles."""
    are_numbers = pc.match_substring_regex(texts, _NUMBER_TEXT)
    return pc.and_(are_numbers, pc.is_finite(pc.if_else(are_numbers, texts, "0").cast(pa.float64())))


def _timestamps_of_text(texts: pa.Array) -> pa.Array:
    texts = _null_when_empty(texts)
    _refuse(texts, _are_times(texts), "a time such as 2019-03-01 08:00:00, without zone")
    return pc.utf8_slice_codeunits(texts, 0, _TIMESTAMP_CHARACTERS).cast(MICROSECONDS)


def _null_when_empty(texts: pa.Array) -> pa.Array:
    texts = pc.utf8_trim_whitespace(texts.cast(pa.string()))
    return pc.if_else(pc.equal(pc.utf8_length(texts), 0), None, texts)


def _refuse(texts: pa.Array, accepted: pa.Array, meaning: str) -> None:
    refused = texts.filter(pc.invert(accepted))
    if len(refused):
        raise ValueError(f"{refused[0].as_py()!r} is not {meaning}")


def _floats(values: pa.Array) -> Array:
    if _is_text(values):
        values = _null_when_empty(values)
        _refuse(values, _are_numbers(values), "a number")
    if pa.types.is_temporal(values.type):
        raise ValueError(f"{values.type} is not a number")
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return _numpy(values.cast(pa.float64(), safe=False), float("nan"))


def _integers(values: pa.Array, dtype: np.dtype[Any]) -> Array:
    if _is_text(values):
        floats = _floats(values)
        # From 2**53 on a double no longer tells neighboring integers apart.
        return narrow_floats(np, np.where(floats >= _EXACT, -1.0, floats), dtype)
    if not pa.types.is_integer(values.type) and not pa.types.is_boolean(values.type):
        return narrow_floats(np, _floats(values), dtype)
    wide = values.cast(pa.uint64() if values.type == pa.uint64() else pa.int64())
    narrow = narrow_integers(np, _numpy(wide, 0), dtype)
    return np.where(_nulls(values), dtype.type(NULL_INTEGER), narrow) if values.null_count else narrow


def _ids(values: pa.Array) -> Array:
    if values.null_count:
        raise ValueError(NULL_ID)
    if not pa.types.is_integer(values.type) and len(values):
        raise ValueError(f"is of type {values.type}, but ids are integers")
    largest = pc.max(values).as_py() if values.type == pa.uint64() and len(values) else 0
    if largest > np.iinfo(np.int64).max:
        raise ValueError(f"has the id {largest}, but ids are integers of 64 bits with sign, at most 2**63 - 1")
    return _numpy(values.cast(pa.int64()), 0)


def narrow_integers(xp: ModuleType, values: Array, dtype: np.dtype[Any]) -> Array:
    """Return integers in a dtype; those that it cannot hold, and those below 0, become ``BAD_INTEGER``."""
    fits = (values >= 0) & (values <= np.iinfo(dtype).max)
    narrow: Array = xp.where(fits, values.astype(dtype), dtype.type(BAD_INTEGER))
    return narrow


def narrow_floats(xp: ModuleType, values: Array, dtype: np.dtype[Any]) -> Array:
    """Return floats as integers: NaN is null; fractions, and what the dtype cannot hold, become ``BAD_INTEGER``."""
    fits = (values >= 0) & (values < float(np.iinfo(dtype).max) + 1) & (xp.floor(values) == values)
    whole = xp.where(fits, values, float(BAD_INTEGER))
    narrow: Array = xp.where(xp.isnan(values), float(NULL_INTEGER), whole).astype(dtype)
    return narrow
