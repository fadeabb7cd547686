"""The rows of a day, block by block: what each column is drawn from on that day, and the labels that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.arrow_arrays import to_arrow
from whitewater.config.recsys import Simulate
from whitewater.recsys.simulation import numbers
from whitewater.recsys.simulation.effects import (
    OF_POPULARITY,
    Roles,
    effects_of_pairs,
    effects_of_values,
    intercept,
    roles,
)
from whitewater.recsys.simulation.popularity import Popularity, cardinalities, popularity
from whitewater.recsys.simulation.texts import texts_of

FIRST_MIDNIGHT = 1_401_667_200
"""2014-06-02, a Monday, as seconds since 1970."""
SECONDS = 86_400
BLOCK_ROWS = 1 << 18
"""Rows that are made at once, and of a row group."""
_WEEKEND = 0.8
# Clicks by hour of the day, midnight to midnight, relative to each other.
_HOURS = (3, 2, 1, 1, 1, 2, 3, 5, 7, 8, 8, 8, 9, 9, 8, 8, 8, 9, 10, 11, 12, 11, 8, 5)
_NULLS = (0.0, 0.0, 0.03, 0.0, 0.0, 0.12, 0.0, 0.44)
_PILOT_ROWS = 1 << 14
_PILOT = -1

Integers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Plan:
    """What is the same on all days."""

    settings: Simulate
    cardinalities: tuple[int, ...]
    roles: Roles
    intercept: np.float32


@dataclass(frozen=True)
class Categories:
    """A column on one day. ``effects`` on the logit, float32 (cardinality + 1,), end with that of a null, 0."""

    popularity: Popularity
    cardinality: int
    nulls: float
    effects: npt.NDArray[np.float32] | None

    def draw(self, rows: int, *, random: np.random.Generator) -> Integers:
        """Return the values of so many rows; that of a null is the cardinality."""
        values = self.popularity.draw(rows, random=random)
        if self.nulls:
            values[_nulls(rows, share=self.nulls, random=random)] = self.cardinality
        return values


@dataclass(frozen=True)
class Day:
    """What the columns are drawn from on a day, and ``pairs``: the effects of a pair of columns, those of nulls 0."""

    number: int
    rows: int
    plan: Plan
    numbers: tuple[numbers.Quantiles, ...]
    categories: tuple[Categories, ...]
    pairs: npt.NDArray[np.float32] | None

    def blocks(self) -> Iterator[pa.Table]:
        """Yield the rows in order of time, `BLOCK_ROWS` at a time."""
        for block, first in enumerate(range(0, self.rows, BLOCK_ROWS)):
            random = np.random.default_rng((self.plan.settings.seed, 0, 1 + self.number, block))
            yield self._block(first, min(BLOCK_ROWS, self.rows - first), random=random)

    def logits(self, rows: int, *, random: np.random.Generator) -> npt.NDArray[np.float32]:
        """Return the logits of so many rows without the intercept, float32 (rows,)."""
        logits = np.zeros(rows, np.float32)
        for column in self.numbers:
            _draw_number(column, logits, random=random)
        self._draw_categories(logits, random=random)
        return logits

    def _block(self, first: int, rows: int, *, random: np.random.Generator) -> pa.Table:
        settings = self.plan.settings
        times = to_arrow(self._times(first, rows, random=random))
        logits = np.full(rows, self.plan.intercept)
        amounts = [_draw_number(column, logits, random=random) for column in self.numbers]
        values = self._draw_categories(logits, random=random)
        texts = [
            _dictionary(values[place], size, column=place, seed=settings.seed)
            for place, size in enumerate(self.plan.cardinalities)
        ]
        clicked = random.random(rows, dtype=np.float32) * (1 + np.exp(-logits)) < 1
        return pa.Table.from_arrays([times, to_arrow(clicked.view(np.int8)), *amounts, *texts], schema=schema(settings))

    def _times(self, first: int, rows: int, *, random: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return ascending Unix times: each row has its own slice of the day's clicks."""
        shares = (np.arange(first, first + rows) + random.random(rows)) / self.rows
        reached = np.concatenate([[0], np.cumsum(_HOURS)]) / sum(_HOURS)
        seconds = np.interp(shares, reached, np.linspace(0, SECONDS, len(_HOURS) + 1))
        return _midnight(self.number) + np.minimum(seconds.astype(np.int64), SECONDS - 1)

    def _draw_categories(self, logits: npt.NDArray[np.float32], *, random: np.random.Generator) -> list[Integers]:
        """Draw all columns of categories, and add their effects to the logits."""
        drawn = [column.draw(len(logits), random=random) for column in self.categories]
        for values, column in zip(drawn, self.categories, strict=True):
            if column.effects is not None:
                logits += column.effects.take(values)
        pair = self.plan.roles.pair
        if pair is not None and self.pairs is not None:
            logits += self.pairs[drawn[pair[0]], drawn[pair[1]]]
        return drawn


