"""A simulated click log like Criteo's, in which the label depends on known effects.

On each day a column has a value, and perhaps an effect, at each place of its distribution; a row draws a place. The
label's logit is the sum of an intercept and all effects.

Numbers are long-tailed counts with nulls, some of them awkward. A value is the quantile, at one of 2^16 equally
probable places, of a log-logistic distribution: exp(center + spread x logit(u)), plus an offset, whose tail is a power
law. Its effect is linear in its logarithm (in the value itself at 1e12). Ten of the thirteen kinds follow Criteo's
columns in nulls and ranges; three test what often goes wrong: amounts with cents, Unix times, and values of unit spread
at 1e12, whose variance is lost by sums of squares.

Categories have an order, from the most popular on, of those that exist on a day, and a row's place in it is drawn by
P(place >= k) = 1 - log(k + 1) / log(n + 1) for n values: close to Zipf's law with exponent 1. The order is that of
log(1 + value) + a trend of the value x days x drift: on the first day that of the values, from which it moves smoothly;
values from the 65,537th on keep their places. Some values, popular ones among them, exist only from a later day on.
Texts are eight hexadecimal digits, as Criteo publishes them: a bijective hash of 32 bits (the finalizer of
MurmurHash3), so no two of a column are equal. A few are awkward.

The columns of categories are put in order of size. Each second one, counted from the second largest down, has an effect
of its own for each value, N(0, 0.3^2). Of the others, which have none and of which the largest is one, two small ones
have effects for each pair of their values, N(0, 0.5^2) with mean 0 along both, so that only their combination tells,
and the second largest has one that falls with the logarithm of the place that its value had in the order of popularity
*on the day before*. The rest is noise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater_apps.recsys.config import Simulate

FIRST_MIDNIGHT = 1_401_667_200  # 2014-06-02, a Monday, as seconds since 1970
SECONDS = 86_400
BLOCK_ROWS = 1 << 18  # rows that are made at once, and of a row group
WEEKEND = 0.8
# Clicks by hour of the day, midnight to midnight, relative to each other.
HOURS = (3, 2, 1, 1, 1, 2, 3, 5, 7, 8, 8, 8, 9, 9, 8, 8, 8, 9, 10, 11, 12, 11, 8, 5)
PILOT_ROWS = 1 << 14
PLACES = 1 << 16  # of numbers
LOGISTIC_DEVIATION = np.pi / np.sqrt(3)
LONGEST = 10_000 * SECONDS  # largest age of a Unix time on its day
EFFECT_OF_NULL = -0.7
# Shares of nulls of the columns of categories, which repeat.
NULLS = (0.0, 0.0, 0.03, 0.0, 0.0, 0.12, 0.0, 0.44)
SMALLEST = 3
TREND = 0.1
NEW_A_DAY = 0.03
FIXED = 30  # columns of at most this many values have all from the first day on
MOVING = 1 << 16
FLOAT32_PLACES = 1 << 19
# Standard deviations of the effects of values and of pairs, and the effect of popularity, on the logit.
OF_VALUES, OF_PAIR, OF_POPULARITY = 0.3, 0.5, 1.5
LEAST_FOR_PAIR = 6  # columns without effects of their values
# Values of every fourth column, at `FIRST_AWKWARD` and following; the empty text is a value, and no null.
AWKWARD = ("", " ", "null", "0", "été à Łódź", "日本語 ☕", 'with "quotes", a comma\tand a tab', "long " * 1000)
FIRST_AWKWARD = 12

Integers = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Drawn = tuple[npt.NDArray[Any], Flags | None]
Random = np.random.Generator


class Kind(NamedTuple):
    """The distribution of a column of numbers, and its change from day to day for a drift of 1."""

    center: float  # of the logarithm; of the value itself if ``form`` is ``shifted``
    spread: float  # of the same
    nulls: float  # the share on the first day
    form: Literal["count", "amount", "time", "shifted"] = "count"
    lowest: int = 0
    effect: float = 0.0  # standard deviation of the effect on the logit
    moves: float = 0.0  # daily increase of the center, in spreads
    more_nulls: float = 0.0  # daily increase of the share of nulls


# In order; columns beyond them repeat them. The tenth is nearly constant.
KINDS = (
    Kind(0.3, 0.9, 0.45, effect=0.3),
    Kind(1.5, 1.2, 0.0, lowest=-2, effect=0.2),
    Kind(1.8, 1.0, 0.21, moves=0.08),
    Kind(1.5, 0.6, 0.22, effect=-0.3),
    Kind(7.8, 0.9, 0.03, moves=0.04),
    Kind(3.4, 0.8, 0.22, effect=0.3, moves=0.05),
    Kind(1.0, 0.9, 0.04, effect=0.25),
    Kind(2.1, 0.8, 0.001),
    Kind(3.5, 0.7, 0.04, form="amount"),
    Kind(-3.0, 0.5, 0.45),
    Kind(0.6, 0.7, 0.04, more_nulls=0.02),
    Kind(15.0, 0.8, 0.05, form="time"),
    Kind(1e12, 1.0, 0.02, form="shifted", effect=0.35),
)
DTYPES = {"count": np.int32, "amount": np.float64, "time": np.int64, "shifted": np.float64}


def kind(column: int) -> Kind:
    """Return the kind of a column of numbers, counted from 0."""
    return KINDS[column % len(KINDS)]


class Column(NamedTuple):
    """A column on one day: its values, or codes of texts, by place, and what each adds to the logit."""

    values: npt.NDArray[Any]
    effects: Floats | None
    nulls: float  # the share
    effect_of_null: np.float32
    ranked: bool  # its places are drawn by popularity, else evenly

    def draw(self, logits: Floats, random: Random) -> Drawn:
        """Return a value for each logit and, if there may be nulls, a mask of them; add the effects to the logits."""
        count, missing = len(self.values), None
        if self.ranked:
            places = by_popularity(count, len(logits), random)
        else:
            places = random.integers(0, count, len(logits), dtype=np.uint16)
        if self.nulls:
            missing = random.integers(0, 1 << 16, len(logits), dtype=np.uint16) < np.uint16(self.nulls * (1 << 16))
        if self.effects is not None:
            effects = self.effects.take(places)
            if missing is not None:
                effects[missing] = self.effect_of_null
            logits += effects
        return self.values.take(places), missing


@dataclass(frozen=True)
class Plan:
    """The part of the model that is the same on all days."""

    settings: Simulate
    cardinalities: list[int]
    roles: dict[str, list[int]]
    pairs: Floats | None
    intercept: np.float32

    def columns(self, day: int) -> list[Column]:
        """Return the columns of numbers, then those of categories, on a day, counted from 0."""
        settings = self.settings
        numbers = [numbers_on(day, column, drift=settings.drift) for column in range(settings.continuous)]
        return [*numbers, *(self._categories_on(day, column) for column in range(settings.categorical))]

    def _categories_on(self, day: int, column: int) -> Column:
        size, effects = self.cardinalities[column], None
        order = self._popularity(day, column)
        if column in self.roles["effects"]:
            random = np.random.default_rng((self.settings.seed, 3, column))
            effects = random.standard_normal(size, dtype=np.float32) * np.float32(OF_VALUES)
        elif column in self.roles["popularity"]:
            before = self._popularity(day - 1, column)
            # A value that was absent has the last place.
            places = np.full(size, len(before))
            places[before] = np.arange(len(before))
            effects = (OF_POPULARITY * (0.5 - np.log1p(places) / np.log1p(len(before)))).astype(np.float32)
        nulls = 0.0 if column in self.roles["pair"] else NULLS[column % len(NULLS)]
        return Column(order, None if effects is None else effects[order], nulls, np.float32(0), ranked=True)

    def _popularity(self, day: int, column: int) -> Integers:
        """Return the values that exist on a day, the most popular first; the day before the first is -1."""
        settings, cardinality = self.settings, self.cardinalities[column]
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

    def draw(self, columns: Sequence[Column], logits: Floats, random: Random) -> list[Drawn]:
        """Return the values of columns for each logit, to which all effects are added."""
        drawn = [column.draw(logits, random) for column in columns]
        if self.pairs is not None:
            logits += self.pairs[*(drawn[self.settings.continuous + column][0] for column in self.roles["pair"])]
        return drawn

    def blocks(self, day: int, *, rows: int) -> Iterator[pa.Table]:
        """Yield the rows of a day, counted from 0, in order of time, `BLOCK_ROWS` at a time."""
        columns, (seed, numbers) = self.columns(day), (self.settings.seed, self.settings.continuous)
        reached = np.concatenate([[0], np.cumsum(HOURS)]) / sum(HOURS)
        for block, first in enumerate(range(0, rows, BLOCK_ROWS)):
            random = np.random.default_rng((seed, 0, 1 + day, block))
            places = np.arange(first, min(first + BLOCK_ROWS, rows))
            # Each row has its own slice of the day's clicks.
            shares = (places + random.random(len(places))) / rows
            seconds = np.interp(shares, reached, np.linspace(0, SECONDS, len(HOURS) + 1)).astype(np.int64)
            times = FIRST_MIDNIGHT + SECONDS * day + np.minimum(seconds, SECONDS - 1)
            logits = np.full(len(places), self.intercept)
            drawn = self.draw(columns, logits, random)
            clicked = random.random(len(places), dtype=np.float32) * (1 + np.exp(-logits)) < 1
            arrays = [pa.array(times), pa.array(clicked.view(np.int8))]
            arrays += [pa.array(values, mask=missing) for values, missing in drawn[:numbers]]
            arrays += [_dictionary(*each, column=column, seed=seed) for column, each in enumerate(drawn[numbers:])]
            yield pa.Table.from_arrays(arrays, schema=schema(self.settings))


def plan(settings: Simulate) -> Plan:
    """Return the plan; its intercept gives the first day about the click rate of the settings."""
    sizes, pairs = cardinalities(settings), None
    by_role = roles(sizes)
    if pair := by_role["pair"]:
        effects = np.random.default_rng((settings.seed, 4)).standard_normal([sizes[column] for column in pair])
        effects -= effects.mean(axis=0)
        effects -= effects.mean(axis=1, keepdims=True)
        pairs = (effects * OF_PAIR).astype(np.float32)
    draft = Plan(settings, sizes, by_role, pairs, np.float32(0))
    logits = np.zeros(PILOT_ROWS, np.float32)
    draft.draw(draft.columns(0), logits, np.random.default_rng((settings.seed, 0, 0)))
    pilot = logits.astype(np.float64)
    # Bisection here is faster than importing SciPy.
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        too_few = (1 / (1 + np.exp(-(pilot + middle)))).mean() < settings.click_rate
        low, high = (middle, high) if too_few else (low, middle)
    return replace(draft, intercept=np.float32(low))


def roles(sizes: Sequence[int]) -> dict[str, list[int]]:
    """Return the columns of categories by role: ``effects``, ``pair``, ``popularity`` or ``noise``."""
    from_largest = sorted(range(len(sizes)), key=lambda column: (-sizes[column], column))
    others = from_largest[::2][::-1]
    enough = len(others) >= LEAST_FOR_PAIR
    pair, popular = ([others[1], others[3]], [others[-2]]) if enough else ([], [])
    noise = sorted(set(others) - {*pair, *popular})
    return {"effects": sorted(from_largest[1::2]), "pair": pair, "popularity": popular, "noise": noise}


def write_day(task: tuple[int, int, Path], *, model: Plan) -> None:
    """Write the file of a day, given its number, rows and path, a block at a time."""
    day, rows, path = task
    # Without Arrow's schema, so that readers see texts; statistics of texts would take as long as the rest, and texts
    # of dictionaries above the limit are written row by row.
    with pq.ParquetWriter(path, schema(model.settings), store_schema=False, write_statistics=False,
                          dictionary_pagesize_limit=64 << 20) as writer:  # fmt: skip
        for block in model.blocks(day, rows=rows):
            writer.write_table(block, row_group_size=len(block))


def schema(settings: Simulate) -> pa.Schema:
    """Return the columns of a day."""
    types: dict[str, pa.DataType] = {"time": pa.int64(), "label": pa.int8()}
    types |= {f"I{n + 1}": pa.from_numpy_dtype(DTYPES[kind(n).form]) for n in range(settings.continuous)}
    types |= {f"C{n + 1}": pa.dictionary(pa.int32(), pa.string()) for n in range(settings.categorical)}
    return pa.schema(list(types.items()))


def rows_of_days(settings: Simulate) -> list[int]:
    """Return the number of rows of each day; there are fewer at weekends."""
    busy = np.where(np.arange(settings.days) % 7 < 5, 1.0, WEEKEND)
    ends = np.round(settings.rows * np.cumsum(busy) / busy.sum()).astype(int)
    return [int(rows) for rows in np.diff(ends, prepend=0)]


def numbers_on(day: int, column: int, *, drift: float) -> Column:
    """Return a column of numbers, counted from 0, on a day."""
    model = kind(column)
    share = (np.arange(PLACES) + 0.5) / PLACES
    standard = np.log(share) - np.log1p(-share) + drift * model.moves * day
    if model.form == "shifted":
        values = model.center + model.spread / LOGISTIC_DEVIATION * standard
    else:
        values = np.exp(model.center + model.spread * standard)
        if model.form == "amount":
            values = np.round(values, 2)
        elif model.form == "time":
            values = FIRST_MIDNIGHT + SECONDS * day - np.floor(np.minimum(values, LONGEST))
        else:
            values = np.minimum(np.floor(values), np.iinfo(np.int32).max // 2) + model.lowest
    # The effect depends on the value, not its place on a day, so that a value has the same effect on all days.
    effects = (model.effect / LOGISTIC_DEVIATION * standard).astype(np.float32) if model.effect else None
    nulls = min(model.nulls + drift * model.more_nulls * day, 0.9)
    of_null = np.float32(EFFECT_OF_NULL * abs(model.effect))
    return Column(values.astype(DTYPES[model.form]), effects, nulls, of_null, ranked=False)


def by_popularity(count: int, rows: int, random: Random) -> Integers:
    """Draw places in the order of popularity."""
    # 24 random bits reach all places of small columns, in a third of the time.
    dtype = np.float32 if count < FLOAT32_PLACES else np.float64
    powers = random.random(rows, dtype=dtype)
    powers *= dtype(np.log1p(count))
    np.exp(powers, out=powers)
    # Rounding may reach the upper end.
    return np.minimum(powers.astype(np.int32) - 1, count - 1)


def cardinalities(settings: Simulate) -> list[int]:
    """Return the number of values of each column: evenly spaced logarithms, in an order that mixes large and small."""
    count = settings.categorical
    ascending = np.geomspace(SMALLEST, settings.largest_cardinality, count).round().astype(int)
    # Multiples of an irrational number, modulo 1, spread evenly whatever their number.
    by_size = np.argsort(np.argsort(np.arange(1, count + 1) * 2**0.5 % 1))
    return [int(ascending[place]) for place in by_size]


def texts_of(values: npt.NDArray[np.int64], *, column: int, seed: int) -> pa.Array:
    """Return the texts of ascending values of a column as an Arrow array of strings."""
    key = np.uint32(np.random.SeedSequence((seed, 2, column)).generate_state(1)[0])
    codes = values.astype(np.uint32) ^ key
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        codes ^= codes >> shift
        codes *= np.uint32(factor)
    digits = codes.astype(">u4").tobytes().hex().encode()
    texts = pa.Array.from_buffers(pa.binary(8), len(values), [None, pa.py_buffer(digits)]).cast(pa.string())
    first, stop = np.searchsorted(values, (FIRST_AWKWARD, FIRST_AWKWARD + len(AWKWARD)))
    if column % 4 != 1 or first == stop:
        return texts
    awkward = pa.array([AWKWARD[value - FIRST_AWKWARD] for value in values[first:stop]])
    return pa.concat_arrays([texts[:first], awkward, texts[stop:]])


def _dictionary(values: Integers, missing: Flags | None, *, column: int, seed: int) -> pa.DictionaryArray:
    """Return values as texts with a dictionary of those that occur, sorted by value."""
    occurs = np.bincount(values if missing is None else values[~missing], minlength=1) > 0
    codes = (np.cumsum(occurs, dtype=np.int32) - 1).take(values, mode="clip")
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, mask=missing), texts_of(np.flatnonzero(occurs), column=column, seed=seed)
    )
