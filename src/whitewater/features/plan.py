"""A graph bound to the columns of a dataset: its operators in order, and the origin of every column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from whitewater.errors import ConfigError, InputError, IntegrityError, did_you_mean
from whitewater.features.columns.column import Block, Column
from whitewater.features.dataset import Dataset
from whitewater.features.operator import (
    Concatenation,
    Fitted,
    Inputs,
    Mode,
    Node,
    Operator,
    OperatorCall,
    Source,
    Statistic,
    Subset,
    columns_in,
)
from whitewater.features.schema import Field, Schema, kind

Origin = int | None
"""Source of a column: the number of a stage, or None for the data."""
Columns = tuple[Inputs, Mapping[str, Origin]]
"""Columns at a point in the graph: names and combinations in order, and the origin of every name."""
Read = Callable[[Sequence[str]], Mapping[str, Any]]


@dataclass(frozen=True)
class Stage:
    """An operator with its columns."""

    operator: Operator
    inputs: Inputs
    origins: Mapping[str, Origin]
    fields: Mapping[str, Field]  # inputs and dependencies
    outputs: Mapping[str, Field]
    inputs_of: Mapping[str, Inputs]  # the inputs that each output depends on
    learned: Mapping[str, Fitted] | None = None  # by statistic; None until it is fitted

    @property
    def label(self) -> str:
        """The operator's name, in messages and artifacts."""
        return type(self.operator).__name__


