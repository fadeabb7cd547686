"""A graph bound to the columns of some data: its operators in order, and the origin of every column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.features.operator import Concatenation, Inputs, Node, Operator, OperatorCall, Source, Subset
from whitewater.features.schema import Field, Schema, kind

if TYPE_CHECKING:
    import pyarrow as pa

    from whitewater.features.columns.column import Column
    from whitewater.features.dataset import Dataset
    from whitewater.features.operator import ApplyMode, Fitted, Resources, Statistic

Origin = int | None
"""Where a column comes from: the number of the stage that makes it, or None for the data."""
Learned = Sequence[Mapping[str, "Fitted"] | None]
"""What each stage of a plan learned, by names of statistics; None for a stage that is not fitted yet."""
Read = Callable[[Sequence[str]], Mapping[str, Any]]


@dataclass(frozen=True)
class Columns:
    """Columns at a point in the graph: names and combinations in order, and the origin of every name."""

    inputs: Inputs
    origins: Mapping[str, Origin]


@dataclass(frozen=True)
class Substage:
    """Some inputs of a stage, and the columns that it computes from these inputs alone."""

    inputs: Inputs
    outputs: tuple[str, ...]

    def names(self) -> list[str]:
        """Return the distinct columns among the inputs."""
        return list(dict.fromkeys(_names(self.inputs)))


@dataclass(frozen=True)
class Stage:
    """An operator with its columns.

    ``fields`` describes its inputs and dependencies, ``outputs`` its results. It has one substage for each input, or a
    single one if a column is computed from several inputs.
    """

    operator: Operator
    inputs: Inputs
    origins: Mapping[str, Origin]
    fields: Mapping[str, Field]
    outputs: tuple[Field, ...]
    substages: tuple[Substage, ...]

    @property
    def label(self) -> str:
        """The operator's name, in messages and artifacts."""
        return type(self.operator).__name__

    def parents(self) -> set[int]:
        """Return the numbers of the stages that make its inputs."""
        return {origin for origin in self.origins.values() if origin is not None}

    @cached_property
    def substage_of(self) -> dict[str, Substage]:
        """The substage of every output column, by name."""
        return {name: substage for substage in self.substages for name in substage.outputs}

    @cached_property
    def field_of(self) -> dict[str, Field]:
        """The output columns by name."""
        return {field.name: field for field in self.outputs}


@dataclass(frozen=True)
class Plan:
    """Stages in the order of evaluation; ``outputs`` are the columns of the result, ``schema`` those of the data."""

    schema: Schema
    stages: tuple[Stage, ...]
    outputs: Mapping[str, Origin]

    def output_fields(self) -> tuple[Field, ...]:
        """Return the columns of the result."""
        return tuple(self.field_of(name, origin) for name, origin in self.outputs.items())

    def field_of(self, name: str, origin: Origin) -> Field:
        """Return a column of the data or of a stage."""
        return self.schema[name] if origin is None else self.stages[origin].field_of[name]

    def evaluation_order(self, wanted: Mapping[str, Origin]) -> list[tuple[int, Substage]]:
        """Return the substages that make the wanted columns, with their stages' numbers; inputs are made first."""
        substages: dict[tuple[int, Inputs], Substage] = {}

        def visit(name: str, origin: Origin) -> None:
            if origin is not None:
                substage = self.stages[origin].substage_of[name]
                if (origin, substage.inputs) not in substages:
                    for parent in substage.names():
                        visit(parent, self.stages[origin].origins[parent])
                    substages[origin, substage.inputs] = substage

        for name, origin in wanted.items():
            visit(name, origin)
        return [(origin, substage) for (origin, _), substage in substages.items()]

    def substage_inputs(self, number: int, substage: Substage, *, training: bool) -> dict[str, Origin]:
        """Return the inputs and dependencies of a substage of stage ``number``, with their origins."""
        stage = self.stages[number]
        dependencies = dict.fromkeys(stage.operator.dependencies(fitting=False, training=training))
        return {**dependencies, **{name: stage.origins[name] for name in substage.names()}}

    def data_columns(self, wanted: Mapping[str, Origin], *, training: bool) -> list[str]:
        """Return the distinct columns of the data that are needed to make the wanted columns."""
        order = self.evaluation_order(wanted)
        inputs = [self.substage_inputs(number, substage, training=training) for number, substage in order]
        pairs = [pair for origins in [*inputs, wanted] for pair in origins.items()]
        return list(dict.fromkeys(name for name, origin in pairs if origin is None))

    def describe(self, learned: Learned) -> Plan:
        """Return the plan with the column properties that are known from what was learned so far."""
        plan = Plan(self.schema, (), {})
        for stage, fitted in zip(self.stages, learned, strict=True):
            fields = _fields(plan, stage.operator, stage.inputs, stage.origins)
            outputs = tuple(stage.operator.output(stage.inputs, fields))
            if fitted is not None:
                outputs = tuple(stage.operator.describe(outputs, fitted))
            plan = replace(plan, stages=(*plan.stages, replace(stage, fields=fields, outputs=outputs)))
        return replace(plan, outputs=self.outputs)


