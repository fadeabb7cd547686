"""A graph bound to the columns of some data: its operators in order, and the origin of every column."""

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
"""Where a column comes from: the number of the stage that makes it, or None for the data."""
Columns = tuple[Inputs, Mapping[str, Origin]]
"""Columns at a point in the graph: names and combinations in order, and the origin of every name."""
Read = Callable[[Sequence[str]], Mapping[str, Any]]


@dataclass(frozen=True)
class Stage:
    """An operator with its columns.

    ``fields`` describes its inputs and dependencies, ``outputs`` its results. ``made_of`` maps each result to the
    inputs that it depends on. ``learned`` has what its statistics learned, and is None while it is not fitted.
    """

    operator: Operator
    inputs: Inputs
    origins: Mapping[str, Origin]
    fields: Mapping[str, Field]
    outputs: Mapping[str, Field]
    made_of: Mapping[str, Inputs]
    learned: Mapping[str, Fitted] | None = None

    @property
    def label(self) -> str:
        """The operator's name, in messages and artifacts."""
        return type(self.operator).__name__


@dataclass(frozen=True)
class Plan:
    """Stages in the order of evaluation; ``outputs`` are the columns of the result, ``schema`` those of the data.

    ``carried`` names columns that are copied unchanged to the results if the data have them, and ``seconds`` columns of
    the data that hold seconds since 1970; times in other units are refused there.
    """

    schema: Schema
    stages: tuple[Stage, ...] = ()
    outputs: Mapping[str, Origin] = field(default_factory=dict)
    carried: tuple[str, ...] = ()
    seconds: tuple[str, ...] = ()

    def add(
        self,
        operator: Operator,
        inputs: Inputs,
        origins: Mapping[str, Origin],
        learned: Mapping[str, Fitted] | None = None,
    ) -> Plan:
        """Return the plan with an operator as its next stage, which may have learned something.

        Raises ConfigError if it makes two columns of the same name, or cannot take the type of a column.
        """
        fields = {name: self.schema[name] for name in operator.dependencies(fitting=True, training=True)}
        fields |= {name: self.field_of(name, origins[name]) for name in columns_in(inputs)}
        made = operator.output(inputs, fields)
        names = [output.name for output in made]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(
                f"{type(operator).__name__} makes more than one column called {', '.join(repeated)}. Give it each "
                "column once."
            )
        parts = [inputs] if operator.needs_all_inputs else [(entry,) for entry in inputs]
        by_part = [(output, part) for part in parts for output in operator.output(part, fields)]
        if [output for output, _ in by_part] != list(made):
            raise TypeError(f"{type(operator).__name__} makes other columns of each input than of all. Set "
                            "needs_all_inputs in its class.")  # fmt: skip
        made_of = {output.name: part for output, part in by_part}
        if learned is not None:
            made = operator.describe(made, learned)
        outputs = dict(zip(names, made, strict=True))
        return replace(self, stages=(*self.stages, Stage(operator, inputs, origins, fields, outputs, made_of, learned)))

    def learn(self, learned: Sequence[Mapping[str, Fitted] | None]) -> Plan:
        """Return the plan with what its stages learned, and the properties of columns that are known from that."""
        plan = replace(self, stages=())
        for stage, fitted in zip(self.stages, learned, strict=True):
            plan = plan.add(stage.operator, stage.inputs, stage.origins, fitted)
        return plan

    def field_of(self, name: str, origin: Origin) -> Field:
        """Return a column of the data or of a stage."""
        return self.schema[name] if origin is None else self.stages[origin].outputs[name]

    def fields(self, schema: Schema | None = None) -> tuple[Field, ...]:
        """Return the columns of the result, and then those that are carried from data with this schema."""
        carried = () if schema is None else (schema[name] for name in self.carried if name in schema.types)
        return (*(self.field_of(name, origin) for name, origin in self.outputs.items()), *carried)

    def evaluation_order(self, wanted: Mapping[str, Origin]) -> list[tuple[int, Inputs]]:
        """Return numbers of stages, and the inputs of each that the wanted columns need; what they need comes first."""
        order: dict[tuple[int, Inputs], None] = {}

        def visit(name: str, origin: Origin) -> None:
            if origin is not None:
                stage = self.stages[origin]
                inputs = stage.made_of[name]
                if (origin, inputs) not in order:
                    for parent in columns_in(inputs):
                        visit(parent, stage.origins[parent])
                    order[origin, inputs] = None

        for name, origin in wanted.items():
            visit(name, origin)
        return list(order)

    def taken(self, number: int, inputs: Inputs, *, training: bool) -> dict[str, Origin]:
        """Return inputs of stage ``number``, and its dependencies, with their origins."""
        stage = self.stages[number]
        dependencies = dict.fromkeys(stage.operator.dependencies(fitting=False, training=training))
        return dependencies | {name: stage.origins[name] for name in columns_in(inputs)}

    def data_columns(self, wanted: Mapping[str, Origin] | None = None, *, training: bool) -> list[str]:
        """Return the distinct columns of the data that are needed to make the wanted columns: by default the result."""
        wanted = self.outputs if wanted is None else wanted
        taken = [self.taken(*step, training=training) for step in self.evaluation_order(wanted)]
        pairs = [pair for origins in [*taken, wanted] for pair in origins.items()]
        return list(dict.fromkeys(name for name, origin in pairs if origin is None))

    def check(self, schema: Schema, *, training: bool) -> None:
        """Check that data have the columns that the plan needs, of the kinds that it was fitted on.

        Raises InputError, naming every column that is missing or of another kind.
        """
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

    def evaluate(self, read: Read, wanted: Mapping[str, Origin], mode: Mode) -> Block:
        """Return the wanted columns for the rows that ``read`` gives columns of.

        They are computed one after another, and dropped after their last use, so that few besides the results are in
        memory at a time. Raises IntegrityError if a stage makes other columns than its plan says, or other rows.
        """
        columns: dict[tuple[Origin, str], Column] = {}

        def block_of(origins: Mapping[str, Origin]) -> dict[str, Column]:
            missing = [name for name, origin in origins.items() if origin is None and (None, name) not in columns]
            if missing:
                columns.update({(None, name): column for name, column in read(missing).items()})
            return {name: columns[origin, name] for name, origin in origins.items()}

        steps = [(*step, self.taken(*step, training=mode.training)) for step in self.evaluation_order(wanted)]
        last_use = {
            (origin, name): place for place, (_, _, origins) in enumerate(steps) for name, origin in origins.items()
        }
        last_use |= {(origin, name): len(steps) for name, origin in wanted.items()}
        for place, (number, inputs, origins) in enumerate(steps):
            stage, block = self.stages[number], block_of(origins)
            for key in [key for key in columns if last_use[key] <= place]:
                del columns[key]
            outputs = stage.operator.transform(inputs, block, stage.learned or {}, mode)
            promised = [name for name, made_of in stage.made_of.items() if made_of == inputs]
            if list(outputs) != promised or len({len(column) for column in (*block.values(), *outputs.values())}) > 1:
                raise IntegrityError(
                    f"{stage.label} made the columns {list(outputs)}, not {promised}, or columns of other rows than "
                    "it was given. Report this as a bug."
                )
            columns |= {(number, name): column for name, column in outputs.items() if (number, name) in last_use}
            del block, outputs
        return block_of(wanted)