@dataclass(frozen=True)
class Plan:
    """Stages in the order of evaluation."""

    schema: Schema  # columns of the data
    stages: tuple[Stage, ...] = ()
    outputs: Mapping[str, Origin] = field(default_factory=dict)
    carried: tuple[str, ...] = ()  # columns copied to the results if the data have them
    seconds: tuple[str, ...] = ()  # columns of the data with seconds since 1970; other units are refused

    def add(
        self,
        operator: Operator,
        inputs: Inputs,
        origins: Mapping[str, Origin],
        learned: Mapping[str, Fitted] | None = None,
    ) -> Plan:
        """Return the plan with one more stage; raises ConfigError if outputs share a name, or a type is unusable."""
        fields = {name: self.schema[name] for name in operator.dependencies(fitting=True, training=True)}
        fields |= {name: self.field_of(name, origins[name]) for name in columns_in(inputs)}
        output_fields = operator.output(inputs, fields)
        names = [output.name for output in output_fields]
        if duplicates := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(
                f"{type(operator).__name__} makes more than one column called {', '.join(duplicates)}. Give it each "
                "column once."
            )
        parts = [inputs] if operator.needs_all_inputs else [(entry,) for entry in inputs]
        by_part = [(output, part) for part in parts for output in operator.output(part, fields)]
        if [output for output, _ in by_part] != list(output_fields):
            raise TypeError(f"{type(operator).__name__} makes other columns of each input than of all. Set "
                            "needs_all_inputs in its class.")  # fmt: skip
        inputs_of = {output.name: part for output, part in by_part}
        if learned is not None:
            output_fields = operator.describe(output_fields, learned)
        outputs = dict(zip(names, output_fields, strict=True))
        stage = Stage(operator, inputs, origins, fields, outputs, inputs_of, learned)
        return replace(self, stages=(*self.stages, stage))

    def learn(self, learned: Sequence[Mapping[str, Fitted] | None]) -> Plan:
        """Return the plan with what its stages learned, and the column properties that follow from it."""
        plan = replace(self, stages=())
        for stage, fitted in zip(self.stages, learned, strict=True):
            plan = plan.add(stage.operator, stage.inputs, stage.origins, fitted)
        return plan

    def field_of(self, name: str, origin: Origin) -> Field:
        return self.schema[name] if origin is None else self.stages[origin].outputs[name]

    def fields(self, schema: Schema | None = None) -> tuple[Field, ...]:
        """Return the columns of the result, then those carried from data with this schema."""
        carried = () if schema is None else (schema[name] for name in self.carried if name in schema.types)
        return (*(self.field_of(name, origin) for name, origin in self.outputs.items()), *carried)

    def evaluation_order(self, outputs: Mapping[str, Origin]) -> list[tuple[int, Inputs]]:
        """Return the stages that columns depend on, and their inputs, in topological order."""
        order: dict[tuple[int, Inputs], None] = {}

        def visit(name: str, origin: Origin) -> None:
            if origin is not None:
                stage = self.stages[origin]
                inputs = stage.inputs_of[name]
                if (origin, inputs) not in order:
                    for parent in columns_in(inputs):
                        visit(parent, stage.origins[parent])
                    order[origin, inputs] = None

        for name, origin in outputs.items():
            visit(name, origin)
        return list(order)

    def stage_columns(self, number: int, inputs: Inputs, *, training: bool) -> dict[str, Origin]:
        """Return the dependencies and inputs of a stage with their origins."""
        stage = self.stages[number]
        dependencies = dict.fromkeys(stage.operator.dependencies(fitting=False, training=training))
        return dependencies | {name: stage.origins[name] for name in columns_in(inputs)}

    def data_columns(self, outputs: Mapping[str, Origin] | None = None, *, training: bool) -> list[str]:
        """Return the distinct columns of the data that columns, by default the results, are computed from."""
        outputs = self.outputs if outputs is None else outputs
        by_stage = [self.stage_columns(*step, training=training) for step in self.evaluation_order(outputs)]
        pairs = [pair for origins in [*by_stage, outputs] for pair in origins.items()]
        return list(dict.fromkeys(name for name, origin in pairs if origin is None))

    def check(self, schema: Schema, *, training: bool) -> None:
        """Raise InputError, naming all columns that are missing or of another kind than the plan was fitted on."""
        faults = []
        for name in self.data_columns(training=training):
            if name not in schema.types:
                faults.append(schema.fault(name) if name in schema.unusable else f"column {name!r} is missing")
                continue
            kinds = kind(schema[name].type), kind(self.schema[name].type)
            if kinds[0] != kinds[1] and "nulls" not in kinds:
                faults.append(f"column {name!r} is of {kinds[0]}, but was of {kinds[1]} when it was fitted")
        if faults:
            raise InputError(
                f"the data do not suit the workflow: {'; '.join(faults)}. Give columns like those it was fitted on."
            )

    def evaluate(self, read: Read, outputs: Mapping[str, Origin], mode: Mode) -> Block:
        """Return columns of the data or of stages, for the rows that ``read`` returns columns of.

        Columns are dropped after their last use, so that few besides the results are in memory at a time. Raises
        IntegrityError if a stage returns other columns or rows than planned.
        """
        columns: dict[tuple[Origin, str], Column] = {}

        def block_of(origins: Mapping[str, Origin]) -> dict[str, Column]:
            missing = [name for name, origin in origins.items() if origin is None and (None, name) not in columns]
            if missing:
                columns.update({(None, name): column for name, column in read(missing).items()})
            return {name: columns[origin, name] for name, origin in origins.items()}

        steps = [(*step, self.stage_columns(*step, training=mode.training)) for step in self.evaluation_order(outputs)]
        last_use = {
            (origin, name): place for place, (_, _, origins) in enumerate(steps) for name, origin in origins.items()
        }
        last_use |= {(origin, name): len(steps) for name, origin in outputs.items()}
        for place, (number, inputs, origins) in enumerate(steps):
            stage, block = self.stages[number], block_of(origins)
            for key in [key for key in columns if last_use[key] <= place]:
                del columns[key]
            results = stage.operator.transform(inputs, block, stage.learned or {}, mode)
            expected = [name for name, entries in stage.inputs_of.items() if entries == inputs]
            if list(results) != expected or len({len(column) for column in (*block.values(), *results.values())}) > 1:
                raise IntegrityError(
                    f"{stage.label} returned the columns {list(results)}, not {expected}, or not one row for each "
                    "input row. Report this as a bug."
                )
            columns |= {(number, name): column for name, column in results.items() if (number, name) in last_use}
            del block, results
        return block_of(outputs)


@dataclass(frozen=True)
class Lesson:
    """A statistic that a stage has to learn."""

    stage: int
    origins: Mapping[str, Origin]  # of the inputs of the stage
    statistic: Statistic

    @property
    def columns(self) -> dict[str, Origin]:
        """The columns that it observes, with their origins."""
        return {name: self.origins.get(name) for name in self.statistic.columns}


