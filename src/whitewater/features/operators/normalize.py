"""Scaling columns of numbers: by mean and standard deviation, or by minimum and maximum."""

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
from whitewater.features.operator import Fitted, Resources, Statistic
from whitewater.features.operators.by_column import OnFloats, column_names, finite_facts
from whitewater.features.operators.exact_sums import ExactSums

if TYPE_CHECKING:
    import pyarrow as pa

    from whitewater.engines.device import Array, Device
    from whitewater.features.columns.column import Block
    from whitewater.features.operator import Inputs
    from whitewater.features.schema import Field


@dataclass(frozen=True)
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

    def observe(self, blocks: Iterator[Block], resources: Resources) -> ExactSums:
        sums = ExactSums()
        for block in blocks:
            sums.add(as_floats(block[self.name], resources.device.xp), resources.device)
        return sums

    def combine(self, summaries: Iterable[ExactSums], resources: Resources) -> Spread:
        """Return the spread; raises InputError if there are no values, or one or its square is infinite."""
        total = ExactSums()
        for summary in summaries:
            total.merge(summary)
        minimum, maximum = total.minimum, total.maximum
        about = f"{self.operator}: the column {self.name!r} has"
        if minimum > maximum:
            raise InputError(
                f"{about} no value in the data that the workflow is fitted on. Leave it out, or put FillMissing before."
            )
        if math.isinf(minimum) or math.isinf(maximum):
            raise InputError(f"{about} infinite values. Put Clip with min_value and max_value before.")
        mean, variance = total.moments()
        try:
            deviation = math.sqrt(variance)
        except OverflowError:
            raise InputError(
                f"{about} values of up to {max(-minimum, maximum):g}, whose squares are too large for a number. Put "
                "Clip with min_value and max_value before."
            ) from None
        nearest = float(mean)
        return Spread(total.count, nearest, float(mean - Fraction(nearest)), deviation, minimum, maximum)


class _BySpread(OnFloats):
    """(x - offset - rest) / scale, with numbers from the `Spread` of a column; 0 if the scale is 0."""

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[SpreadStatistic]:
        return [SpreadStatistic(name, (name,), type(self).__name__) for name in column_names(inputs)]

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Spread:
        return Spread(**finite_facts(facts, *(field.name for field in dataclasses.fields(Spread))))

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
    """(x - mean) / standard deviation, both of the data that the workflow was fitted on.

    The standard deviation is that of the population, with the count as divisor, as in scikit-learn's StandardScaler:
    the deviation of a single value is 0 rather than undefined, and with many values the divisor makes no difference. A
    column that is constant in the data fitted on becomes 0 everywhere. Null stays null. Fitting refuses infinite
    values; in later data they stay infinite. Type: float32.

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
    """(x - minimum) / (maximum - minimum), both of the data that the workflow was fitted on: 0 to 1.

    Later values outside this range become less than 0 or more than 1, unless Clip before or after it bounds them. A
    column that is constant in the data fitted on becomes 0 everywhere. Null stays null. Fitting refuses infinite
    values; in later data they stay infinite. Type: float32.

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
