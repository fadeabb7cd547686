"""Operators that learn the spread of a column, to scale it, or its median, to fill nulls.

The median is found by radix selection (Knuth, The Art of Computer Programming, volume 3, section 5.2.5). Doubles become
64-bit integers in the same order, their *keys*; each pass over the data selects 16 more bits.

Mean and variance come from exact sums of doubles and their squares, so they do not depend on the order, the partitions
or the device. Doubles of one sign and exponent are 52-bit integers on one scale, which are summed separately for each
sign and exponent (U. Kulisch, "Computer arithmetic and validity: theory, implementation, and applications", 2nd
edition, De Gruyter, 2013, chapter 8).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import ConfigDict
from pydantic import Field as Parameter
from pydantic.dataclasses import dataclass as checked

from whitewater.engines.device import Array, Device
from whitewater.engines.kernel import int64, kernel, uint64
from whitewater.errors import InputError, IntegrityError
from whitewater.features.columns.byte_strings import read_only
from whitewater.features.columns.column import Block, Numbers, as_floats
from whitewater.features.operator import Fitted, Inputs, Mode, Operator, Row, RowFunction, Statistic, columns_in
from whitewater.features.operators.by_column import OnFloats, number_fields, plain_number, widen_type
from whitewater.features.schema import Field

# An artifact must hold finite numbers.
FINITE = ConfigDict(strict=True, allow_inf_nan=False)
COUNTED_BITS = 16
_SIGN = 2**63
# The upper bits of a double are its sign and exponent; the others are the fraction, in two halves.
_SIGNS_AND_EXPONENTS, _FRACTION_BITS, _HALF = 1 << 12, 52, 26
_SPECIAL = 0x7FF  # exponent of infinity and NaN
_LOWER = (1 << _HALF) - 1
# Sums: the count, the halves of fractions, and the halves of their squares and product. Each number is below 2**26, so
# that 2**37 of them do not overflow.
_SUMS = 9
_LEAST = -1074  # the smallest double is 2**-1074
Counts = dict[int, npt.NDArray[np.int64]]
"""By leading bits of keys, the number of keys with each next 16 bits."""
Sums = tuple[float, float, npt.NDArray[np.int64]]
"""Minimum and maximum (inf and -inf without values), and (4096, 9) sums by sign and exponent."""


class _Fill(Operator):
    """Replaces nulls by a value."""

    add_binary_cols: bool = Parameter(False, description="Add a column <name>_filled: true where the value was null.")

    @abstractmethod
    def filled_type(self, type_: pa.DataType) -> pa.DataType:
        """Return the type of the output."""

    @abstractmethod
    def fill_value(self, fitted: Fitted | None) -> float:
        """Return the value that replaces nulls."""

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        outputs = []
        for field in number_fields(self, inputs, fields):
            outputs.append(replace(field, type=self.filled_type(field.type)))
            if self.add_binary_cols:
                outputs.append(Field(f"{field.name}_filled", pa.bool_(), field.tags))
        return outputs

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: Mode) -> Block:
        xp = mode.device.xp
        outputs = {}
        for name in columns_in(inputs):
            column = cast("Numbers", block[name])
            values = column.values
            dtype = np.dtype(self.filled_type(pa.from_numpy_dtype(values.dtype)).to_pandas_dtype())
            is_null = xp.zeros(len(column), bool) if column.valid is None else ~column.valid
            is_null = is_null | xp.isnan(values) if values.dtype.kind == "f" else is_null
            value = dtype.type(self.fill_value(fitted.get(name)))
            outputs[name] = Numbers(xp.where(is_null, value, values.astype(dtype, copy=False)))
            if self.add_binary_cols:
                outputs[f"{name}_filled"] = Numbers(is_null)
        return outputs

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        values = {name: plain_number(self.fill_value(fitted.get(name))) for name in columns_in(inputs)}
        # float64 does not hold every int64.
        makes_floats = pa.types.is_floating(self.filled_type(pa.int64()))

        def compute(row: Row) -> dict[str, Any]:
            outputs: dict[str, Any] = {}
            for name, fill_value in values.items():
                value: Any = row[name]
                # Only NaN is not equal to itself.
                is_null = value is None or value != value  # noqa: PLR0124
                outputs[name] = fill_value if is_null else float(value) if makes_floats else value
                if self.add_binary_cols:
                    outputs[f"{name}_filled"] = is_null
            return outputs

        return compute


class FillMissing(_Fill):
    """Null becomes ``fill_val``.

    The column keeps its type if that holds the value, else it becomes float64; booleans become int8.

    Examples
    --------
    >>> from whitewater.features import Workflow
    >>> from whitewater.features.operators import FillMissing
    >>> Workflow(["x"] >> FillMissing(fill_val=-1)).fit_transform({"x": [4, None]})["x"].to_pylist()
    [4, -1]
    """

    fill_val: float = Parameter(0.0, description="Value that replaces nulls.")

    def filled_type(self, type_: pa.DataType) -> pa.DataType:
        return widen_type(type_, self.fill_val)

    def fill_value(self, fitted: Fitted | None) -> float:
        return self.fill_val


@checked(frozen=True, config=FINITE)
class Median(Fitted):
    """The median of ``count`` values."""

    median: float
    count: int


class FillMedian(_Fill):
    """Null becomes the median of the column in the data that the workflow was fitted on.

    The median is exact, as that of numpy.median. A column without values is refused. Type: float32 stays, with the
    median rounded to it; all others become float64.

    Examples
    --------
    >>> from whitewater.features import Workflow
    >>> from whitewater.features.operators import FillMedian
    >>> Workflow(["x"] >> FillMedian()).fit_transform({"x": [1.0, 2.0, None, 9.0]})["x"].to_pylist()
    [1.0, 2.0, 2.0, 9.0]
    """

    learned: ClassVar[type[Any]] = Median

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[MedianOf]:
        return [MedianOf(name, (name,), 64 - COUNTED_BITS) for name in columns_in(inputs)]

    def filled_type(self, type_: pa.DataType) -> pa.DataType:
        return type_ if pa.types.is_float32(type_) else pa.float64()

    def fill_value(self, fitted: Fitted | None) -> float:
        return cast("Median", fitted).median


class Middle(NamedTuple):
    """A middle value so far: the leading bits of its key, the number of keys that share them, and its rank in these."""

    leading: int
    rank: int
    keys: int


@dataclass(frozen=True)
class MedianOf(Statistic):
    """Learns the median of the column ``name``; this pass learns all bits but the last ``shift`` of the middle."""

    shift: int
    middle: tuple[Middle, ...] = ()
    count: int = 0

    def observe(self, blocks: Iterator[Block], mode: Mode) -> Counts:
        xp, size = mode.device.xp, 1 << COUNTED_BITS
        counts = {leading: np.zeros(size, np.int64) for leading in {each.leading for each in self.middle} or {0}}
        for block in blocks:
            values = as_floats(block[self.name], xp)
            keys = keys_of(values[~xp.isnan(values)], xp) >> np.uint64(self.shift)
            for leading, count in counts.items():
                # Smaller keys wrap around to large numbers.
                digits = keys - np.uint64(leading << COUNTED_BITS)
                distinct, rows = xp.unique(digits[digits < size].astype(np.uint16), return_counts=True)
                count[mode.device.to_host(distinct)] += mode.device.to_host(rows)
        return counts

    def combine(self, summaries: Iterable[Counts], mode: Mode) -> Median | MedianOf:
        """Return the median, or the next pass; raises InputError if there is no value, or the median is infinite."""
        counts = reduce(lambda first, second: {each: first[each] + second[each] for each in first}, summaries)
        total = self.count or int(counts[0].sum())
        if not total:
            raise InputError(
                f"FillMedian: the column {self.name!r} has no value in the data that the workflow is fitted on, so it "
                "has no median. Leave it out, or use FillMissing."
            )
        middle = self.middle or (Middle(0, (total - 1) // 2, total), Middle(0, total // 2, total))
        lower, upper = (self._narrow(each, counts[each.leading]) for each in middle)
        if self.shift:
            return replace(self, shift=self.shift - COUNTED_BITS, middle=(lower, upper), count=total)
        low, high = value_of(lower.leading), value_of(upper.leading)
        # The sum of two large values may overflow.
        median = low / 2 + high / 2 if math.isinf(low + high) else (low + high) / 2
        if not math.isfinite(median):
            raise InputError(
                f"FillMedian: the median of the column {self.name!r} is not finite, it has too many infinite values. "
                "Put Clip with min_value and max_value before."
            )
        return Median(median, total)

    def _narrow(self, middle: Middle, counts: npt.NDArray[np.int64]) -> Middle:
        ends = np.cumsum(counts)
        if ends[-1] != middle.keys:
            raise IntegrityError(
                f"FillMedian: the column {self.name!r} had {middle.keys} values near its median in one pass over the "
                f"data and {ends[-1]} in the next. Fit again, without changing the data meanwhile."
            )
        digit = int(np.searchsorted(ends, middle.rank, "right"))
        below = int(ends[digit] - counts[digit])
        return Middle(middle.leading << COUNTED_BITS | digit, middle.rank - below, int(counts[digit]))


def keys_of(values: Array, xp: Any = np) -> Array:
    """Return uint64 integers in the order of doubles without NaN; 0.0 and -0.0 have the same."""
    bits = (values + 0.0).view(xp.uint64)
    return xp.where(bits >= xp.uint64(_SIGN), ~bits, bits | xp.uint64(_SIGN))


def value_of(key: int) -> float:
    """Return the double of a key."""
    bits = key ^ _SIGN if key & _SIGN else ~key & (2**64 - 1)
    return float(np.array([bits], np.uint64).view(np.float64)[0])


@checked(frozen=True, config=FINITE)
class Spread(Fitted):
    """Count, mean, standard deviation and range of a column, nulls excluded, in the data fitted on.

    The exact mean is ``mean + rest``, where ``mean`` is the nearest float64. ``standard_deviation`` is that of the
    population, the root of the mean squared deviation; it is 0 if all values are equal.
    """

    count: int
    mean: float
    rest: float
    standard_deviation: float
    minimum: float
    maximum: float


@dataclass(frozen=True)
class SpreadStatistic(Statistic):
    """Learns the `Spread` of the column ``name``, for ``operator``."""

    operator: str

    def observe(self, blocks: Iterator[Block], mode: Mode) -> Sums:
        device = mode.device
        return reduce(merge, (sums_of(as_floats(block[self.name], device.xp), device) for block in blocks))

    def combine(self, summaries: Iterable[Sums], mode: Mode) -> Spread:
        """Return the spread; raises InputError if there are no values, or one or its square is infinite."""
        minimum, maximum, sums = reduce(merge, summaries)
        about = f"{self.operator}: the column {self.name!r} has"
        if minimum > maximum:
            raise InputError(
                f"{about} no value in the data that the workflow is fitted on. Leave it out, or put FillMissing before."
            )
        if math.isinf(minimum) or math.isinf(maximum):
            raise InputError(f"{about} infinite values. Put Clip with min_value and max_value before.")
        count, mean, variance = moments(sums)
        try:
            deviation = math.sqrt(variance)
        except OverflowError:
            raise InputError(
                f"{about} values of up to {max(-minimum, maximum):g}, whose squares are too large for a number. Put "
                "Clip with min_value and max_value before."
            ) from None
        nearest = float(mean)
        return Spread(count, nearest, float(mean - Fraction(nearest)), deviation, minimum, maximum)


class _BySpread(OnFloats):
    """(x - offset - rest) / scale, with numbers from the `Spread` of a column; 0 if the scale is 0."""

    learned: ClassVar[type[Any]] = Spread

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[SpreadStatistic]:
        return [SpreadStatistic(name, (name,), type(self).__name__) for name in columns_in(inputs)]

    def floats(self, name: str, values: Array, fitted: Fitted | None, device: Device) -> Array:
        offset, rest, scale = self.scale_of(cast("Spread", fitted))
        xp = device.xp
        return ((values - offset) - rest) / scale if scale else xp.where(xp.isnan(values), values, 0.0)

    def number(self, name: str, fitted: Fitted | None) -> Callable[[float], float]:
        offset, rest, scale = self.scale_of(cast("Spread", fitted))
        return lambda value: ((value - offset) - rest) / scale if scale else 0.0

    @abstractmethod
    def scale_of(self, spread: Spread) -> tuple[float, float, float]:
        """Return offset, rest and scale."""


class Normalize(_BySpread):
    """(x - mean) / standard deviation, both of the data that the workflow was fitted on.

    The standard deviation is that of the population, as in scikit-learn's StandardScaler. A column that is constant in
    the data fitted on becomes 0 everywhere. Null stays null. Fitting refuses infinite values; in later data they stay
    infinite. Type: float32.

    Examples
    --------
    >>> from whitewater.features import Workflow
    >>> from whitewater.features.operators import Normalize
    >>> Workflow(["x"] >> Normalize()).fit({"x": [1.0, 3.0]}).transform({"x": [2.0, 4.0]})["x"].to_pylist()
    [0.0, 2.0]
    """

    def scale_of(self, spread: Spread) -> tuple[float, float, float]:
        return spread.mean, spread.rest, spread.standard_deviation


class NormalizeMinMax(_BySpread):
    """(x - minimum) / (maximum - minimum), both of the data that the workflow was fitted on: 0 to 1.

    Later values may become less than 0 or more than 1; Clip bounds them. A column that is constant in the data fitted
    on becomes 0 everywhere. Null stays null. Fitting refuses infinite values; in later data they stay infinite. Type:
    float32.

    Examples
    --------
    >>> from whitewater.features import Workflow
    >>> from whitewater.features.operators import NormalizeMinMax
    >>> Workflow(["x"] >> NormalizeMinMax()).fit({"x": [0.0, 4.0]}).transform({"x": [1.0, 5.0]})["x"].to_pylist()
    [0.25, 1.25]
    """

    def scale_of(self, spread: Spread) -> tuple[float, float, float]:
        return spread.minimum, 0.0, spread.maximum - spread.minimum


def sums_of(values: Array, device: Device) -> Sums:
    """Return the sums of float64 (values,) on the device, without NaN; those of NumPy by a kernel."""
    sums, xp = np.zeros((_SIGNS_AND_EXPONENTS, _SUMS), np.int64), device.xp
    if xp is np:
        floats = read_only(values)
        return *add_up(floats, floats.view(np.uint64), sums), sums
    valid = values[~xp.isnan(values)]
    if not len(valid):
        return np.inf, -np.inf, sums
    words = valid.view(xp.int64)
    tops = (words >> _FRACTION_BITS) & (_SIGNS_AND_EXPONENTS - 1)
    high, low = (words >> _HALF) & _LOWER, words & _LOWER
    halves = [half for each in (high * high, high * low, low * low) for half in (each >> _HALF, each & _LOWER)]
    for top in device.to_host(xp.unique(tops)).tolist():  # few, as the values of a column have similar sizes
        has_top = tops == top
        sums[top] = [int(xp.where(has_top, each, 0).sum()) for each in (xp.ones_like(high), high, low, *halves)]
    return float(valid.min()), float(valid.max()), sums


def merge(first: Sums, second: Sums) -> Sums:
    """Return the sums of two parts of the values; the first changes in place."""
    sums = first[2]
    sums += second[2]
    return min(first[0], second[0]), max(first[1], second[1]), sums


def moments(sums: npt.NDArray[np.int64]) -> tuple[int, Fraction, Fraction]:
    """Return count, mean and population variance of the finite values, at least one."""
    count = total = squares = 0
    for top in np.flatnonzero(sums[:, 0]).tolist():
        exponent = top & _SPECIAL
        if exponent == _SPECIAL:
            continue
        rows, high, low, *parts = sums[top].tolist()
        implied, shift = (1 << _FRACTION_BITS, exponent - 1) if exponent else (0, 0)
        fractions = (high << _HALF) + low
        highs, mixed, lows = ((parts[place] << _HALF) + parts[place + 1] for place in (0, 2, 4))
        squared = (highs << _FRACTION_BITS) + (mixed << (_HALF + 1)) + lows
        count += rows
        total += (-1 if top > _SPECIAL else 1) * (implied * rows + fractions) << shift
        squares += (implied * (implied * rows + 2 * fractions) + squared) << (2 * shift)
    mean = Fraction(total, count << -_LEAST)
    return count, mean, Fraction(squares, count << (-2 * _LEAST)) - mean * mean


@kernel
def add_up(values: Array, words: Array, sums: Array) -> tuple[float, float]:
    """Add float64 values, whose bits are ``words``, to ``sums``; return minimum and maximum."""
    lowest, highest = np.inf, -np.inf
    for row in range(len(values)):
        # A comparison with NaN is false.
        lowest = min(lowest, values[row])
        highest = max(highest, values[row])
        high = int64((words[row] >> uint64(_HALF)) & uint64(_LOWER))
        low = int64(words[row] & uint64(_LOWER))
        to = sums[words[row] >> uint64(_FRACTION_BITS)]
        to[0] += 1
        to[1] += high
        to[2] += low
        to[3] += (high * high) >> _HALF
        to[4] += (high * high) & _LOWER
        to[5] += (high * low) >> _HALF
        to[6] += (high * low) & _LOWER
        to[7] += (low * low) >> _HALF
        to[8] += (low * low) & _LOWER
    return lowest, highest