@dataclass(frozen=True)
class Transformation:
    """A fitted plan, and the columns that are copied unchanged to the results if the data have them.

    ``seconds`` names the columns of the data that hold seconds since 1970; times in other units are refused there.
    """

    plan: Plan
    learned: Learned
    carried: tuple[str, ...] = ()
    seconds: tuple[str, ...] = ()

    def columns(self, *, training: bool) -> list[str]:
        """Return the columns that the data must have."""
        return self.plan.data_columns(self.plan.outputs, training=training)

    def origins(self, schema: Schema) -> dict[str, Origin]:
        """Return the columns of the results for data with this schema, and where they come from."""
        return {**self.plan.outputs, **{name: None for name in self.carried if name in schema.names}}

    def fields(self, schema: Schema) -> tuple[Field, ...]:
        """Return the columns of the results for data with this schema."""
        carried = (schema[name] for name in self.carried if name in schema.names)
        return (*self.plan.output_fields(), *carried)

    def input_types(self, schema: Schema, *, training: bool) -> dict[str, pa.DataType]:
        """Return the columns to read from data with this schema, with their types as in the data fitted on."""
        carried = {name: schema[name].type for name in self.carried if name in schema.names}
        return carried | {name: self.plan.schema[name].type for name in self.columns(training=training)}

    def check(self, schema: Schema, *, training: bool) -> None:
        """Check that data have the columns that the plan needs, of the kinds that it was fitted on.

        Raises InputError, naming every column that is missing or of another kind.
        """
        faults = []
        for name in self.columns(training=training):
            if name not in schema.types:
                faults.append(schema.fault(name) if name in schema.unusable else f"column {name!r} is missing")
                continue
            kinds = kind(schema[name].type), kind(self.plan.schema[name].type)
            if kinds[0] != kinds[1] and "nulls" not in kinds:
                faults.append(f"column {name!r} is of {kinds[0]}, but was of {kinds[1]} when it was fitted")
        if faults:
            raise InputError(
                f"the data do not suit the workflow: {'; '.join(faults)}. Give columns like those it was fitted on."
            )


@dataclass(frozen=True)
class Lesson:
    """A statistic that a stage, given by its number, has to learn."""

    stage: int
    statistic: Statistic


@dataclass(frozen=True)
class FitState:
    """What the lessons of a pass over the data have in common: the plan, what was learned before, and the data."""

    plan: Plan
    learned: Learned
    dataset: Dataset
    resources: Resources
    mode: ApplyMode

    def columns(self, lesson: Lesson) -> list[str]:
        """Return the columns of the data that a lesson reads."""
        return self.plan.data_columns(self.observed_columns(lesson), training=True)

    def observed_columns(self, lesson: Lesson) -> dict[str, Origin]:
        """Return the columns that a lesson observes, with their origins."""
        origins = self.plan.stages[lesson.stage].origins
        return {name: origins.get(name) for name in lesson.statistic.columns}


def bind(graph: Node, schema: Schema) -> Plan:
    """Return the plan of a graph for the columns of some data.

    Raises ConfigError if a column is unknown or of a type that its operator cannot take, two columns have one name, or
    an operator cannot take combinations.
    """
    binding = _Binding(schema)
    result = binding.columns(graph)
    if any(not isinstance(entry, str) for entry in result.inputs):
        raise ConfigError("a combination of columns is not a result. Give it to an operator, such as Categorify.")
    return Plan(schema, tuple(binding.stages), result.origins)


