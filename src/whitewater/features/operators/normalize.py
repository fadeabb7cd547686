"""Columns of numbers on one scale: by mean and standard deviation, or by the smallest and the largest value."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from whitewater.errors import InputError
from whitewater.features.categories.values import as_floats
from whitewater.features.operator import Fitted, Fitting, Statistic
from whitewater.features.operators.by_column import OnFloats, column_names, finite
from whitewater.features.operators.exact_sums import ExactSums

if TYPE_CHECKING:
    import pyarrow as pa

    from whitewater.engines.device import Array, Device
    from whitewater.features.columns.column import Block
    from whitewater.features.operator import Inputs
    from whitewater.features.schema import Field


@dataclass(frozen=True)
class Spread(Fitted):
    """The values of a column in the data that the workflow was fitted on, without nulls.

    The mean is ``mean + rest``, of which ``mean`` is the nearest double. ``standard_deviation`` is that of the
    population, the root of the mean squared deviation; 0 where all are equal.
    """

    count: int
    mean: float
    rest: float
    standard_deviation: float
    minimum: float
    maximum: float


@dataclass(frozen=True)
class SpreadOf(Statistic):
    """Learns the spread of the column ``name``, for ``operator``."""

    operator: str

    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> ExactSums:
        sums = ExactSums()
        for block in blocks:
            sums.add(as_floats(block[self.name], fitting.device.xp), fitting.device)
        return sums

    def combine(self, parts: Iterable[ExactSums], fitting: Fitting) -> Spread:
        """Return the spread; raises InputError if there is no value, an infinite one, or one with such a square."""
        total = ExactSums()
        for part in parts:
            total.merge(part)
        least, most = total.minimum, total.maximum
        about = f"{self.operator}: the column {self.name!r} has"
        if least > most:
            raise InputError(
                f"{about} no value in the data that the workflow is fitted on. Leave it out, or put FillMissing before."
            )
        if math.isinf(least) or math.isinf(most):
            raise InputError(f"{about} infinite values. Put Clip with min_value and max_value before.")
        mean, variance = total.moments()
        try:
            deviation = math.sqrt(variance)
        except OverflowError:
            raise InputError(
                f"{about} values of up to {max(-least, most):g}, whose squares are too large for a number. Put Clip "
                "with min_value and max_value before."
            ) from None
        nearest = float(mean)
        return Spread(total.count, nearest, float(mean - Fraction(nearest)), deviation, least, most)


class _BySpread(OnFloats):
    """(x - offset - rest) / scale with what was learned of a column; 0 where the scale is 0."""

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[SpreadOf]:
        return [SpreadOf(name, (name,), type(self).__name__) for name in column_names(inputs)]

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Spread:
        return Spread(**finite(facts, *(field.name for field in dataclasses.fields(Spread))))

    def floats(self, name: str, values: Array, fitted: Fitted | None, device: Device) -> Array:
        offset, rest, scale = self.scale_of(cast("Spread", fitted))
        xp = device.xp
        scaled: Array = ((values - offset) - rest) / scale if scale else xp.where(xp.isnan(values), values, 0.0)
        return scaled

    def number(self, name: str, fitted: Fitted | None) -> Callable[[float], float]:
        offset, rest, scale = self.scale_of(cast("Spread", fitted))
        return lambda value: ((value - offset) - rest) / scale if scale else 0.0

    @abstractmethod
    def scale_of(self, spread: Spread) -> tuple[float, float, float]:
        """Return offset, rest and scale."""


class Normalize(_BySpread):
    """(x - mean) / standard deviation of the data that the workflow was fitted on.

    The standard deviation is that of the population, divided by the count, as scikit-learn's StandardScaler has it:
    one value has a deviation of 0, rather than none, and among many the divisor makes no difference. A column that was
    constant becomes 0, whatever comes later. Null stays null. Infinite values are refused by fit, and stay infinite in
    what comes later. Type: float32.

    Examples
    --------
    >>> from whitewater.features import Transformer, Workflow
    >>> from whitewater.features.operators import Normalize
    >>> workflow = Workflow(["x"] >> Normalize()).fit({"x": [1.0, 3.0]})
    >>> Transformer(workflow)({"x": 4.0})
    {'x': 2.0}
    """

    def scale_of(self, spread: Spread) -> tuple[float, float, float]:
        return spread.mean, spread.rest, spread.standard_deviation


class NormalizeMinMax(_BySpread):
    """(x - minimum) / (maximum - minimum) of the data that the workflow was fitted on: 0 to 1.

    What comes later and is outside goes on below 0 and above 1; Clip before or after it bounds that. A column that was
    constant becomes 0, whatever comes later. Null stays null. Infinite values are refused by fit, and stay infinite in
    what comes later. Type: float32.

    Examples
    --------
    >>> from whitewater.features import Transformer, Workflow
    >>> from whitewater.features.operators import NormalizeMinMax
    >>> workflow = Workflow(["x"] >> NormalizeMinMax()).fit({"x": [0.0, 4.0]})
    >>> Transformer(workflow)({"x": 1.0})
    {'x': 0.25}
    """

    def scale_of(self, spread: Spread) -> tuple[float, float, float]:
        return spread.minimum, 0.0, spread.maximum - spread.minimum
