"""One row at a time, for serving: a fitted workflow compiled to look-ups, without arrays.

A row gets the same features as it gets in a table.
"""

import ctypes
import reprlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from whitewater.errors import InputError
from whitewater.features.dataset import seconds_fault
from whitewater.features.log_folder import SINCE, UNTIL
from whitewater.features.operator import Inputs, Row, RowFunction, Value
from whitewater.features.plan import Origin, Stage
from whitewater.features.schema import kind
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
        plan, inputs = workflow.plan, dict[int, Inputs]()
        for number, needed in plan.evaluation_order(plan.outputs):
            inputs[number] = (*inputs.get(number, ()), *needed)
        self._checks = [
            (name, _check(name, plan.schema[name].type, is_time=name in plan.seconds))
            for name in plan.data_columns(training=False)
        ]
        self._steps = [
            (number, _rounding(plan.stages[number], of), [*plan.taken(number, of, training=False).items()])
            for number, of in sorted(inputs.items())
        ]
        self._outputs, self._carried = [*plan.outputs.items()], plan.carried

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a stored workflow; raises as `Workflow.load` does."""
        return cls(Workflow.load(directory))

    def __call__(self, row: Row) -> dict[str, Value]:
        """Return the features of a row; a null is None, or NaN where an operator computes floats.

        ``row`` maps columns to values: None or NaN is null, and a null list is the empty list. Columns that no feature
        needs are ignored. Raises InputError if a column is missing, or a value is of another kind than in the data
        that the workflow was fitted on.
        """
        made: dict[Origin, Row] = {None: {name: check(row) for name, check in self._checks}}
        for number, function, columns in self._steps:
            made[number] = function({name: made[origin][name] for name, origin in columns})
        results = {name: made[origin][name] for name, origin in self._outputs}
        return results | {name: row[name] for name in self._carried if name in row}


def _rounding(stage: Stage, inputs: Inputs) -> RowFunction:
    """Return the function of a stage, with the outputs of type float32 rounded as in a column."""
    function = stage.operator.row(inputs, stage.learned or {})
    made = [name for name, of in stage.made_of.items() if set(of) <= set(inputs)]
    narrow = [name for name in made if pa.types.is_float32(stage.outputs[name].type)]
    if not narrow:
        return function

    def rounded(row: Row) -> dict[str, Value]:
        made = function(row)
        for name in narrow:
            made[name] = None if made[name] is None else ctypes.c_float(made[name]).value  # type: ignore[arg-type]
        return made

    return rounded


def _check(name: str, type_: pa.DataType, *, is_time: bool) -> Callable[[Row], Value]:
    """Return a function that reads a column's value from a row in the type of the data, or raises InputError."""
    convert = _converter(type_)

    def check(row: Row) -> Value:
        if name not in row:
            raise InputError(f"the row has no column {name!r}, but the workflow needs it. Give it, or None for null.")
        try:
            converted = convert(row[name])
        except (TypeError, ValueError, OverflowError):
            of = f"numbers ({type_})" if kind(type_) == "numbers" else kind(type_)
            raise InputError(
                f"the row's {name!r} is {reprlib.repr(row[name])}, but the column was of {of} when the workflow was "
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
    types = pa.types
    if types.is_list(type_):
        item = _converter(type_.value_type)
        return _of((list, tuple), lambda value: [item(each) for each in value])
    if types.is_null(type_):
        return _of((str, int), lambda value: value)
    if types.is_string(type_):
        return _of(str, _text)
    if types.is_floating(type_):
        return _of((float, int), (lambda value: ctypes.c_float(value).value) if types.is_float32(type_) else float)
    made, least, most = (bool, 0, 1) if types.is_boolean(type_) else (int, -(2**63), 2**63 - 1)
    most = 2**64 - 1 if types.is_uint64(type_) else most
    return _of((float, int), partial(_integer, least=least, most=most, made=made))


def _of(kinds: type | tuple[type, ...], convert: Callable[[Any], Any]) -> Callable[[Any], Value]:
    """Return a function that converts values of some classes, and nulls; it raises TypeError for others."""

    def convert_or_null(value: Any) -> Value:
        # A value of NumPy, as Python's
        if (to_python := getattr(value, "tolist", None)) is not None:
            value = to_python()
        # NaN, in a column of text, too, is not equal to itself, and pandas' NA is neither equal nor unequal.
        if value is None or (value != value) is not False:  # noqa: PLR0124
            return [] if kinds == (list, tuple) else None
        if not isinstance(value, kinds):
            raise TypeError
        return convert(value)

    return convert_or_null


def _text(value: str) -> str:
    if not value.isascii():
        value.encode()  # half of a surrogate pair, which JSON can name, is not text, and refused
    return value


def _integer(value: Any, *, least: int, most: int, made: type[int]) -> int:
    # pandas makes floats of integers some of which are null; above 2**53 they are not every integer.
    if isinstance(value, float) and (abs(value) > _WHOLE or not value.is_integer()):
        raise ValueError
    if not least <= value <= most:
        raise ValueError
    return made(value)
