"""What the label depends on: effects of values, of pairs of values, and of what was popular the day before.

The columns of categories are put in order of size. Each second one, counted from the second largest down, has an effect
of its own for each value. Of the others, which have none and of which the largest is one, two small ones have effects
for each pair of their values, so that only their combination tells, and the second largest has an effect of how popular
its value was on the day before. The rest is noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

OF_VALUES = 0.3
OF_PAIR = 0.5
OF_POPULARITY = 1.5
_PAIR = (1, 3)
_ENOUGH = 6


@dataclass(frozen=True)
class Roles:
    """Columns of categories, counted from 0, by what the label has of them."""

    values: tuple[int, ...]
    pair: tuple[int, int] | None
    popularity: int | None
    noise: tuple[int, ...]


def roles(cardinalities: Sequence[int]) -> Roles:
    """Return which column plays which role."""
    from_largest = sorted(range(len(cardinalities)), key=lambda column: (-cardinalities[column], column))
    others = from_largest[::2][::-1]
    pair = (others[_PAIR[0]], others[_PAIR[1]]) if len(others) >= _ENOUGH else None
    popular = others[-2] if len(others) >= _ENOUGH else None
    spoken_for = {*(pair or ()), popular}
    noise = tuple(sorted(column for column in others if column not in spoken_for))
    return Roles(tuple(sorted(from_largest[1::2])), pair, popular, noise)


def effects_of_values(seed: int, *, column: int, cardinality: int) -> npt.NDArray[np.float32]:
    """Return what each value adds to the logit, float32 (cardinality,)."""
    random = np.random.default_rng((seed, 3, column))
    return random.standard_normal(cardinality, dtype=np.float32) * np.float32(OF_VALUES)


def effects_of_pairs(seed: int, *, shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    """Return what each pair of values adds to the logit, float32 of that shape, averages 0 along both."""
    effects = np.random.default_rng((seed, 4)).standard_normal(shape)
    effects -= effects.mean(axis=0)
    effects -= effects.mean(axis=1, keepdims=True)
    return (effects * OF_PAIR).astype(np.float32)


def intercept(logits: npt.NDArray[np.float32], *, rate: float) -> np.float32:
    """Return what to add to the logits for labels of a given mean."""
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = (1 / (1 + np.exp(-(logits.astype(np.float64) + middle)))).mean()
        low, high = (middle, high) if mean < rate else (low, middle)
    return np.float32(low)
