"""Operators, and the graph of columns that go through them, as in the example of `whitewater.features.workflow`.

Nodes are immutable and built from existing nodes, so a graph has no cycles. Its columns are known only once it is bound
to data: see `whitewater.features.plan`.

An operator is a frozen model of its parameters, so that it can be written as JSON and compared. What it learns is kept
separately, in one `Fitted` object for each `Statistic`. Most operators have one statistic per column, so that columns
are learned in parallel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from whitewater.config.base import Section
from whitewater.engines.config import Engine
from whitewater.engines.device import Device
from whitewater.errors import ConfigError
from whitewater.features.columns.column import Block
from whitewater.features.schema import Field

Value = str | int | float | None | list[Any]
"""A value of one row: None or NaN is null."""
Row = Mapping[str, Value]
RowFunction = Callable[[Row], dict[str, Value]]
Inputs = tuple[str | tuple[str, ...], ...]
"""Columns and combinations of columns, in order."""
Selection = str | Sequence[str | Sequence[str]]
"""A column or a sequence of columns, in which a nested sequence is a combination of columns."""


def columns_in(inputs: Inputs) -> tuple[str, ...]:
    """Return the columns among inputs and in their combinations, which may repeat."""
    return tuple(name for entry in inputs for name in ((entry,) if isinstance(entry, str) else entry))


class Node:
    """Columns at some point in the graph.

    ``node >> operator`` applies an operator, ``node + other`` adds columns, ``node - names`` drops columns, and
    ``node[names]`` selects columns; ``other`` is a node or names of columns of the data.
    """

    def __add__(self, other: Node | Selection) -> Node:
        return Concatenation((self, as_node(other)))

    def __radd__(self, other: Selection) -> Node:
        return Concatenation((as_node(other), self))

    def __sub__(self, names: Selection) -> Node:
        return Subset(self, as_inputs(names), is_complement=True)

    def __getitem__(self, names: Selection) -> Node:
        return Subset(self, as_inputs(names))


@dataclass(frozen=True, eq=False)
class Source(Node):
    """Columns of the data."""

    columns: Inputs


@dataclass(frozen=True, eq=False)
class Concatenation(Node):
    """The columns of several nodes."""

    parents: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Subset(Node):
    """Columns selected from a node, or combinations of them; with ``is_complement``, all columns except these."""

    parent: Node
    columns: Inputs
    is_complement: bool = False


@dataclass(frozen=True, eq=False)
class OperatorCall(Node):
    """The columns that an operator computes from those of a node."""

    operator: Operator
    parent: Node


def as_node(columns: Node | Selection) -> Node:
    """Return a node as it is, and names of columns of the data as a node."""
    return columns if isinstance(columns, Node) else Source(as_inputs(columns))


def as_inputs(columns: Selection) -> Inputs:
    """Return a selection as tuples.

    Raises ConfigError if it is empty, or a combination is not of two or more different names.
    """
    columns = [columns] if isinstance(columns, str) else columns
    inputs = tuple(entry if isinstance(entry, str) else tuple(entry) for entry in columns)
    if not inputs:
        raise ConfigError("no columns are selected. Name at least one.")
    for combination in (entry for entry in inputs if not isinstance(entry, str)):
        is_of_names = all(isinstance(name, str) for name in combination)
        if not is_of_names or len(combination) < 2 or len(set(combination)) < len(combination):
            raise ConfigError(f"a combination is of two or more different names, unlike {combination}. Name columns.")
    return inputs


@dataclass(frozen=True)
class Mode:
    """How statistics are learned, in so many bytes of ``memory``, and operators are applied.

    In ``training``, the rows are those fitted on, and must not see their own target.
    """

    device: Device
    training: bool = False
    engine: Engine = "local"
    memory: int = 0


class Fitted:
    """What a statistic learned, in a form that can be stored as JSON and tables."""

    def facts(self) -> dict[str, Any]:
        """Return the small parts as JSON values: by default all fields."""
        return dict(vars(self))

    def tables(self) -> Mapping[str, pa.Table]:
        """Return the large parts as tables, keyed by file name without suffix."""
        return {}


@dataclass(frozen=True)
class Statistic(ABC):
    """A quantity to learn from some columns; immutable and picklable, because workers observe spans of the data."""

    name: str  # its key among the operator's fitted statistics and in the artifact
    columns: tuple[str, ...]  # the columns that it observes: inputs of the operator, or columns of the data

    @abstractmethod
    def observe(self, blocks: Iterator[Block], mode: Mode) -> Any:
        """Return a picklable summary of one span of the data, whose blocks come once and in order."""

    @abstractmethod
    def combine(self, summaries: Iterable[Any], mode: Mode) -> Fitted | Statistic:
        """Return the result for all spans, given their summaries, which may change, or what needs another pass."""


class Operator(Section, ABC):
    """A feature computation and its parameters; ``columns >> Operator(...)`` applies it to columns."""

    def __rrshift__(self, columns: Selection | Node) -> Node:
        return OperatorCall(self, as_node(columns))

    # Whether it takes ``["A", ["B", "C"]]``: the column A, and the combination of B and C.
    takes_combinations: ClassVar[bool] = False
    # Whether outputs depend on all inputs, and not each on one of them alone; then `output` is given all at once.
    needs_all_inputs: ClassVar[bool] = False
    # The class of what its statistics learn.
    learned: ClassVar[type[Any]] = Fitted

    def dependencies(self, *, fitting: bool, training: bool) -> tuple[str, ...]:
        """Return the data columns needed besides the inputs: for fitting, for training, or else for serving.

        Those for fitting and training hold all others.
        """
        return ()

    @abstractmethod
    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Field]:
        """Return the output columns.

        ``fields`` describes the inputs and dependencies. Raises ConfigError if the operator cannot take their types.
        """

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Statistic]:
        """Return the statistics that `transform` needs."""
        return ()

    def learned_names(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[str]:
        """Return the names of the `statistics`, without reading any file."""
        return [statistic.name for statistic in self.statistics(inputs, fields)]

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Fitted:
        """Return the result of a statistic, given its `Fitted.facts` and `Fitted.tables`.

        By default that is `learned`, made of the facts. Whatever error it raises is told as that of a damaged artifact.
        """
        return self.learned(**facts)

    def describe(self, fields: Sequence[Field], fitted: Mapping[str, Fitted]) -> Sequence[Field]:
        """Return the output columns with the properties that are known after the fit, such as their cardinality."""
        return fields

    @abstractmethod
    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: Mode) -> Block:
        """Return the output columns, in the order of `output`, for the rows of a block.

        ``inputs`` may be only some of the operator's inputs, unless it `needs_all_inputs`. Numbers are on the device.
        With the engine ``dask``, text is `whitewater.features.columns.column.Text`, and lists are on the host.
        """

    @abstractmethod
    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        """Return a function that computes for one row what `transform` computes in serving."""
