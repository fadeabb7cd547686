"""Numbers from 0 to below 2**20 as integers, whose sums are the same in any order and on any engine.

A number is cut into integers of 31 bits, the highest bits first, so that sums over up to 2**32 - 1 rows fit in 64 bits.
What is left after the last one is dropped: less than 2**-42 of a value, and less than 2**-53 of its square. Squares are
those of float64, which IEEE 754 rounds alike everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

LIMIT = 2.0**20
ROWS = 2**32 - 1
# Units of each integer in 1, as a power of two.
VALUE = {"value_0": 11, "value_1": 42}
SQUARE = {"square_0": -9, "square_1": 22, "square_2": 53}
SUMS = (*VALUE, *SQUARE)
VALUE_UNIT, SQUARE_UNIT = 2**42, 2**53
Integers = npt.NDArray[np.object_]


def integers(values: Any, to_integer: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the columns of integers, by the names of `SUMS`, that stand for values and for their squares.

    ``values`` are a float64 expression of Polars or a series of pandas or cuDF, from 0 to below `LIMIT`; ``to_integer``
    makes int64 of one, without what is behind the point.
    """
    value = dict(_cut(values, VALUE, to_integer))
    # Of what the sums of values hold, so that a small spread is not lost in what was dropped.
    held = sum(value[name] * 2.0**-power for name, power in VALUE.items())
    return {**value, **dict(_cut(held * held, SQUARE, to_integer))}


def totals(sums: Mapping[str, npt.NDArray[np.int64]]) -> tuple[Integers, Integers]:
    """Return the sums of values in 1 / `VALUE_UNIT`, and of squares in 1 / `SQUARE_UNIT`, as integers of any size."""
    return _join(sums, VALUE), _join(sums, SQUARE)


def _cut(numbers: Any, powers: Mapping[str, int], to_integer: Callable[[Any], Any]) -> Iterator[tuple[str, Any]]:
    for name, power in powers.items():
        whole = to_integer(numbers * 2.0**power)
        yield name, whole
        # Exact: what is left are bits of the number itself.
        numbers = numbers - whole * 2.0**-power


def _join(sums: Mapping[str, npt.NDArray[np.int64]], powers: Mapping[str, int]) -> Integers:
    finest = max(powers.values())
    joined: Integers = sum(sums[name].astype(object) * 2 ** (finest - power) for name, power in powers.items())
    return joined
