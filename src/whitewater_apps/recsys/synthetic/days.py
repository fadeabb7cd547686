"""The rows of a day, block by block: what each column is drawn from on that day, and the labels that follow from it.

The label's logit is the sum of an intercept and of independent effects. Numbers with an effect add a linear one of
their logarithm (of the value itself at 1e12). The columns of categories are put in order of size. Each second one,
counted from the second largest down, has an effect of its own for each value, N(0, 0.3^2). Of the others, which have
none and of which the largest is one, two small ones have effects for each pair of their values, N(0, 0.5^2) with mean 0
along both, so that only their combination tells, and the second largest has one that falls with the logarithm of the
place that its value had in the order of popularity *on the day before*. The rest is noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from whitewater_apps.recsys.config import Simulate
from whitewater_apps.recsys.synthetic.categories import Integers, cardinalities, draw, log_places, popularity, texts_of
from whitewater_apps.recsys.synthetic.numbers import DTYPES, PLACES, Quantiles, kind, quantiles

FIRST_MIDNIGHT = 1_401_667_200  # 2014-06-02, a Monday, as seconds since 1970
SECONDS = 86_400
BLOCK_ROWS = 1 << 18  # rows that are made at once, and of a row group
WEEKEND = 0.8
# Clicks by hour of the day, midnight to midnight, relative to each other.
HOURS = (3, 2, 1, 1, 1, 2, 3, 5, 7, 8, 8, 8, 9, 9, 8, 8, 8, 9, 10, 11, 12, 11, 8, 5)
NULLS = (0.0, 0.0, 0.03, 0.0, 0.0, 0.12, 0.0, 0.44)
PILOT_ROWS = 1 << 14
# Dictionaries of texts larger than this would be written out row by row.
DICTIONARY_BYTES = 64 << 20
# Standard deviations of the effects of values and of pairs, and the effect of popularity, on the logit.
OF_VALUES, OF_PAIR, OF_POPULARITY = 0.3, 0.5, 1.5
LEAST_FOR_PAIR = 6  # columns without effects of their values

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Plan:
    """What is the same on all days; ``roles`` see there."""

    settings: Simulate
    cardinalities: list[int]
    roles: dict[str, list[int]]
    intercept: np.float32


class Categories(NamedTuple):
    """A column on one day: the values that exist, the most popular first, and the share of nulls.

    ``effects`` on the logit, float32 (cardinality + 1,), end with that of a null, 0.
    """

    order: Integers
    cardinality: int
    nulls: float
    effects: Floats | None


@dataclass(frozen=True)
class Day:
    """What the columns are drawn from on a day, and ``pairs``: the effects of a pair of columns."""

    number: int
    rows: int
    plan: Plan
    numbers: tuple[Quantiles, ...]
    categories: tuple[Categories, ...]
    pairs: Floats | None

    def blocks(self) -> Iterator[pa.Table]:
        """Yield the rows in order of time, `BLOCK_ROWS` at a time."""
        settings = self.plan.settings
        for block, first in enumerate(range(0, self.rows, BLOCK_ROWS)):
            random = np.random.default_rng((settings.seed, 0, 1 + self.number, block))
            rows = min(BLOCK_ROWS, self.rows - first)
            times = self._times(first, rows, random=random)
            logits = np.full(rows, self.plan.intercept)
            amounts, values = self.draw(logits, random=random)
            texts = [
                _dictionary(codes, column.cardinality, column=place, seed=settings.seed)
                for place, (codes, column) in enumerate(zip(values, self.categories, strict=True))
            ]
            clicked = random.random(rows, dtype=np.float32) * (1 + np.exp(-logits)) < 1
            columns = [pa.array(times), pa.array(clicked.view(np.int8)), *amounts, *texts]
            yield pa.Table.from_arrays(columns, schema=schema(settings))

    def draw(self, logits: Floats, *, random: np.random.Generator) -> tuple[list[pa.Array], list[Integers]]:
        """Return the columns of numbers and the values of the categories for each logit, to which effects are added.

        The value of a null is the cardinality.
        """
        amounts = [_draw_number(column, logits, random=random) for column in self.numbers]
        drawn = []
        for column in self.categories:
            values = draw(column.order, len(logits), random=random)
            if column.nulls:
                values[_nulls(len(logits), share=column.nulls, random=random)] = column.cardinality
            drawn.append(values)
        for values, column in zip(drawn, self.categories, strict=True):
            if column.effects is not None:
                logits += column.effects.take(values)
        if self.pairs is not None:
            logits += self.pairs[*(drawn[column] for column in self.plan.roles["pair"])]
        return amounts, drawn

    def _times(self, first: int, rows: int, *, random: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return ascending Unix times: each row has its own slice of the day's clicks."""
        shares = (np.arange(first, first + rows) + random.random(rows)) / self.rows
        reached = np.concatenate([[0], np.cumsum(HOURS)]) / sum(HOURS)
        seconds = np.interp(shares, reached, np.linspace(0, SECONDS, len(HOURS) + 1))
        return FIRST_MIDNIGHT + SECONDS * self.number + np.minimum(seconds.astype(np.int64), SECONDS - 1)


def plan(settings: Simulate) -> Plan:
    """Return what is the same on all days; the intercept is such that the first day has about the clicks asked for."""
    sizes = cardinalities(settings)
    without = Plan(settings, sizes, roles(sizes), np.float32(0))
    logits = np.zeros(PILOT_ROWS, np.float32)
    day(without, 0, rows=PILOT_ROWS).draw(logits, random=np.random.default_rng((settings.seed, 0, 0)))
    known = logits.astype(np.float64)
    # Bisection, for which SciPy would be imported longer than this takes.
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        few = (1 / (1 + np.exp(-(known + middle)))).mean() < settings.click_rate
        low, high = (middle, high) if few else (low, middle)
    return Plan(settings, sizes, without.roles, np.float32(low))


