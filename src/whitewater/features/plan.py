"""A graph bound to the columns of some data: its operators in order, and where each column comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from whitewater.errors import ConfigError, IntegrityError
from whitewater.features.operator import Applied, Inputs, Joined, Node, Operator, Picked, Source
from whitewater.features.schema import Field, Schema

if TYPE_CHECKING:
    from whitewater.features.columns.column import Column
    from whitewater.features.dataset import Dataset
    from whitewater.features.operator import Applying, Fitted, Fitting, Statistic

Origin = int | None
"""The source of a column: the number of the stage that makes it, or None for the data."""
Learned = Sequence[Mapping[str, "Fitted"] | None]
"""What each stage of a plan learned, by names of statistics; None where it is not fitted yet."""
Read = Callable[[Sequence[str]], Mapping[str, Any]]


@dataclass(frozen=True)
class Columns:
    """Columns at a place of the graph: names and combinations in order, and where each name comes from."""

    inputs: Inputs
    origins: Mapping[str, Origin]


@dataclass(frozen=True)
class Share:
    """Some inputs of a stage, and the columns that it makes from these inputs alone."""

    inputs: Inputs
    outputs: tuple[str, ...]

    def names(self) -> list[str]:
        """Return the distinct columns among the inputs."""
        return list(dict.fromkeys(_names(self.inputs)))


@dataclass(frozen=True)
class Stage:
    """An operator with its columns.

    ``fields`` are its inputs and dependencies, ``outputs`` what it makes; ``shares`` are its inputs one by one, or all
    together where a column is made of several.
    """

    operator: Operator
    inputs: Inputs
    origins: Mapping[str, Origin]
    fields: Mapping[str, Field]
    outputs: tuple[Field, ...]
    shares: tuple[Share, ...]

    @property
    def label(self) -> str:
        """The name of the operator in error messages."""
        return type(self.operator).__name__

    def parents(self) -> set[int]:
        """Return the numbers of the stages that make its inputs."""
        return {each for each in self.origins.values() if each is not None}

    @cached_property
    def share_of(self) -> dict[str, Share]:
        """The share that makes each column."""
        return {name: share for share in self.shares for name in share.outputs}

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

    def work(self, wanted: Mapping[str, Origin]) -> list[tuple[int, Share]]:
        """Return the shares of stages that make columns, each right after the shares that it needs."""
        shares: dict[tuple[int, Inputs], Share] = {}

        def visit(name: str, origin: Origin) -> None:
            if origin is not None:
                share = self.stages[origin].share_of[name]
                if (origin, share.inputs) not in shares:
                    for each in share.names():
                        visit(each, self.stages[origin].origins[each])
                    shares[origin, share.inputs] = share

        for name, origin in wanted.items():
            visit(name, origin)
        return [(origin, share) for (origin, _), share in shares.items()]

    def share_inputs(self, number: int, share: Share, *, training: bool) -> dict[str, Origin]:
        """Return the inputs and dependencies of a share of a stage, with the source of each."""
        stage = self.stages[number]
        needed = dict.fromkeys(stage.operator.dependencies(fitting=False, training=training))
        return {**needed, **{name: stage.origins[name] for name in share.names()}}

    def data_columns(self, wanted: Mapping[str, Origin], *, training: bool) -> list[str]:
        """Return the distinct columns of the data that are needed to make columns."""
        taken = [self.share_inputs(number, share, training=training) for number, share in self.work(wanted)]
        pairs = [pair for each in [*taken, wanted] for pair in each.items()]
        return list(dict.fromkeys(name for name, origin in pairs if origin is None))

    def describe(self, fitted: Sequence[Mapping[str, Fitted] | None]) -> Plan:
        """Return the plan with the properties that columns get by fitting; None stands for a stage not fitted yet."""
        plan = Plan(self.schema, (), {})
        for stage, learned in zip(self.stages, fitted, strict=True):
            fields = _fields(plan, stage.operator, stage.inputs, stage.origins)
            outputs = tuple(stage.operator.output(stage.inputs, fields))
            if learned is not None:
                outputs = tuple(stage.operator.describe(outputs, learned))
            plan = replace(plan, stages=(*plan.stages, replace(stage, fields=fields, outputs=outputs)))
        return replace(plan, outputs=self.outputs)


@dataclass(frozen=True)
class Lesson:
    """A statistic to learn for a stage."""

    stage: int
    statistic: Statistic


@dataclass(frozen=True)
class Material:
    """What all lessons of a pass over the data share."""

    plan: Plan
    learned: Learned
    dataset: Dataset
    fitting: Fitting
    applying: Applying

    def columns(self, lesson: Lesson) -> list[str]:
        """Return the columns of the data that a lesson reads."""
        return self.plan.data_columns(self.observed_columns(lesson), training=True)

    def observed_columns(self, lesson: Lesson) -> dict[str, Origin]:
        """Return the columns that a lesson observes, and where each comes from."""
        origins = self.plan.stages[lesson.stage].origins
        return {name: origins.get(name) for name in lesson.statistic.columns}


def bind(graph: Node, schema: Schema) -> Plan:
    """Return the plan of a graph for the columns of some data.

    Raises ConfigError if a column is unknown or of a type that its operator cannot take, columns have one name, or an
    operator cannot take combinations.
    """
    binding = _Binding(schema)
    result = binding.columns(graph)
    if any(not isinstance(each, str) for each in result.inputs):
        raise ConfigError("a combination of columns is not a result. Give it to an operator, such as Categorify.")
    return Plan(schema, tuple(binding.stages), result.origins)


@dataclass
class _Binding:
    schema: Schema
    stages: list[Stage] = field(default_factory=list)
    _known: dict[int, Columns] = field(default_factory=dict)

    def columns(self, node: Node) -> Columns:
        """Return the columns of a node. A node that is used twice is bound once."""
        if id(node) not in self._known:
            bound: Mapping[type, Callable[[Any], Columns]] = {
                Source: self._source, Applied: self._applied, Joined: self._joined, Picked: self._picked,
            }  # fmt: skip
            self._known[id(node)] = bound[type(node)](node)
        return self._known[id(node)]

    def _source(self, node: Source) -> Columns:
        names = dict.fromkeys(_names(node.columns))
        _refuse_unusable(names, self.schema)
        _refuse_unknown(names, self.schema.names, of="the data")
        return Columns(node.columns, dict.fromkeys(names))

    def _applied(self, node: Applied) -> Columns:
        given, operator = self.columns(node.parent), node.operator
        label = type(operator).__name__
        combined = [each for each in given.inputs if not isinstance(each, str)]
        if combined and not operator.takes_combinations:
            raise ConfigError(
                f"{label} takes columns, not combinations such as {list(combined[0])}. Give it the columns one by one, "
                "or use HashedCross or Categorify(encode_type='combo')."
            )
        names = dependencies_of(operator)
        _refuse_unusable(names, self.schema)
        _refuse_unknown(names, self.schema.names, of=f"the data, of which {label} needs them")
        for name in names:
            if (origin := given.origins.get(name)) is not None:
                raise ConfigError(
                    f"{label} needs the column {name!r} as it is in the data, but is also given one of that name which "
                    f"{self.stages[origin].label} made. Rename that one."
                )
        stage = stage_operator(Plan(self.schema, tuple(self.stages), {}), operator, given.inputs, given.origins)
        self.stages.append(stage)
        return Columns(tuple(stage.field_of), dict.fromkeys(stage.field_of, len(self.stages) - 1))

    def _joined(self, node: Joined) -> Columns:
        inputs: list[str | tuple[str, ...]] = []
        origins: dict[str, Origin] = {}
        for each in map(self.columns, node.parents):
            for name, origin in each.origins.items():
                if origins.setdefault(name, origin) != origin:
                    first, second = ("the data" if maker is None else self.stages[maker].label
                                     for maker in (origins[name], origin))  # fmt: skip
                    raise ConfigError(
                        f"two columns are called {name!r}: that of {first} and that of "
                        f"{second if second != first else 'another one'}. Give one another name with Rename, or leave "
                        f"it out with `- [{name!r}]`."
                    )
            inputs += each.inputs
        return Columns(tuple(dict.fromkeys(inputs)), origins)

    def _picked(self, node: Picked) -> Columns:
        given, inputs = self.columns(node.parent), node.columns
        if node.others:
            _refuse_unknown(node.columns, list(given.inputs), of="what is left out of")
            inputs = tuple(each for each in given.inputs if each not in node.columns)
        else:
            _refuse_unknown(dict.fromkeys(_names(inputs)), list(given.origins), of="what is picked from")
        return Columns(inputs, {name: given.origins[name] for name in dict.fromkeys(_names(inputs))})


def stage_operator(plan: Plan, operator: Operator, inputs: Inputs, origins: Mapping[str, Origin]) -> Stage:
    """Return an operator as the next stage of a plan.

    Raises ConfigError if it makes a column twice, or cannot take the type of a column.
    """
    fields = _fields(plan, operator, inputs, origins)
    outputs = tuple(operator.output(inputs, fields))
    names = [output.name for output in outputs]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(
            f"{type(operator).__name__} makes more than one column called {', '.join(repeated)}. Give it each column "
            "once."
        )
    return Stage(operator, inputs, origins, fields, outputs, _shares(operator, inputs, fields, outputs))


def _shares(
    operator: Operator, inputs: Inputs, fields: Mapping[str, Field], outputs: tuple[Field, ...]
) -> tuple[Share, ...]:
    """Return a share for each input if its outputs do not depend on the other inputs, or else one share for all."""
    together = (Share(inputs, tuple(each.name for each in outputs)),)
    try:
        alone = [((each,), tuple(operator.output((each,), fields))) for each in inputs]
    except ConfigError:
        return together
    if tuple(field for _, made in alone for field in made) != outputs:
        return together
    return tuple(Share(single, tuple(field.name for field in made)) for single, made in alone)


def dependencies_of(operator: Operator) -> list[str]:
    """Return the distinct columns of the data that an operator may need besides its inputs."""
    uses = [(True, True), (False, True), (False, False)]
    needed = [name for fitting, training in uses for name in operator.dependencies(fitting=fitting, training=training)]
    return list(dict.fromkeys(needed))


def _fields(plan: Plan, operator: Operator, inputs: Inputs, origins: Mapping[str, Origin]) -> dict[str, Field]:
    fields = {name: plan.schema[name] for name in dependencies_of(operator)}
    return fields | {name: plan.field_of(name, origins[name]) for name in _names(inputs)}


def _names(inputs: Inputs) -> Iterator[str]:
    for each in inputs:
        yield from (each,) if isinstance(each, str) else each


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


def evaluate(plan: Plan, learned: Learned, read: Read, wanted: Mapping[str, Origin], applying: Applying) -> Any:
    """Return columns that the data has or a stage makes, of some rows.

    Columns are made one after the other, and each is let go after its last use, so that few are there at a time besides
    the results. ``read`` returns columns of the data by their names, ``wanted`` tells where each column comes from.
    Raises IntegrityError if a stage makes other columns, or of other rows, than it says.
    """
    made: dict[tuple[Origin, str], Column] = {}
    work = [
        (number, share, plan.share_inputs(number, share, training=applying.training))
        for number, share in plan.work(wanted)
    ]
    last = {(origin, name): place for place, (_, _, taken) in enumerate(work) for name, origin in taken.items()}
    kept = {(origin, name) for name, origin in wanted.items()}
    used = last.keys() | kept
    for place, (number, share, taken) in enumerate(work):
        _read_missing(made, taken, read)
        given = {name: made[origin, name] for name, origin in taken.items()}
        for key in [key for key in made if key not in kept and last[key] <= place]:
            del made[key]
        stage = plan.stages[number]
        columns = stage.operator.transform(share.inputs, given, learned[number] or {}, applying)
        if tuple(columns) != share.outputs:
            raise IntegrityError(
                f"{stage.label} made the columns {list(columns)}, not {list(share.outputs)}. Report this as a bug."
            )
        rows = {len(column) for column in (*given.values(), *columns.values())}
        if len(rows) > 1:
            raise IntegrityError(f"{stage.label} made columns of other rows than it was given. Report this as a bug.")
        made |= {(number, name): each for name, each in columns.items() if (number, name) in used}
        del given, columns
    _read_missing(made, wanted, read)
    return {name: made[origin, name] for name, origin in wanted.items()}


def _read_missing(made: dict[tuple[Origin, str], Column], wanted: Mapping[str, Origin], read: Read) -> None:
    missing = [name for name, origin in wanted.items() if origin is None and (origin, name) not in made]
    if missing:
        made |= {(None, name): column for name, column in read(missing).items()}