@dataclass(frozen=True)
class PassState:
    """Shared by the tasks of a pass over the data: the plan as fitted before, and the data."""

    plan: Plan
    dataset: Dataset
    mode: Mode


def bind(graph: Node, schema: Schema) -> Plan:
    """Return the plan of a graph for the columns of a dataset; raises ConfigError if the graph does not fit them."""
    binding = _Binding(schema)
    inputs, origins = binding.columns(graph)
    if any(not isinstance(entry, str) for entry in inputs):
        raise ConfigError("a combination of columns is not a result. Give it to an operator, such as Categorify.")
    return replace(binding.plan, outputs=origins)


class _Binding:
    def __init__(self, schema: Schema) -> None:
        self.plan = Plan(schema)
        # A node that is used twice is bound once.
        self.columns = cache(self._bind)

    def _bind(self, node: Node) -> Columns:
        match node:
            case Source(inputs):
                _check_names(columns_in(inputs), self.plan.schema, of="the data")
                return inputs, dict.fromkeys(columns_in(inputs))
            case OperatorCall(operator, parent):
                return self._call(operator, *self.columns(parent))
            case Concatenation(parents):
                return self._concatenate([self.columns(parent) for parent in parents])
            case Subset(parent, excluded, is_complement=True):
                parent_inputs, origins = self.columns(parent)
                _check_names(excluded, parent_inputs, of="the node to remove from")
                inputs = tuple(entry for entry in parent_inputs if entry not in excluded)
            case Subset(parent, inputs):
                _, origins = self.columns(parent)
                _check_names(columns_in(inputs), tuple(origins), of="the node to select from")
        return inputs, {name: origins[name] for name in columns_in(inputs)}

    def _call(self, operator: Operator, inputs: Inputs, origins: Mapping[str, Origin]) -> Columns:
        label = type(operator).__name__
        combinations = [entry for entry in inputs if not isinstance(entry, str)]
        if combinations and not operator.takes_combinations:
            raise ConfigError(
                f"{label} takes columns, not combinations such as {list(combinations[0])}. Give it the columns one by "
                "one, or use HashedCross or Categorify(encode_type='combo')."
            )
        names = operator.dependencies(fitting=True, training=True)
        _check_names(names, self.plan.schema, of=f"the data, of which {label} needs them")
        for name in names:
            if (origin := origins.get(name)) is not None:
                raise ConfigError(
                    f"{label} needs the column {name!r} as it is in the data, but its input also has a column of that "
                    f"name, made by {self.plan.stages[origin].label}. Rename that one."
                )
        self.plan = self.plan.add(operator, inputs, origins)
        outputs = self.plan.stages[-1].outputs
        return tuple(outputs), dict.fromkeys(outputs, len(self.plan.stages) - 1)

    def _concatenate(self, parents: Sequence[Columns]) -> Columns:
        origins: dict[str, Origin] = {}
        for name, origin in (pair for _, of_parent in parents for pair in of_parent.items()):
            if origins.setdefault(name, origin) != origin:
                makers = origins[name], origin
                first, second = ("the data" if each is None else self.plan.stages[each].label for each in makers)
                raise ConfigError(
                    f"two columns are called {name!r}: that of {first} and that of "
                    f"{second if second != first else 'another one'}. Give one another name with Rename, or leave "
                    f"it out with `- [{name!r}]`."
                )
        return tuple(dict.fromkeys(entry for inputs, _ in parents for entry in inputs)), origins


def _check_names(names: Iterable[str | tuple[str, ...]], available: Schema | Inputs, *, of: str) -> None:
    columns = available.names if isinstance(available, Schema) else available
    unknown = list(dict.fromkeys(name for name in names if name not in columns))
    for name in unknown:
        if isinstance(available, Schema) and name in available.unusable:
            raise ConfigError(f"{available.fault(str(name))}, or leave it out.")
    if unknown:
        near = did_you_mean(str(unknown[0]), map(str, columns))
        raise ConfigError(
            f"{', '.join(map(repr, unknown))} {'is' if len(unknown) == 1 else 'are'} not among the columns of {of}: "
            f"{', '.join(map(str, columns))}{near or '.'} Correct the name."
        )
