"""Columns of categories: how many values they have, which exist on a day, and which are popular then.

On each day the values that exist have an order, from the most popular on, and the place in it of a row's value is drawn
by P(place >= k) = 1 - log(k + 1) / log(n + 1) for n values: close to Zipf's law with exponent 1. The order is that of
log(1 + value) + a trend of the value x days x drift: on the first day that of the values, from which it moves smoothly;
values from the 65,537th on keep their places. Some values, popular ones among them, exist only from a later day on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whitewater.config.recsys import Simulate

SMALLEST = 3
_TREND = 0.1
_NEW_A_DAY = 0.03
# Of that many values at most, all exist from the first day on.
_FIXED = 30
_MOVING = 1 << 16
_FLOAT32_PLACES = 1 << 19
_IRRATIONAL = 2**0.5


@dataclass(frozen=True)
class Popularity:
    """The values of a column that exist on a day, int32, from the most popular on."""

    order: npt.NDArray[np.int32]

    def draw(self, rows: int, *, random: np.random.Generator) -> npt.NDArray[np.int32]:
        """Return the values of so many rows, int32 (rows,)."""
        count = len(self.order)
        # 24 random bits reach all places of small columns, at a third of the time.
        dtype = np.float32 if count < _FLOAT32_PLACES else np.float64
        powers = random.random(rows, dtype=dtype)
        powers *= dtype(np.log1p(count))
        np.exp(powers, out=powers)
        places = powers.astype(np.int32)
        places -= 1
        # Rounding may reach the upper end.
        np.minimum(places, count - 1, out=places)
        return self.order.take(places)

    def log_places(self, cardinality: int) -> npt.NDArray[np.float64]:
        """Return log(1 + place) over its bound, 0 to 1, of each value: float64 (cardinality,); 1 where absent."""
        places = np.full(cardinality, len(self.order))
        places[self.order] = np.arange(len(self.order))
        return np.asarray(np.log1p(places) / np.log1p(len(self.order)))


def cardinalities(settings: Simulate) -> list[int]:
    """Return the number of values of each column: evenly spaced logarithms, in an order that mixes large and small."""
    count = settings.categorical
    ascending = np.geomspace(SMALLEST, settings.largest_cardinality, count).round().astype(int)
    # Multiples of an irrational number, modulo 1, spread evenly whatever their number.
    by_size = np.argsort(np.argsort(np.arange(1, count + 1) * _IRRATIONAL % 1))
    return [int(ascending[place]) for place in by_size]


def popularity(settings: Simulate, *, column: int, cardinality: int, day: int) -> Popularity:
    """Return which values of a column exist on a day and their order; the day before the first is -1."""
    random = np.random.default_rng((settings.seed, 1, column))
    moving = min(cardinality, _MOVING)
    score = np.log1p(np.arange(moving)) + day * settings.drift * _TREND * random.standard_normal(moving)
    order = np.concatenate([np.argsort(score), np.arange(moving, cardinality)]).astype(np.int32)
    since = _first_days(settings, cardinality, random=random)
    return Popularity(order[since[order] <= max(day, 0)])


def _first_days(settings: Simulate, cardinality: int, *, random: np.random.Generator) -> npt.NDArray[np.int16]:
    """Return the day since which each value exists; the first and most popular one exists always."""
    since = np.zeros(cardinality, np.int16)
    if cardinality <= _FIXED:
        return since
    later = settings.drift * _NEW_A_DAY * (settings.days - 1)
    new = random.random(cardinality) < later / (1 + later)
    since[new] = random.integers(1, settings.days, int(new.sum()))
    since[0] = 0
    return since
