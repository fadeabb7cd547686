"""Values for nulls: a constant, or the exact median of what is known.

For a median that is found part by part, doubles are mapped to integers of 64 bits in the same order. A part is told as
runs: the integers with equal leading bits, with as many bits left out as makes the runs few; where there are few
distinct values, none is left out, and the median is found at once. Otherwise the runs that it is in are known, and
another pass over the data looks at their values only: selection by radix (Knuth, The Art of Computer Programming,
volume 3, section 5.2.5). To be quick, the first pass over many distinct values counts their leading 20 bits, without
sorting them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field as Parameter
from pydantic import FiniteFloat

from whitewater.errors import InputError, IntegrityError
from whitewater.features.categories.values import as_floats
from whitewater.features.columns.column import Numbers
from whitewater.features.operator import Applying, Fitted, Fitting, Row, RowFunction, Statistic
from whitewater.features.operators.by_column import (
    OnArrays,
    column_names,
    finite,
    holding,
    number_fields,
    numbers_of,
    plain_number,
)
from whitewater.features.schema import Field

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.columns.column import Block
    from whitewater.features.operator import Inputs

RUNS = 2**14
"""Of one part at most, 16 bytes each; four at least, or no pass would be closer than the one before."""
NARROW = 2**20
"""Integers are counted one by one, without sorting, if they span fewer values than this."""
COUNTED_BITS = 20
_SIGN = 2**63
Keys = npt.NDArray[np.uint64]


class _Fill(OnArrays):
    """Puts a value in the place of nulls, and says where, if asked."""

    add_binary_cols: bool = Parameter(
        False, description="Add a column of booleans, <name>_filled: true where the value was null."
    )

    @abstractmethod
    def filled_type(self, type_: pa.DataType) -> pa.DataType:
        """Return the type that a column gets."""

    @abstractmethod
    def filling(self, fitted: Fitted | None) -> float:
        """Return what nulls become."""

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        made = []
        for field in number_fields(self, inputs, fields):
            made.append(replace(field, type=self.filled_type(field.type)))
            if self.add_binary_cols:
                made.append(Field(_marker(field.name), pa.bool_(), field.tags))
        return made

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        xp = applying.device.xp
        made = {}
        for name in column_names(inputs):
            column = numbers_of(self, name, block[name])
            values = column.values
            dtype = np.dtype(self.filled_type(pa.from_numpy_dtype(values.dtype)).to_pandas_dtype())
            missing = xp.zeros(len(column), bool) if column.valid is None else ~column.valid
            missing = missing | xp.isnan(values) if values.dtype.kind == "f" else missing
            value = dtype.type(self.filling(fitted.get(name)))
            made[name] = Numbers(xp.where(missing, value, values.astype(dtype, copy=False)))
            if self.add_binary_cols:
                made[_marker(name)] = Numbers(missing)
        return made

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        values = [(name, plain_number(self.filling(fitted.get(name)))) for name in column_names(inputs)]
        # A column of floats does not hold each integer of 64 bits.
        makes_floats = pa.types.is_floating(self.filled_type(pa.int64()))

        def compute(row: Row) -> dict[str, Any]:
            made: dict[str, Any] = {}
            for name, instead in values:
                value: Any = row[name]
                # NaN alone is not equal to itself.
                missing = value is None or value != value  # noqa: PLR0124
                made[name] = instead if missing else float(value) if makes_floats else value
                if self.add_binary_cols:
                    made[_marker(name)] = missing
            return made

        return compute


class FillMissing(_Fill):
    """Null becomes ``fill_val``.

    The type stays that of the column if it holds that value, and is float64 otherwise; booleans become int8.

    Examples
    --------
    >>> from whitewater.features import Transformer, Workflow
    >>> from whitewater.features.operators import FillMissing
    >>> workflow = Workflow(["x"] >> FillMissing(fill_val=-1)).fit({"x": [0.0, 4.0]})
    >>> Transformer(workflow)({"x": None})
    {'x': -1}
    """

    fill_val: FiniteFloat = Parameter(0.0, description="What nulls become.")

    def filled_type(self, type_: pa.DataType) -> pa.DataType:
        return holding(type_, self.fill_val)

    def filling(self, fitted: Fitted | None) -> float:
        return self.fill_val


class FillMedian(_Fill):
    """Null becomes the median of the column in the data that the workflow was fitted on.

    It is exact: the value in the middle, or the mean of the two there, as numpy.median computes it. A column without
    values has none and is refused. Type: float32 stays, with the median rounded to it; else float64, which holds both.

    Examples
    --------
    >>> from whitewater.features import Transformer, Workflow
    >>> from whitewater.features.operators import FillMedian
    >>> workflow = Workflow(["x"] >> FillMedian()).fit({"x": [1.0, 2.0, None, 9.0]})
    >>> Transformer(workflow)({"x": None})
    {'x': 2}
    """

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[MedianOf]:
        return [MedianOf(name, (name,)) for name in column_names(inputs)]

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Median:
        return Median(finite(facts, "median"), int(finite(facts, "count")))

    def filled_type(self, type_: pa.DataType) -> pa.DataType:
        return type_ if pa.types.is_float32(type_) else pa.float64()

    def filling(self, fitted: Fitted | None) -> float:
        return cast("Median", fitted).median


@dataclass(frozen=True)
class Median(Fitted):
    """The median of ``count`` values."""

    median: float
    count: int


@dataclass(frozen=True)
class Window:
    """Values between bounds, both included: those of the ranks ``below`` to before ``below + count`` of ``total``."""

    low: float
    high: float
    below: int
    count: int
    total: int


@dataclass(frozen=True)
class MedianOf(Statistic):
    """Learns the median of the column ``name``; in a later pass among the values of a window."""

    window: Window | None = None

    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> Runs:
        found = Runs.none()
        for block in blocks:
            found = merged([found, self._runs(block, fitting.device)]).shorten()
        return found

    def _runs(self, block: Block, device: Device) -> Runs:
        column = block[self.name]
        if self.window is None and isinstance(column, Numbers) and column.values.dtype.kind in "iub":
            return runs_of_integers(column.values if column.valid is None else column.values[column.valid], device)
        values = as_floats(column, device.xp)
        if self.window is None:
            return runs_of(values[~device.xp.isnan(values)], device)
        return sorted_runs_of(values[(values >= self.window.low) & (values <= self.window.high)], device)

    def combine(self, parts: Iterable[Runs], fitting: Fitting) -> Median | MedianOf:
        """Return the median, or what looks closer; raises InputError if there is no value, or it is infinite."""
        runs = merged(list(parts))
        window = self._looked_at(int(runs.count.sum()))
        ends = window.below + np.cumsum(runs.count)
        middle = (window.total - 1) // 2, window.total // 2
        first, second = (int(np.searchsorted(ends, rank, "right")) for rank in middle)
        low, high = runs.bounds(first)[0], runs.bounds(second)[1]
        if not runs.shift:
            return self._median(low, high, window.total)
        count = int(runs.count[first : second + 1].sum())
        return replace(self, window=Window(low, high, int(ends[second]) - count, count, window.total))

    def _looked_at(self, count: int) -> Window:
        if self.window is None:
            if not count:
                raise InputError(
                    f"FillMedian: the column {self.name!r} has no value in the data that the workflow is fitted on, so "
                    "it has no median. Leave it out, or use FillMissing."
                )
            return Window(-math.inf, math.inf, 0, count, count)
        if count != self.window.count:
            raise IntegrityError(
                f"FillMedian: the column {self.name!r} had {self.window.count} values from {self.window.low!r} to "
                f"{self.window.high!r} in one pass over the data and {count} in the next. Fit again, without changing "
                "the data meanwhile."
            )
        return self.window

    def _median(self, lower: float, upper: float, count: int) -> Median:
        median = (lower + upper) / 2
        if math.isinf(median):
            # The sum of two large values may be too large.
            median = lower / 2 + upper / 2
        if not math.isfinite(median):
            raise InputError(
                f"FillMedian: the median of the column {self.name!r} is not finite, it has too many infinite values. "
                "Put Clip with min_value and max_value before."
            )
        return Median(median, count)


def _marker(name: str) -> str:
    return f"{name}_filled"


@dataclass(frozen=True)
class Runs:
    """Values in ascending order, as runs of those whose keys agree but for the last ``shift`` bits; on the host.

    ``leading``, uint64 (runs,), are the other bits of the keys of each run, ascending; ``count`` int64 (runs,).
    """

    shift: int
    leading: Keys
    count: npt.NDArray[np.int64]

    @classmethod
    def none(cls) -> Runs:
        """Return no runs."""
        return cls(0, np.empty(0, np.uint64), np.empty(0, np.int64))

    def coarser(self, shift: int) -> Runs:
        """Return longer runs; those with the same leading bits may have been apart."""
        leading = self.leading >> np.uint64(shift - self.shift)
        starts = np.flatnonzero(np.append(True, leading[1:] != leading[:-1]))
        return Runs(shift, leading[starts], np.add.reduceat(self.count, starts))

    def shorten(self) -> Runs:
        """Return as many runs as `RUNS` allows."""
        runs = self
        while len(runs.count) > RUNS:
            runs = runs.coarser(runs.shift + 1)
        return runs

    def bounds(self, run: int) -> tuple[float, float]:
        """Return the smallest and the largest value that a run may have."""
        least, most = keys_of(np.array([-np.inf, np.inf])).tolist()
        first = int(self.leading[run]) << self.shift
        last = first + (1 << self.shift) - 1
        # Beyond the infinities there are only the keys of NaN, and 0.0 has the key of -0.0, too.
        return value_of(max(first, least)), value_of(min(last - (last == _SIGN - 1), most))


def merged(parts: Sequence[Runs]) -> Runs:
    """Return the runs of all parts."""
    parts = [part for part in parts if len(part.count)]
    if not parts:
        return Runs.none()
    shift = max(part.shift for part in parts)
    leading = np.concatenate([part.leading >> np.uint64(shift - part.shift) for part in parts])
    order = np.argsort(leading, kind="stable")
    return Runs(shift, leading[order], np.concatenate([part.count for part in parts])[order]).coarser(shift)


def runs_of(values: Array, device: Device) -> Runs:
    """Return the runs of float64 (values,), without NaN, on the device."""
    return _counted(values, device) if _many(values, device.xp) else sorted_runs_of(values, device)


def _many(values: Array, xp: Any) -> bool:
    """Tell whether the first values are enough to expect more distinct ones than there may be runs."""
    if len(values) <= 4 * RUNS:
        return False
    ordered = xp.sort(values[:RUNS])
    return int((ordered[1:] != ordered[:-1]).sum()) >= RUNS // 4


def _counted(values: Array, device: Device) -> Runs:
    """Return the runs of values with the same leading bits."""
    xp = device.xp
    shift = 64 - COUNTED_BITS
    leading = xp.empty(len(values), xp.int64)
    for start in range(0, len(values), device.slice_rows):
        rows = slice(start, start + device.slice_rows)
        leading[rows] = (_keys(values[rows], xp) >> xp.uint64(shift)).astype(xp.int64)
    counts = device.to_host(xp.bincount(leading))
    found = np.flatnonzero(counts)
    return Runs(shift, found.astype(np.uint64), counts[found].astype(np.int64)).shorten()


def sorted_runs_of(values: Array, device: Device) -> Runs:
    """Return `runs_of` values, with no bit left out but of many distinct ones."""
    if not len(values):
        return Runs.none()
    xp = device.xp
    keys = xp.sort(_keys(values, xp))
    starts = xp.flatnonzero(xp.concatenate([xp.ones(1, bool), keys[1:] != keys[:-1]]))
    count = np.diff(device.to_host(starts), append=len(values))
    return Runs(0, device.to_host(keys[starts]), count).shorten()


def runs_of_integers(values: Array, device: Device) -> Runs:
    """Return the runs of integers (values,) on the device."""
    if not len(values):
        return Runs.none()
    xp = device.xp
    least, most = int(values.min()), int(values.max())
    if most - least >= NARROW:
        return runs_of(values.astype(np.float64), device)
    counts = device.to_host(xp.bincount(values.astype(np.int64) - least))
    found = np.flatnonzero(counts)
    return Runs(0, keys_of((found + least).astype(np.float64)), counts[found].astype(np.int64)).shorten()


def keys_of(values: npt.NDArray[np.float64]) -> Keys:
    """Return integers, uint64, in the order of doubles; those of 0.0 and -0.0 are the same."""
    keys: Keys = _keys(values, np)
    return keys


def value_of(key: int) -> float:
    """Return the double of a key."""
    bits = key ^ _SIGN if key & _SIGN else ~key & (2**64 - 1)
    return float(np.array([bits], np.uint64).view(np.float64)[0])


def _keys(values: Any, xp: Any) -> Any:
    bits = (values + 0.0).view(xp.uint64)
    return xp.where(bits >= xp.uint64(_SIGN), ~bits, bits | xp.uint64(_SIGN))
