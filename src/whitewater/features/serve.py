"""Serving: a fitted workflow as functions of one row, without arrays. A row gets the same features as in a table."""

import ctypes
import reprlib
from collections.abc import Callable
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
        for number, entries in plan.evaluation_order(plan.outputs):
            inputs[number] = (*inputs.get(number, ()), *entries)
        self._checks = [
            (name, _check(name, plan.schema[name].type, is_time=name in plan.seconds))
            for name in plan.data_columns(training=False)
        ]
        self._steps = []
        for number, entries in sorted(inputs.items()):
            columns = list(plan.stage_columns(number, entries, training=False).items())
            self._steps.append((number, _row_function(plan.stages[number], entries), columns))
        self._outputs, self._carried = [*plan.outputs.items()], plan.carried

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a stored workflow; raises as `Workflow.load` does."""
        return cls(Workflow.load(directory))

    def __call__(self, row: Row) -> dict[str, Value]:
        """Return the features of a row; a null is None, or NaN where an operator computes floats.

        In ``row``, None or NaN is null, and a null list is the empty list. Columns that no feature needs are ignored.
        Raises InputError if a column is missing, or a value is of another kind than in the fitted data.
        """
        values: dict[Origin, Row] = {None: {name: check(row) for name, check in self._checks}}
        for number, function, columns in self._steps:
            values[number] = function({name: values[origin][name] for name, origin in columns})
        results = {name: values[origin][name] for name, origin in self._outputs}
        return results | {name: row[name] for name in self._carried if name in row}


def _row_function(stage: Stage, inputs: Inputs) -> RowFunction:
    """Return the function of a stage, which rounds float32 outputs as in a column."""
    function = stage.operator.row(inputs, stage.learned or {})
    outputs = [name for name, entries in stage.inputs_of.items() if set(entries) <= set(inputs)]
    float32 = [name for name in outputs if pa.types.is_float32(stage.outputs[name].type)]

    def rounded(row: Row) -> dict[str, Value]:
        values = function(row)
        for name in float32:
            values[name] = None if values[name] is None else ctypes.c_float(values[name]).value  # type: ignore[arg-type]
        return values

    return rounded if float32 else function


def _check(name: str, type_: pa.DataType, *, is_time: bool) -> Callable[[Row], Value]:
    """Return a function that takes the value of a column from a row and converts it, or raises InputError."""
    convert = _converter(type_)

    def check(row: Row) -> Value:
        if name not in row:
            raise InputError(f"the row has no column {name!r}, but the workflow needs it. Give it, or None for null.")
        try:
            converted = convert(row[name])
        except (TypeError, ValueError, OverflowError):
            fitted_kind = f"numbers ({type_})" if kind(type_) == "numbers" else kind(type_)
            raise InputError(
                f"the row's {name!r} is {reprlib.repr(row[name])}, but the column was of {fitted_kind} when the "
                "workflow was fitted. Give such a value, or None."
            ) from None
        if is_time and isinstance(converted, int) and not SINCE <= converted < UNTIL:
            raise InputError(seconds_fault(name, converted))
        return converted

    return check


def _converter(type_: pa.DataType) -> Callable[[Any], Value]:
    """Return a function that converts a value to a type; it raises TypeError, ValueError or OverflowError."""
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
    if types.is_boolean(type_):
        return _of((float, int), lambda value: bool(_integer(value, 0, 1)))
    largest = 2**64 - 1 if types.is_uint64(type_) else 2**63 - 1
    return _of((float, int), lambda value: _integer(value, -(2**63), largest))


def _of(kinds: type | tuple[type, ...], convert: Callable[[Any], Any]) -> Callable[[Any], Value]:
    """Return a function that converts values of these classes, null to None or [], and raises TypeError for others."""

    def convert_or_null(value: Any) -> Value:
        # NumPy scalars and arrays
        if (to_python := getattr(value, "tolist", None)) is not None:
            value = to_python()
        # NaN is not equal to itself, and comparing pandas' NA returns NA.
        if value is None or (value != value) is not False:  # noqa: PLR0124
            return [] if kinds == (list, tuple) else None
        if not isinstance(value, kinds):
            raise TypeError
        return convert(value)

    return convert_or_null


def _text(value: str) -> str:
    if not value.isascii():
        value.encode()  # raises ValueError for half of a surrogate pair, which JSON allows
    return value


def _integer(value: Any, smallest: int, largest: int) -> int:
    # pandas stores integers with nulls as floats, which hold every integer exactly up to 2**53.
    is_exact = not isinstance(value, float) or (value.is_integer() and abs(value) <= 2**53)
    if not is_exact or not smallest <= value <= largest:
        raise ValueError
    return int(value)
