"""Values for nulls: a constant, or the exact median of what is known.

For a median that is found part by part, doubles are mapped to integers of 64 bits in the same order, their *keys*. The
first pass over the data counts the leading 20 bits of the keys, and each following pass 20 bits more, of the values
that agree with the median so far; of few values, all bits are counted at once: selection by radix (Knuth, The Art of
Computer Programming, volume 3, section 5.2.5).
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
from whitewater.features.operator import ApplyMode, Fitted, Operator, Resources, Row, RowFunction, Statistic
from whitewater.features.operators.by_column import (
    column_names,
    finite_facts,
    number_fields,
    plain_number,
    type_holding,
)
from whitewater.features.schema import Field

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.columns.column import Block
    from whitewater.features.operator import Inputs

COUNTED_BITS = 20
# Of so many values all bits are counted at once, 16 bytes each at most.
FEW = 2**22
_SIGN = 2**63
Counted = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]
"""Leading bits of keys, ascending and each once, and how many values have them, on the host."""


class _Fill(Operator):
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

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: ApplyMode) -> Block:
        xp = mode.device.xp
        made = {}
        for name in column_names(inputs):
            column = cast("Numbers", block[name])
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
        return type_holding(type_, self.fill_val)

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
        return Median(**finite_facts(facts, "median", "count"))

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
    """Keys between bounds, both included: those of the ranks ``below`` to before ``below + count`` of ``total``.

    Known of their order are all bits but the last ``shift``.
    """

    low: int
    high: int
    below: int
    count: int
    total: int
    shift: int


@dataclass(frozen=True)
class MedianOf(Statistic):
    """Learns the median of the column ``name``; in a later pass among the values of a window."""

    window: Window | None = None

    @property
    def _shift(self) -> int:
        """How many of the last bits of the keys are left out in this pass."""
        if self.window is None:
            return 64 - COUNTED_BITS
        return 0 if self.window.count <= FEW else max(self.window.shift - COUNTED_BITS, 0)

    def observe(self, blocks: Iterator[Block], resources: Resources) -> Counted:
        return _added([self._counted(block, resources.device) for block in blocks])

    def _counted(self, block: Block, device: Device) -> Counted:
        xp = device.xp
        values = as_floats(block[self.name], xp)
        keys = keys_of(values[~xp.isnan(values)], xp)
        if self.window is not None:
            keys = keys[(keys >= np.uint64(self.window.low)) & (keys <= np.uint64(self.window.high))]
        leading = keys >> np.uint64(self._shift)
        # Few bits are sorted twice as fast.
        narrow = leading.astype(np.uint32) if self._shift >= 32 else leading
        found, count = xp.unique(narrow, return_counts=True)
        return device.to_host(found.astype(np.uint64)), device.to_host(count.astype(np.int64))

    def combine(self, summaries: Iterable[Counted], resources: Resources) -> Median | MedianOf:
        """Return the median, or what looks closer; raises InputError if there is no value, or it is infinite."""
        leading, counts = _added(list(summaries))
        window, shift = self._looked_at(int(counts.sum())), self._shift
        ends = window.below + np.cumsum(counts)
        middle = (window.total - 1) // 2, window.total // 2
        first, second = (int(np.searchsorted(ends, rank, "right")) for rank in middle)
        low, high = int(leading[first]) << shift, ((int(leading[second]) + 1) << shift) - 1
        if not shift:
            return self._median(value_of(low), value_of(high), window.total)
        count = int(counts[first : second + 1].sum())
        return replace(self, window=Window(low, high, int(ends[second]) - count, count, window.total, shift))

    def _looked_at(self, count: int) -> Window:
        if self.window is None:
            if not count:
                raise InputError(
                    f"FillMedian: the column {self.name!r} has no value in the data that the workflow is fitted on, so "
                    "it has no median. Leave it out, or use FillMissing."
                )
            return Window(0, 2**64 - 1, 0, count, count, 64)
        if count != self.window.count:
            raise IntegrityError(
                f"FillMedian: the column {self.name!r} had {self.window.count} values near its median in one pass over "
                f"the data and {count} in the next. Fit again, without changing the data meanwhile."
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


def _added(parts: Sequence[Counted]) -> Counted:
    """Return leading bits in ascending order, each once, and how often they are in all parts."""
    leading, place = np.unique(
        np.concatenate([np.empty(0, np.uint64), *(each for each, _ in parts)]), return_inverse=True
    )
    counts = np.zeros(len(leading), np.int64)
    np.add.at(counts, place, np.concatenate([np.empty(0, np.int64), *(count for _, count in parts)]))
    return leading, counts


def keys_of(values: Array, xp: Any = np) -> Array:
    """Return integers, uint64, in the order of doubles without NaN; those of 0.0 and -0.0 are the same."""
    bits = (values + 0.0).view(xp.uint64)
    keys: Array = xp.where(bits >= xp.uint64(_SIGN), ~bits, bits | xp.uint64(_SIGN))
    return keys


def value_of(key: int) -> float:
    """Return the double of a key."""
    bits = key ^ _SIGN if key & _SIGN else ~key & (2**64 - 1)
    return float(np.array([bits], np.uint64).view(np.float64)[0])
