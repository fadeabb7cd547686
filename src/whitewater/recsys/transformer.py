"""One row at a time, for serving: a fitted workflow as plain look-ups, without arrays.

It makes of a row what the workflow makes of it in a table.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from whitewater.errors import InputError
from whitewater.recsys.artefact import load
from whitewater.recsys.plan import Share
from whitewater.recsys.schema import kind

if TYPE_CHECKING:
    from whitewater.recsys.operators.operator import Inputs, Row, RowFunction, Value
    from whitewater.recsys.plan import Origin, Stage
    from whitewater.recsys.transforming import Transformation
    from whitewater.recsys.workflow import Workflow


class Transformer:
    """Makes the features of one row.

    Parameters
    ----------
    workflow
        A fitted workflow; see `load` for one that is stored.

    Raises
    ------
    ConfigError
        If an operator needs other rows than the one.
    """

    def __init__(self, workflow: Workflow) -> None:
        self._compile(workflow.fitted)

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a stored workflow; raises as `Workflow.load` does."""
        transformer = cls.__new__(cls)
        transformer._compile(load(Path(directory)))
        return transformer

    def __call__(self, row: Row) -> dict[str, Value]:
        """Return the features of a row; a null is None, or NaN where an operator computes floats.

        Parameters
        ----------
        row
            Values by column: None or NaN is null, and a null list is an empty one. Columns that no feature needs are
            left aside.

        Raises
        ------
        InputError
            If a column is missing, or its value is of another kind than those that were fitted on.
        """
        given = {name: check(row) for name, check in self._checks}
        made: list[Row] = [given]
        for step in self._steps:
            made.append(step(made))
        results = {name: made[place][name] for name, place in self._outputs}
        return results | {name: row[name] for name in self._carried if name in row}

    def _compile(self, fitted: Transformation) -> None:
        plan = fitted.plan
        inputs: dict[int, Inputs] = {}
        for number, share in plan.work(plan.outputs):
            inputs[number] = (*inputs.get(number, ()), *share.inputs)
        numbers = sorted(inputs)
        places: dict[Origin, int] = {None: 0} | {number: place for place, number in enumerate(numbers, start=1)}
        self._checks = [(name, _check(name, plan.schema[name].type)) for name in fitted.columns(training=False)]
        self._steps = []
        for number in numbers:
            taken = plan.taken(number, Share(inputs[number], ()), training=False)
            function = _rounding(plan.stages[number], inputs[number], fitted.learnt[number] or {})
            self._steps.append(_step(function, {name: places[origin] for name, origin in taken.items()}))
        self._outputs = [(name, places[origin]) for name, origin in plan.outputs.items()]
        self._carried = fitted.carried


def _step(function: RowFunction, places: Mapping[str, int]) -> Callable[[list[Row]], Row]:
    """Return what applies the function of a stage to what the stages before made."""
    found = list(places.values())
    most = max(set(found), key=found.count) if found else 0
    others = [(name, place) for name, place in places.items() if place != most]
    if not others:
        return lambda made: function(made[most])
    return lambda made: function({**made[most], **{name: made[place][name] for name, place in others}})


def _rounding(stage: Stage, inputs: Inputs, learnt: Mapping[str, Any]) -> RowFunction:
    """Return the function of a stage, whose floats of 32 bits are rounded as those of a column are."""
    function = stage.operator.row(inputs, learnt)
    made_of = {name for share in stage.shares if set(share.inputs) <= set(inputs) for name in share.outputs}
    narrow = [each.name for each in stage.outputs if pa.types.is_float32(each.type) and each.name in made_of]
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


def _check(name: str, type_: pa.DataType) -> Callable[[Row], Value]:
    """Return what takes a column's value from a row, or refuses it."""
    kinds: dict[str, tuple[type, ...]] = {"text": (str,), "numbers": (int, float), "nulls": (object,)}
    wanted = kind(type_)
    types = kinds.get(wanted, (list, tuple))
    narrow = pa.types.is_float32(type_)
    is_list = pa.types.is_list(type_)

    def check(row: Row) -> Value:
        try:
            value = row[name]
        except KeyError:
            raise InputError(
                f"the row has no column {name!r}, which the workflow needs. Give it, as None if it is null."
            ) from None
        if isinstance(value, types):
            return ctypes.c_float(value).value if narrow else value  # type: ignore[arg-type]
        of_numpy = getattr(value, "tolist", None)
        if of_numpy is not None:
            return check({name: of_numpy()})
        if value is None or value != value:  # noqa: PLR0124 (NaN is null, in a column of text, too)
            return [] if is_list else None
        raise InputError(
            f"the row's {name!r} is {value!r}, but the column was of {wanted} when the workflow was fitted."
        )

    return check