def plan(settings: Simulate) -> Plan:
    """Return what is the same on all days; the intercept is such that the first day has about the clicks asked for."""
    sizes = tuple(cardinalities(settings))
    without = Plan(settings, sizes, roles(sizes), np.float32(0))
    random = np.random.default_rng((settings.seed, 0, 1 + _PILOT))
    logits = day(without, 0, rows=_PILOT_ROWS).logits(_PILOT_ROWS, random=random)
    return Plan(settings, sizes, without.roles, intercept(logits, rate=settings.click_rate))


def day(of: Plan, number: int, *, rows: int) -> Day:
    """Return a day, counted from 0."""
    drift = of.settings.drift
    return Day(
        number=number,
        rows=rows,
        plan=of,
        numbers=tuple(
            numbers.quantiles(column, day=number, midnight=_midnight(number), drift=drift)
            for column in range(of.settings.continuous)
        ),
        categories=tuple(_categories(of, column, number) for column in range(of.settings.categorical)),
        pairs=_pairs(of),
    )


def schema(settings: Simulate) -> pa.Schema:
    """Return the columns of a day."""
    types: dict[str, pa.DataType] = {"time": pa.int64(), "label": pa.int8()}
    types |= {f"I{place + 1}": pa.from_numpy_dtype(numbers.dtype(place)) for place in range(settings.continuous)}
    types |= {f"C{place + 1}": pa.dictionary(pa.int32(), pa.string()) for place in range(settings.categorical)}
    return pa.schema(list(types.items()))


def rows_of_days(settings: Simulate) -> list[int]:
    """Return the rows of each day, which are all rows together; there are fewer at weekends."""
    busy = np.where(np.arange(settings.days) % 7 < 5, 1.0, _WEEKEND)
    ends = np.round(settings.rows * np.cumsum(busy) / busy.sum()).astype(int)
    return [int(rows) for rows in np.diff(ends, prepend=0)]


def _categories(of: Plan, column: int, number: int) -> Categories:
    size = of.cardinalities[column]
    today = popularity(of.settings, column=column, cardinality=size, day=number)
    effects = None
    if column in of.roles.values:
        effects = effects_of_values(of.settings.seed, column=column, cardinality=size)
    elif column == of.roles.popularity:
        before = popularity(of.settings, column=column, cardinality=size, day=number - 1)
        effects = (OF_POPULARITY * (0.5 - before.log_places(size))).astype(np.float32)
    return Categories(
        popularity=today,
        cardinality=size,
        nulls=0.0 if column in (of.roles.pair or ()) else _NULLS[column % len(_NULLS)],
        effects=None if effects is None else np.append(effects, np.float32(0)),
    )


def _pairs(of: Plan) -> npt.NDArray[np.float32] | None:
    if of.roles.pair is None:
        return None
    first, second = (of.cardinalities[column] for column in of.roles.pair)
    return effects_of_pairs(of.settings.seed, shape=(first, second))


def _draw_number(
    column: numbers.Quantiles, logits: npt.NDArray[np.float32], *, random: np.random.Generator
) -> pa.Array:
    """Return the column for each logit, to which its effect is added."""
    rows = len(logits)
    places = random.integers(0, numbers.PLACES, rows, dtype=np.uint16)
    missing = _nulls(rows, share=column.nulls, random=random) if column.nulls else None
    if column.effects is not None:
        effects = column.effects.take(places)
        if missing is not None:
            effects[missing] = column.null_effect
        logits += effects
    return _arrow(column.values.take(places), missing)


def _nulls(rows: int, *, share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    return random.integers(0, 1 << 16, rows, dtype=np.uint16) < np.uint16(share * (1 << 16))


def _dictionary(values: Integers, cardinality: int, *, column: int, seed: int) -> pa.DictionaryArray:
    """Return values as texts with a dictionary of those that occur, in ascending order of the values."""
    occurs = np.zeros(cardinality + 1, bool)
    occurs[values] = True
    has_nulls = occurs[cardinality]
    present = np.flatnonzero(occurs[:cardinality])
    codes = np.zeros(cardinality + 1, np.int32)
    codes[present] = np.arange(len(present), dtype=np.int32)
    indices = _arrow(codes.take(values), values == cardinality if has_nulls else None)
    return pa.DictionaryArray.from_arrays(indices, texts_of(present, column=column, seed=seed))


def _arrow(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None) -> pa.Array:
    if missing is None:
        return to_arrow(values)
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, pa.py_buffer(values)])


def _midnight(number: int) -> int:
    return FIRST_MIDNIGHT + SECONDS * number
