"""The graph of a workflow, and what it means for given columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from whitewater.engines import Device
from whitewater.errors import ConfigError, IntegrityError
from whitewater.features.columns.column import Block
from whitewater.features.operator import Fitted, Inputs, Mode, Node, Operator, RowFunction, as_node
from whitewater.features.operators import Categorify, FillMissing, LogOp, Normalize, Rename, TargetEncoding
from whitewater.features.plan import Plan, bind
from whitewater.features.schema import Field, Schema

NUMBER, TEXT = pa.float64(), pa.string()
COLUMNS = Schema(
    tuple(Field(name, NUMBER) for name in ("I1", "I2", "label", "row_id"))
    + tuple(Field(name, TEXT) for name in ("C1", "C2", "C3"))
)


class Sum(Operator):
    """One column of several."""

    needs_all_inputs = True

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Field]:
        return [Field("sum", NUMBER)]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: Mode) -> Block:
        raise NotImplementedError

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        raise NotImplementedError


def plan_of(node: Any) -> Plan:
    return bind(as_node(node), COLUMNS)


def names(node: Any) -> list[str]:
    return list(plan_of(node).outputs)


def applied(plan: Plan) -> list[str]:
    return [stage.label for stage in plan.stages]


def test_operators_are_applied_in_the_order_that_they_are_written_in() -> None:
    plan = plan_of(["I1", "I2"] >> FillMissing() >> LogOp() >> Normalize())
    assert applied(plan) == ["FillMissing", "LogOp", "Normalize"]
    assert plan.outputs == {"I1": 2, "I2": 2}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("I1" >> LogOp(), ["I1"]),
        (("I1" >> LogOp()) + ["C1", "C2"], ["I1", "C1", "C2"]),
        (["C1"] + ("I1" >> LogOp()), ["C1", "I1"]),
        ("C1" + ("I1" >> LogOp()), ["C1", "I1"]),
        ((["I1", "I2"] >> LogOp()) - ["I1"], ["I2"]),
        ((["I1", "I2"] >> LogOp())["I2"], ["I2"]),
        ((["I1", "I2"] >> LogOp())[["I2", "I1"]] >> Rename(postfix="_x"), ["I2_x", "I1_x"]),
        (["C1", ["C1", "C2"]] >> Categorify(encode_type="combo"), ["C1", "C1_C2"]),
        ((as_node(["C1", "C2", "C3"]))[[["C1", "C3"]]] >> Categorify(encode_type="combo"), ["C1_C3"]),
        (as_node("C1") + "C1", ["C1"]),
    ],
)
def test_columns_are_joined_picked_and_left_out_by_name(node: Node, expected: list[str]) -> None:
    assert names(node) == expected


def test_a_node_that_is_used_twice_is_made_once() -> None:
    logged = ["I1", "I2"] >> LogOp()
    plan = plan_of(logged + (logged >> Normalize() >> Rename(postfix="_scaled")))
    assert applied(plan) == ["LogOp", "Normalize", "Rename"]
    assert list(plan.outputs) == ["I1", "I2", "I1_scaled", "I2_scaled"]


def test_each_column_needs_only_what_it_is_made_of() -> None:
    plan = plan_of(["I1", "I2"] >> FillMissing() >> Normalize())
    assert [(plan.stages[number].label, inputs) for number, inputs in plan.evaluation_order({"I2": 1})] == [
        ("FillMissing", ("I2",)),
        ("Normalize", ("I2",)),
    ]
    assert plan.data_columns({"I2": 1}, training=False) == ["I2"]


def test_a_column_made_of_several_needs_all_of_them() -> None:
    plan = plan_of(["I1", "I2"] >> FillMissing() >> Sum())
    assert plan.data_columns(plan.outputs, training=False) == ["I1", "I2"]
    assert [inputs for _, inputs in plan.evaluation_order(plan.outputs)] == [("I1",), ("I2",), ("I1", "I2")]


def refused() -> Iterator[tuple[Any, str]]:
    yield ["I1", "I9"] >> LogOp(), "'I9' is not among the columns of the data"
    yield (["I1"] >> LogOp())["I2"], "'I2' is not among the columns of the node to select from"
    yield (["I1"] >> LogOp()) - ["I2"], "'I2' is not among the columns of the node to remove from"
    yield ["C1"] >> TargetEncoding(target="click"), "'click' is not among the columns of the data, of which TargetEnc"
    yield (
        (["I1"] >> LogOp()) + (["I1"] >> LogOp()),
        "two columns are called 'I1': that of LogOp and that of another one",
    )
    yield (["I1"] >> LogOp()) + ["I1"], "two columns are called 'I1': that of LogOp and that of the data"
    yield (["I1"] >> LogOp()) + (["I1"] >> Normalize()), "Give one another name with Rename"
    yield ["C1"] >> LogOp(), "LogOp takes numbers, but the column 'C1'"
    yield [["I1", "I2"]] >> LogOp(), "LogOp takes columns, not combinations such as ['I1', 'I2']"
    yield ["I1", ["C1", "C2"]], "a combination of columns is not a result"
    yield (
        (["C1"] + (["label"] >> FillMissing())) >> TargetEncoding(target="label"),
        "needs the column 'label' as it is in the data",
    )


@pytest.mark.parametrize(
    ("node", "message"), list(refused()), ids=lambda value: value[:40] if isinstance(value, str) else ""
)
def test_what_cannot_be_made_is_refused_before_data_are_read(node: Any, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        plan_of(node)
    assert message in str(error.value)
    assert str(error.value).endswith(".")


class SumOfOne(Sum):
    """Says that its column is made of one input, which a single column would hide."""

    needs_all_inputs = False


def test_a_column_of_several_that_is_said_to_be_of_one_is_refused() -> None:
    assert names(["I1"] >> SumOfOne()) == ["sum"]
    with pytest.raises(TypeError, match="Set needs_all_inputs"):
        plan_of(["I1", "I2"] >> SumOfOne())


def test_a_stage_that_makes_other_columns_than_it_says_is_told() -> None:
    class Forgets(Sum):
        def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: Mode) -> Block:
            return {}

    plan = plan_of(["I1", "I2"] >> Forgets())
    with pytest.raises(IntegrityError, match=r"Forgets returned the columns \[\], not \['sum'\]"):
        plan.evaluate(lambda names: dict.fromkeys(names, ()), plan.outputs, Mode(Device()))


@pytest.mark.parametrize("columns", [[], [["C1"]], [["C1", "C1"]], [[1, 2]]])
def test_a_selection_that_is_none_is_refused(columns: Any) -> None:
    with pytest.raises(ConfigError):
        columns >> LogOp()


def test_a_column_of_a_type_that_no_operator_takes_is_told_with_its_type() -> None:
    schema = Schema((Field("I1", NUMBER),), {"when": "is of type timestamp[us]; convert it"})
    with pytest.raises(ConfigError, match=r"column 'when' is of type timestamp\[us\]; convert it, or leave it out"):
        bind(as_node(["I1", "when"]), schema)