@dataclass(frozen=True)
class Lesson:
    """A statistic that a stage, given by its number, has to learn; ``origins`` are those of the stage's inputs."""

    stage: int
    origins: Mapping[str, Origin]
    statistic: Statistic

    @property
    def columns(self) -> dict[str, Origin]:
        """The columns that it observes, with their origins."""
        return {name: self.origins.get(name) for name in self.statistic.columns}


@dataclass(frozen=True)
class PassState:
    """What the tasks of a pass over the data share: the plan, with what was learned before it, and the data."""

    plan: Plan
    dataset: Dataset
    mode: Mode


def bind(graph: Node, schema: Schema) -> Plan:
    """Return the plan of a graph for the columns of some data.

    Raises ConfigError if a column is unknown or of a type that its operator cannot take, two columns have one name, or
    an operator cannot take combinations.
    """
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
                _refuse(columns_in(inputs), self.plan.schema, of="the data")
                return inputs, dict.fromkeys(columns_in(inputs))
            case OperatorCall(operator, parent):
                return self._call(operator, *self.columns(parent))
            case Concatenation(parents):
                return self._concatenate([self.columns(parent) for parent in parents])
            case Subset(parent, left_out, is_complement=True):
                given, origins = self.columns(parent)
                _refuse(left_out, given, of="what is left out of")
                inputs = tuple(entry for entry in given if entry not in left_out)
            case Subset(parent, inputs):
                _, origins = self.columns(parent)
                _refuse(columns_in(inputs), tuple(origins), of="what is picked from")
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
        _refuse(names, self.plan.schema, of=f"the data, of which {label} needs them")
        for name in names:
            if (origin := origins.get(name)) is not None:
                raise ConfigError(
                    f"{label} needs the column {name!r} as it is in the data, but its input also has a column of that "
                    f"name, made by {self.plan.stages[origin].label}. Rename that one."
                )
        self.plan = self.plan.add(operator, inputs, origins)
        *others, stage = self.plan.stages
        return tuple(stage.outputs), dict.fromkeys(stage.outputs, len(others))

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


def _refuse(wanted: Iterable[str | tuple[str, ...]], known: Schema | Inputs, *, of: str) -> None:
    columns = known.names if isinstance(known, Schema) else known
    unknown = list(dict.fromkeys(name for name in wanted if name not in columns))
    for name in unknown:
        if isinstance(known, Schema) and name in known.unusable:
            raise ConfigError(f"{known.fault(str(name))}, or leave it out.")
    if unknown:
        near = did_you_mean(str(unknown[0]), map(str, columns))
        raise ConfigError(
            f"{', '.join(map(repr, unknown))} {'is' if len(unknown) == 1 else 'are'} not among the columns of {of}: "
            f"{', '.join(map(str, columns))}{near or '.'} Correct the name."
        )