@dataclass
class _Binding:
    schema: Schema
    stages: list[Stage] = field(default_factory=list)
    _columns: dict[int, Columns] = field(default_factory=dict)

    def columns(self, node: Node) -> Columns:
        """Return the columns of a node. A node that is used twice is bound once."""
        if id(node) not in self._columns:
            binders: Mapping[type, Callable[[Any], Columns]] = {
                Source: self._source, OperatorCall: self._call, Concatenation: self._concat, Subset: self._subset,
            }  # fmt: skip
            self._columns[id(node)] = binders[type(node)](node)
        return self._columns[id(node)]

    def _source(self, node: Source) -> Columns:
        names = dict.fromkeys(_names(node.columns))
        _refuse_unusable(names, self.schema)
        _refuse_unknown(names, self.schema.names, of="the data")
        return Columns(node.columns, dict.fromkeys(names))

    def _call(self, node: OperatorCall) -> Columns:
        parent, operator = self.columns(node.parent), node.operator
        label = type(operator).__name__
        combinations = [entry for entry in parent.inputs if not isinstance(entry, str)]
        if combinations and not operator.takes_combinations:
            raise ConfigError(
                f"{label} takes columns, not combinations such as {list(combinations[0])}. Give it the columns one by "
                "one, or use HashedCross or Categorify(encode_type='combo')."
            )
        names = dependencies_of(operator)
        _refuse_unusable(names, self.schema)
        _refuse_unknown(names, self.schema.names, of=f"the data, of which {label} needs them")
        for name in names:
            if (origin := parent.origins.get(name)) is not None:
                raise ConfigError(
                    f"{label} needs the column {name!r} as it is in the data, but its input also has a column of that "
                    f"name, made by {self.stages[origin].label}. Rename that one."
                )
        stage = stage_operator(Plan(self.schema, tuple(self.stages), {}), operator, parent.inputs, parent.origins)
        self.stages.append(stage)
        return Columns(tuple(stage.field_of), dict.fromkeys(stage.field_of, len(self.stages) - 1))

    def _concat(self, node: Concatenation) -> Columns:
        inputs: list[str | tuple[str, ...]] = []
        origins: dict[str, Origin] = {}
        for parent in map(self.columns, node.parents):
            for name, origin in parent.origins.items():
                if origins.setdefault(name, origin) != origin:
                    first, second = ("the data" if maker is None else self.stages[maker].label
                                     for maker in (origins[name], origin))  # fmt: skip
                    raise ConfigError(
                        f"two columns are called {name!r}: that of {first} and that of "
                        f"{second if second != first else 'another one'}. Give one another name with Rename, or leave "
                        f"it out with `- [{name!r}]`."
                    )
            inputs += parent.inputs
        return Columns(tuple(dict.fromkeys(inputs)), origins)

    def _subset(self, node: Subset) -> Columns:
        parent, inputs = self.columns(node.parent), node.columns
        if node.is_complement:
            _refuse_unknown(node.columns, list(parent.inputs), of="what is left out of")
            inputs = tuple(entry for entry in parent.inputs if entry not in node.columns)
        else:
            _refuse_unknown(dict.fromkeys(_names(inputs)), list(parent.origins), of="what is picked from")
        return Columns(inputs, {name: parent.origins[name] for name in dict.fromkeys(_names(inputs))})


def stage_operator(plan: Plan, operator: Operator, inputs: Inputs, origins: Mapping[str, Origin]) -> Stage:
    """Return an operator as the next stage of a plan.

    Raises ConfigError if it makes two columns of the same name, or cannot take the type of a column.
    """
    fields = _fields(plan, operator, inputs, origins)
    outputs = tuple(operator.output(inputs, fields))
    names = [output.name for output in outputs]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(
            f"{type(operator).__name__} makes more than one column called {', '.join(repeated)}. Give it each column "
            "once."
        )
    return Stage(operator, inputs, origins, fields, outputs, _substages(operator, inputs, fields, outputs))


