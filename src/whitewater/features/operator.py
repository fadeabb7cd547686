"""Operators, and the graph of columns that go through them.

A user writes the graph::

    numbers = ["I1", "I2"] >> FillMedian() >> LogOp() >> Normalize()
    categories = ["C1", ["C1", "C2"]] >> Categorify(freq_threshold=5)
    features = numbers + categories

Nodes do not change, and each is made of nodes that were there before, so there are no cycles. Which columns there are
is known when a graph meets data: see `whitewater.features.plan`.

An operator is a frozen model of its parameters, so that it can be written as JSON and compared. What it learns is kept
apart, in `Fitted` objects, one for each `Statistic`: for most operators one for each of their columns, so that columns
are learned beside each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from whitewater.config.base import Section
from whitewater.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from whitewater.engines.choose import Engine
    from whitewater.engines.device import Device
    from whitewater.features.columns.column import Block
    from whitewater.features.schema import Field

Value = str | int | float | None | list[Any]
"""A value of one row: None or NaN is null."""
Row = Mapping[str, Value]
RowFunction = Callable[[Row], dict[str, Value]]
Inputs = tuple[str | tuple[str, ...], ...]
"""Columns, and combinations of columns, in order."""
Selection = str | Sequence[str | Sequence[str]]
"""A column, or columns; a sequence among them is a combination of columns."""


class Node:
    """Columns at some point of the graph.

    ``node >> operator`` applies an operator, ``node + other`` adds columns, ``node - names`` drops some, and
    ``node[names]`` selects some; ``other`` may be a node or names of columns of the data.
    """

    def __add__(self, other: Node | Selection) -> Node:
        return Joined((self, as_node(other)))

    def __radd__(self, other: Selection) -> Node:
        return Joined((as_node(other), self))

    def __sub__(self, names: Selection) -> Node:
        return Picked(self, selected(names), others=True)

    def __getitem__(self, names: Selection) -> Node:
        return Picked(self, selected(names))


@dataclass(frozen=True, eq=False)
class Source(Node):
    """Columns of the data."""

    columns: Inputs


@dataclass(frozen=True, eq=False)
class Joined(Node):
    """The columns of several nodes."""

    parents: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Picked(Node):
    """Some columns of a node, or combinations of them; or all ``others`` but these."""

    parent: Node
    columns: Inputs
    others: bool = False


@dataclass(frozen=True, eq=False)
class Applied(Node):
    """The columns that an operator makes from those of a node."""

    operator: Operator
    parent: Node


def as_node(columns: Node | Selection) -> Node:
    """Return names of columns of the data as a node."""
    return columns if isinstance(columns, Node) else Source(selected(columns))


def selected(columns: Selection) -> Inputs:
    """Return a selection as tuples.

    Raises ConfigError if there is no column, a name is not text, or a combination has fewer than two columns.
    """
    columns = [columns] if isinstance(columns, str) else columns
    inputs = tuple(each if isinstance(each, str) else tuple(each) for each in columns)
    if not inputs:
        raise ConfigError("no columns are selected. Name at least one.")
    for combination in (each for each in inputs if not isinstance(each, str)):
        if not all(isinstance(name, str) for name in combination):
            raise ConfigError(f"{combination} are not names of columns. Give those of columns to combine.")
        if len(combination) < 2 or len(set(combination)) < len(combination):
            raise ConfigError(f"a combination needs two different columns at least, and {combination} are not.")
    return inputs


@dataclass(frozen=True)
class Fitting:
    """The device where a statistic is learned, and the bytes of ``memory`` that it may take."""

    device: Device
    memory: int


@dataclass(frozen=True)
class Applying:
    """How an operator is applied. In ``training``, rows are those of fitting and must not see their own target."""

    device: Device
    training: bool = False
    engine: Engine = "local"


class Fitted:
    """The result of a statistic, which can be stored as JSON and tables."""

    def facts(self) -> dict[str, Any]:
        """Return the small parts as values of JSON: by default all fields."""
        return dict(vars(self))

    def tables(self) -> Mapping[str, pa.Table]:
        """Return the large parts as tables, by the name of their files without suffix."""
        return {}


@dataclass(frozen=True)
class Statistic(ABC):
    """A quantity to learn from some columns; immutable and picklable, because workers observe parts of the data."""

    name: str  # its key in the operator's mapping of what was learned, and in the artifact
    columns: tuple[str, ...]  # of the blocks that it observes: outputs of the operators before, or columns of the data

    @abstractmethod
    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> Any:
        """Return a picklable summary of the blocks of one part of the data, which come once and in order."""

    @abstractmethod
    def combine(self, parts: Iterable[Any], fitting: Fitting) -> Fitted | Statistic:
        """Return the result of the summaries of all parts, in the order of the data, or a statistic for another pass.

        A summary may be changed in place.
        """


class Operator(Section, ABC):
    """Parameters of a feature. ``columns >> Operator(...)`` applies it to columns."""

    def __rrshift__(self, columns: Selection | Node) -> Node:
        return Applied(self, as_node(columns))

    # Whether ``["A", ["B", "C"]]`` means the column A and the combinations of B and C.
    takes_combinations: ClassVar[bool] = False

    def dependencies(self, *, fitting: bool, training: bool) -> tuple[str, ...]:
        """Return the columns of the data, besides the inputs, that fitting, applying or training needs."""
        del fitting, training
        return ()

    @abstractmethod
    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Field]:
        """Return the output columns.

        ``fields`` are those of the inputs and dependencies. Raises ConfigError where the operator cannot take a type.
        """

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Statistic]:
        """Return the statistics that `transform` needs."""
        del inputs, fields
        return ()

    def learned_names(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[str]:
        """Return the names of the `statistics`, without reading any file."""
        return [each.name for each in self.statistics(inputs, fields)]

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Fitted:
        """Return the result of one statistic from its `Fitted.facts` and `Fitted.tables`.

        Raises IntegrityError if this operator does not write such facts or tables.
        """
        raise NotImplementedError(f"{type(self).__name__} learns nothing")

    def describe(self, fields: Sequence[Field], fitted: Mapping[str, Fitted]) -> Sequence[Field]:
        """Return the output columns with the properties that fitting gives them, such as their cardinality."""
        del fitted
        return fields

    @abstractmethod
    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        """Return the output columns, in the order of `output`, for the rows of a block.

        ``inputs`` are all that the operator was given or, where none is mixed with others, some of them. Numbers are
        arrays of the device. By the engine ``dask``, text is `whitewater.features.frames.Text`; lists are on the host.
        """

    @abstractmethod
    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        """Return a function that does to one row what `transform` does in serving."""
