"""Columns of categories: how many values they have, which are popular on a day, and how they are written.

On each day the values that exist have an order, from the most popular on, and the place in it of a row's value is drawn
by P(place >= k) = 1 - log(k + 1) / log(n + 1) for n values: close to Zipf's law with exponent 1. The order is that of
log(1 + value) + a trend of the value x days x drift: on the first day that of the values, from which it moves smoothly;
values from the 65,537th on keep their places. Some values, popular ones among them, exist only from a later day on.

Texts are eight hexadecimal digits, as Criteo publishes them: a bijective hash of 32 bits (the finalizer of
MurmurHash3), so no two of a column are equal. A few are awkward.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater_apps.recsys.config import Simulate

SMALLEST = 3
TREND = 0.1
NEW_A_DAY = 0.03
FIXED = 30  # of that many values at most, all exist from the first day on
MOVING = 1 << 16
FLOAT32_PLACES = 1 << 19
IRRATIONAL = 2**0.5
# Values of every fourth column, at `FIRST_AWKWARD` and following; the empty text is a value, and no null.
AWKWARD = ("", " ", "null", "0", "été à Łódź", "日本語 ☕", 'with "quotes", a comma\tand a tab', "long " * 1000)
FIRST_AWKWARD = 12
DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
SHIFTS = np.arange(28, -1, -4, dtype=np.uint32)

Integers = npt.NDArray[np.int32]


def cardinalities(settings: Simulate) -> list[int]:
    """Return the number of values of each column: evenly spaced logarithms, in an order that mixes large and small."""
    count = settings.categorical
    ascending = np.geomspace(SMALLEST, settings.largest_cardinality, count).round().astype(int)
    # Multiples of an irrational number, modulo 1, spread evenly whatever their number.
    by_size = np.argsort(np.argsort(np.arange(1, count + 1) * IRRATIONAL % 1))
    return [int(ascending[place]) for place in by_size]


def popularity(settings: Simulate, *, column: int, cardinality: int, day: int) -> Integers:
    """Return the values of a column that exist on a day, the most popular first; the day before the first is -1."""
    random = np.random.default_rng((settings.seed, 1, column))
    moving = min(cardinality, MOVING)
    score = np.log1p(np.arange(moving)) + day * settings.drift * TREND * random.standard_normal(moving)
    order = np.concatenate([np.argsort(score), np.arange(moving, cardinality)]).astype(np.int32)
    if cardinality <= FIXED:
        return order
    since = np.zeros(cardinality, np.int16)
    later = settings.drift * NEW_A_DAY * (settings.days - 1)
    new = random.random(cardinality) < later / (1 + later)
    since[new] = random.integers(1, settings.days, int(new.sum()))
    since[0] = 0  # the first and most popular one exists always
    return order[since[order] <= max(day, 0)]


def draw(order: Integers, rows: int, *, random: np.random.Generator) -> Integers:
    """Return the values of so many rows, int32 (rows,), given those that exist in the order of popularity."""
    count = len(order)
    # 24 random bits reach all places of small columns, at a third of the time.
    dtype = np.float32 if count < FLOAT32_PLACES else np.float64
    powers = random.random(rows, dtype=dtype)
    powers *= dtype(np.log1p(count))
    np.exp(powers, out=powers)
    places = powers.astype(np.int32)
    places -= 1
    # Rounding may reach the upper end.
    np.minimum(places, count - 1, out=places)
    return order.take(places)


def log_places(order: Integers, cardinality: int) -> npt.NDArray[np.float64]:
    """Return log(1 + place) over its bound, 0 to 1, of each value: float64 (cardinality,); 1 where absent."""
    places = np.full(cardinality, len(order))
    places[order] = np.arange(len(order))
    return np.asarray(np.log1p(places) / np.log1p(len(order)))


def texts_of(values: npt.NDArray[np.int64], *, column: int, seed: int) -> pa.Array:
    """Return the texts of ascending values of a column as an Arrow array of strings."""
    key = np.uint32(np.random.SeedSequence((seed, 2, column)).generate_state(1)[0])
    codes = values.astype(np.uint32) ^ key
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        codes ^= codes >> shift
        codes *= np.uint32(factor)
    digits = DIGITS[(codes[:, None] >> SHIFTS) & np.uint32(15)]
    hexadecimal = _strings(np.arange(0, 8 * len(values) + 1, 8, dtype=np.int32), digits)
    first, stop = np.searchsorted(values, (FIRST_AWKWARD, FIRST_AWKWARD + len(AWKWARD)))
    if column % 4 != 1 or first == stop:
        return hexadecimal
    soiled = [AWKWARD[value - FIRST_AWKWARD].encode() for value in values[first:stop]]
    awkward = _strings(np.cumsum([0, *map(len, soiled)], dtype=np.int32), b"".join(soiled))
    return pa.concat_arrays([hexadecimal[:first], awkward, hexadecimal[stop:]])


def _strings(offsets: Integers, data: bytes | npt.NDArray[np.uint8]) -> pa.StringArray:
    # pyarrow.array would import pandas.
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