def _substages(
    operator: Operator, inputs: Inputs, fields: Mapping[str, Field], outputs: tuple[Field, ...]
) -> tuple[Substage, ...]:
    """Return a substage for each input if no output depends on several inputs, or else a single substage."""
    whole = (Substage(inputs, tuple(output.name for output in outputs)),)
    try:
        outputs_of = {entry: tuple(operator.output((entry,), fields)) for entry in inputs}
    except ConfigError:
        return whole
    if tuple(output for entry in inputs for output in outputs_of[entry]) != outputs:
        return whole
    return tuple(Substage((entry,), tuple(output.name for output in outputs_of[entry])) for entry in inputs)


def dependencies_of(operator: Operator) -> list[str]:
    """Return the distinct columns of the data that an operator may need besides its inputs."""
    uses = [(True, True), (False, True), (False, False)]
    names = [name for fitting, training in uses for name in operator.dependencies(fitting=fitting, training=training)]
    return list(dict.fromkeys(names))


def _fields(plan: Plan, operator: Operator, inputs: Inputs, origins: Mapping[str, Origin]) -> dict[str, Field]:
    fields = {name: plan.schema[name] for name in dependencies_of(operator)}
    return fields | {name: plan.field_of(name, origins[name]) for name in _names(inputs)}


def _names(inputs: Inputs) -> Iterator[str]:
    for entry in inputs:
        yield from (entry,) if isinstance(entry, str) else entry


def _refuse_unusable(names: Iterable[str], schema: Schema) -> None:
    for name in names:
        if name in schema.unusable:
            raise ConfigError(f"{schema.fault(name)}, or leave it out.")


def _refuse_unknown(names: Iterable[str | tuple[str, ...]], known: Sequence[str | tuple[str, ...]], *, of: str) -> None:
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(
            f"{', '.join(map(repr, unknown))} {'is' if len(unknown) == 1 else 'are'} not among the columns of {of}: "
            f"{', '.join(map(str, known))}. Correct the name."
        )


def evaluate(plan: Plan, learned: Learned, read: Read, wanted: Mapping[str, Origin], mode: ApplyMode) -> Any:
    """Return the wanted columns, read from the data or computed by stages, for some rows.

    Columns are computed one after another, and dropped after their last use, so that few besides the results are in
    memory at a time. ``read`` returns columns of the data by name; ``wanted`` maps the wanted columns to their origins.
    Raises IntegrityError if a stage makes other columns than its plan says, or columns of different lengths.
    """
    columns: dict[tuple[Origin, str], Column] = {}
    steps = [
        (number, substage, plan.substage_inputs(number, substage, training=mode.training))
        for number, substage in plan.evaluation_order(wanted)
    ]
    last_use = {
        (origin, name): place for place, (_, _, origins) in enumerate(steps) for name, origin in origins.items()
    }
    result_keys = {(origin, name) for name, origin in wanted.items()}
    used_keys = last_use.keys() | result_keys
    for place, (number, substage, origins) in enumerate(steps):
        _read_missing(columns, origins, read)
        block = {name: columns[origin, name] for name, origin in origins.items()}
        for key in [key for key in columns if key not in result_keys and last_use[key] <= place]:
            del columns[key]
        stage = plan.stages[number]
        outputs = stage.operator.transform(substage.inputs, block, learned[number] or {}, mode)
        if tuple(outputs) != substage.outputs:
            raise IntegrityError(
                f"{stage.label} made the columns {list(outputs)}, not {list(substage.outputs)}. Report this as a bug."
            )
        lengths = {len(column) for column in (*block.values(), *outputs.values())}
        if len(lengths) > 1:
            raise IntegrityError(f"{stage.label} made columns of other rows than it was given. Report this as a bug.")
        columns |= {(number, name): column for name, column in outputs.items() if (number, name) in used_keys}
        del block, outputs
    _read_missing(columns, wanted, read)
    return {name: columns[origin, name] for name, origin in wanted.items()}


def _read_missing(columns: dict[tuple[Origin, str], Column], wanted: Mapping[str, Origin], read: Read) -> None:
    missing = [name for name, origin in wanted.items() if origin is None and (origin, name) not in columns]
    if missing:
        columns |= {(None, name): column for name, column in read(missing).items()}