def roles(sizes: Sequence[int]) -> dict[str, list[int]]:
    """Return which columns, given their numbers of values and counted from 0, play which role.

    Those with ``effects`` of their values, the ``pair``, the one of ``popularity``, and those that are ``noise``.
    """
    from_largest = sorted(range(len(sizes)), key=lambda column: (-sizes[column], column))
    others = from_largest[::2][::-1]
    enough = len(others) >= LEAST_FOR_PAIR
    pair, popular = ([others[1], others[3]], [others[-2]]) if enough else ([], [])
    noise = sorted(set(others) - {*pair, *popular})
    return {"effects": sorted(from_largest[1::2]), "pair": pair, "popularity": popular, "noise": noise}


def day(of: Plan, number: int, *, rows: int) -> Day:
    """Return a day, counted from 0."""
    settings, midnight = of.settings, FIRST_MIDNIGHT + SECONDS * number
    return Day(
        number=number,
        rows=rows,
        plan=of,
        numbers=tuple(
            quantiles(column, day=number, midnight=midnight, drift=settings.drift)
            for column in range(settings.continuous)
        ),
        categories=tuple(_categories(of, column, number) for column in range(settings.categorical)),
        pairs=_effects_of_pairs(of),
    )


def write_day(task: tuple[int, int, Path], *, of: Plan) -> int:
    """Write the file of a day, given its number, rows and path; return its clicks. Memory is that of a block."""
    number, rows, path = task
    clicks = 0
    # Without Arrow's schema, so that readers see texts; statistics of texts would take as long as the rest.
    with pq.ParquetWriter(path, schema(of.settings), store_schema=False, write_statistics=False,
                          dictionary_pagesize_limit=DICTIONARY_BYTES) as writer:  # fmt: skip
        for block in day(of, number, rows=rows).blocks():
            writer.write_table(block, row_group_size=len(block))
            clicks += pc.sum(block["label"]).as_py()
    return clicks


def schema(settings: Simulate) -> pa.Schema:
    """Return the columns of a day."""
    types: dict[str, pa.DataType] = {"time": pa.int64(), "label": pa.int8()}
    types |= {f"I{n + 1}": pa.from_numpy_dtype(DTYPES[kind(n).form]) for n in range(settings.continuous)}
    types |= {f"C{n + 1}": pa.dictionary(pa.int32(), pa.string()) for n in range(settings.categorical)}
    return pa.schema(list(types.items()))


def rows_of_days(settings: Simulate) -> list[int]:
    """Return the rows of each day, which are all rows together; there are fewer at weekends."""
    busy = np.where(np.arange(settings.days) % 7 < 5, 1.0, WEEKEND)
    ends = np.round(settings.rows * np.cumsum(busy) / busy.sum()).astype(int)
    return [int(rows) for rows in np.diff(ends, prepend=0)]


def _categories(of: Plan, column: int, number: int) -> Categories:
    settings, size = of.settings, of.cardinalities[column]
    effects = None
    if column in of.roles["effects"]:
        random = np.random.default_rng((settings.seed, 3, column))
        effects = random.standard_normal(size, dtype=np.float32) * np.float32(OF_VALUES)
    elif column in of.roles["popularity"]:
        before = popularity(settings, column=column, cardinality=size, day=number - 1)
        effects = (OF_POPULARITY * (0.5 - log_places(before, size))).astype(np.float32)
    return Categories(
        order=popularity(settings, column=column, cardinality=size, day=number),
        cardinality=size,
        nulls=0.0 if column in of.roles["pair"] else NULLS[column % len(NULLS)],
        effects=None if effects is None else np.append(effects, np.float32(0)),
    )


def _effects_of_pairs(of: Plan) -> Floats | None:
    """Return what each pair of values adds to the logit, averages 0 along both."""
    if not of.roles["pair"]:
        return None
    shape = [of.cardinalities[column] for column in of.roles["pair"]]
    effects = np.random.default_rng((of.settings.seed, 4)).standard_normal(shape)
    effects -= effects.mean(axis=0)
    effects -= effects.mean(axis=1, keepdims=True)
    return (effects * OF_PAIR).astype(np.float32)


def _draw_number(column: Quantiles, logits: Floats, *, random: np.random.Generator) -> pa.Array:
    """Return the column for each logit, to which its effect is added."""
    places = random.integers(0, PLACES, len(logits), dtype=np.uint16)
    missing = _nulls(len(logits), share=column.nulls, random=random) if column.nulls else None
    if column.effects is not None:
        effects = column.effects.take(places)
        if missing is not None:
            effects[missing] = column.null_effect
        logits += effects
    return pa.array(column.values.take(places), mask=missing)


def _nulls(rows: int, *, share: float, random: np.random.Generator) -> Flags:
    return random.integers(0, 1 << 16, rows, dtype=np.uint16) < np.uint16(share * (1 << 16))


def _dictionary(values: Integers, cardinality: int, *, column: int, seed: int) -> pa.DictionaryArray:
    """Return values as texts with a dictionary of those that occur, in ascending order of the values."""
    occurs = np.zeros(cardinality + 1, bool)
    occurs[values] = True
    present = np.flatnonzero(occurs[:cardinality])
    codes = np.zeros(cardinality + 1, np.int32)
    codes[present] = np.arange(len(present), dtype=np.int32)
    indices = pa.array(codes.take(values), mask=values == cardinality if occurs[cardinality] else None)
    return pa.DictionaryArray.from_arrays(indices, texts_of(present, column=column, seed=seed))
