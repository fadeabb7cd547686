"""One row at a time, for serving: a fitted workflow compiled to look-ups, without arrays.

A row gets the same features as it gets in a table.
"""

from __future__ import annotations

import ctypes
import reprlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import pyarrow as pa

from whitewater.errors import InputError
from whitewater.features.artifact import load
from whitewater.features.dataset import seconds_fault
from whitewater.features.log_folder import SINCE, UNTIL
from whitewater.features.schema import kind

if TYPE_CHECKING:
    from whitewater.features.operator import Inputs, Row, RowFunction, Value
    from whitewater.features.plan import Origin, Stage, Transformation
    from whitewater.features.workflow import Workflow

# Up to it a float of 64 bits is every integer.
_WHOLE = 2**53


class Transformer:
    """Computes the features of one row with a fitted workflow; `load` reads a stored one.

    Examples
    --------
    >>> from whitewater.features import Transformer, Workflow
    >>> from whitewater.features.operators import FillMedian, Normalize
    >>> workflow = Workflow(["price"] >> FillMedian() >> Normalize()).fit({"price": [1.0, None, 3.0, 2.0]})
    >>> Transformer(workflow)({"price": None})
    {'price': 0.0}
    """

    def __init__(self, workflow: Workflow) -> None:
        self._compile(workflow.transformation)

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a stored workflow; raises as `Workflow.load` does."""
        transformer = cls.__new__(cls)
        transformer._compile(load(Path(directory)))
        return transformer

    def __call__(self, row: Row) -> dict[str, Value]:
        """Return the features of a row; a null is None, or NaN where an operator computes floats.

        ``row`` maps columns to values: None or NaN is null, and a null list is the empty list. Columns that no feature
        needs are ignored. Raises InputError if a column is missing, or a value is of another kind than in the data
        that the workflow was fitted on.
        """
        made: list[Row] = [{name: check(row) for name, check in self._checks}]
        for step in self._steps:
            made.append(step(made))
        results = {name: made[place][name] for name, place in self._outputs}
        return results | {name: row[name] for name in self._carried if name in row}

    def _compile(self, transformation: Transformation) -> None:
        plan = transformation.plan
        inputs: dict[int, Inputs] = {}
        for number, needed in plan.evaluation_order(plan.outputs):
            inputs[number] = (*inputs.get(number, ()), *needed)
        numbers = sorted(inputs)
        places: dict[Origin, int] = {None: 0} | {number: place for place, number in enumerate(numbers, start=1)}
        self._checks = [
            (name, _check(name, plan.schema[name].type, is_time=name in transformation.seconds))
            for name in transformation.columns(training=False)
        ]
        self._steps = []
        for number in numbers:
            taken = plan.taken(number, inputs[number], training=False)
            function = _rounding(plan.stages[number], inputs[number], transformation.learned[number] or {})
            self._steps.append(_step(function, {name: places[origin] for name, origin in taken.items()}))
        self._outputs = [(name, places[origin]) for name, origin in plan.outputs.items()]
        self._carried = transformation.carried


def _step(function: RowFunction, places: Mapping[str, int]) -> Callable[[list[Row]], Row]:
    """Return a function that applies a stage to the columns of earlier stages, some of them at each place."""
    counts = Counter(places.values())
    most = max(counts, key=counts.__getitem__, default=0)
    others = [(name, place) for name, place in places.items() if place != most]
    if not others:
        return lambda made: function(made[most])
    return lambda made: function({**made[most], **{name: made[place][name] for name, place in others}})


def _rounding(stage: Stage, inputs: Inputs, learned: Mapping[str, Any]) -> RowFunction:
    """Return the function of a stage, with the outputs of type float32 rounded as in a column."""
    function = stage.operator.row(inputs, learned)
    made = {name for name, of in stage.made_of.items() if set(of) <= set(inputs)}
    narrow = [each.name for each in stage.outputs if pa.types.is_float32(each.type) and each.name in made]
    if not narrow:
        return function

    def rounded(row: Row) -> dict[str, Value]:
        made = function(row)
        for name in narrow:
            value = made[name]
            if value is not None:
                made[name] = ctypes.c_float(value).value  # type: ignore[arg-type]
        return made

    return rounded


def _check(name: str, type_: pa.DataType, *, is_time: bool) -> Callable[[Row], Value]:
    """Return a function that reads a column's value from a row in the type of the data, or raises InputError."""
    convert = _converter(type_)

    def check(row: Row) -> Value:
        try:
            value = row[name]
        except KeyError:
            raise InputError(
                f"the row has no column {name!r}, which the workflow needs. Give it, as None if it is null."
            ) from None
        try:
            converted = convert(value)
        except (TypeError, ValueError, OverflowError):
            of = f"numbers ({type_})" if kind(type_) == "numbers" else kind(type_)
            raise InputError(
                f"the row's {name!r} is {reprlib.repr(value)}, but the column was of {of} when the workflow was "
                "fitted. Give such a value, or None."
            ) from None
        if is_time and isinstance(converted, int) and not SINCE <= converted < UNTIL:
            raise InputError(seconds_fault(name, converted))
        return converted

    return check


def _converter(type_: pa.DataType) -> Callable[[Any], Value]:
    """Return a function that converts a value to a type, a null to None and a null list to an empty one.

    It raises TypeError, ValueError or OverflowError for a value of another kind.
    """
    is_list = pa.types.is_list(type_)
    convert = _list_of(_converter(type_.value_type)) if is_list else next(make for is_of, make in _OF if is_of(type_))

    def convert_or_null(value: Any) -> Value:
        # A value of NumPy, as Python's
        if (to_python := getattr(value, "tolist", None)) is not None:
            value = to_python()
        # NaN, in a column of text, too, is not equal to itself, and pandas' NA is neither equal nor unequal.
        if value is None or (value != value) is not False:  # noqa: PLR0124
            return [] if is_list else None
        return convert(value)

    return convert_or_null


def _list_of(convert: Callable[[Any], Value]) -> Callable[[Any], Value]:
    return lambda value: [convert(each) for each in _instance(value, (list, tuple))]


def _instance(value: Any, kinds: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kinds):
        raise TypeError
    return value


def _text(value: Any) -> Value:
    if not _instance(value, str).isascii():
        value.encode()  # half of a surrogate pair, which JSON can name, is not text, and refused
    return cast("str", value)


def _integer_between(least: int, most: int, made: type[int]) -> Callable[[Any], Value]:
    def convert(value: Any) -> Value:
        # pandas makes floats of integers some of which are null; above 2**53 they are not every integer.
        if isinstance(value, float) and (abs(value) > _WHOLE or not value.is_integer()):
            raise ValueError
        if not least <= _instance(value, (int, float)) <= most:
            raise ValueError
        return made(value)

    return convert


_OF: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Value]], ...] = (
    (pa.types.is_string, _text),
    (pa.types.is_float32, lambda value: ctypes.c_float(_instance(value, (float, int))).value),
    (pa.types.is_floating, lambda value: float(_instance(value, (float, int)))),
    (pa.types.is_boolean, _integer_between(0, 1, bool)),
    (pa.types.is_uint64, _integer_between(-(2**63), 2**64 - 1, int)),
    (pa.types.is_integer, _integer_between(-(2**63), 2**63 - 1, int)),
    (pa.types.is_null, lambda value: cast("str | int", _instance(value, (str, int)))),
)
