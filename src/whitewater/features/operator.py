"""Operators, and the graph of columns they are applied to; see the example in `whitewater.features.workflow`.

A graph is immutable, and `whitewater.features.plan` binds it to the columns of a dataset. An operator is a frozen model
of its parameters. What it learns is kept apart, in a `Fitted` for each `Statistic`, usually one per column.
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
    """Columns or combinations selected from a node; with ``is_complement``, all others."""

    parent: Node
    columns: Inputs
    is_complement: bool = False


@dataclass(frozen=True, eq=False)
class OperatorCall(Node):
    """The columns that an operator computes from those of a node."""

    operator: Operator
    parent: Node


def as_node(columns: Node | Selection) -> Node:
    """Return a node; names become columns of the data."""
    return columns if isinstance(columns, Node) else Source(as_inputs(columns))


def as_inputs(columns: Selection) -> Inputs:
    """Return a selection as tuples; raises ConfigError if it is empty or a combination is invalid."""
    columns = [columns] if isinstance(columns, str) else columns
    inputs = tuple(entry if isinstance(entry, str) else tuple(entry) for entry in columns)
    if not inputs:
        raise ConfigError("no columns are selected. Name at least one.")
    for combination in (entry for entry in inputs if not isinstance(entry, str)):
        has_only_names = all(isinstance(name, str) for name in combination)
        if not has_only_names or len(combination) < 2 or len(set(combination)) < len(combination):
            raise ConfigError(f"a combination is of two or more different names, unlike {combination}. Name columns.")
    return inputs


@dataclass(frozen=True)
class Mode:
    """How statistics are learned and operators are applied."""

    device: Device
    training: bool = False  # the rows are those fitted on, and must not see their own target
    engine: Engine = "local"
    memory: int = 0  # bytes that a statistic may use


class Fitted:
    """The result of a statistic, which can be stored as JSON and tables."""

    def facts(self) -> dict[str, Any]:
        """Return the small parts as JSON values: all fields by default."""
        return dict(vars(self))

    def tables(self) -> Mapping[str, pa.Table]:
        """Return the large parts as tables, keyed by file name without suffix."""
        return {}


@dataclass(frozen=True)
class Statistic(ABC):
    """A quantity to learn from some columns; immutable and picklable, because workers observe spans of the data."""

    name: str  # its key among the statistics of the operator
    columns: tuple[str, ...]  # inputs of the operator or columns of the data to observe

    @abstractmethod
    def observe(self, blocks: Iterator[Block], mode: Mode) -> Any:
        """Return a picklable summary of a span of the data, given its blocks in order."""

    @abstractmethod
    def combine(self, summaries: Iterable[Any], mode: Mode) -> Fitted | Statistic:
        """Return the result, or a statistic for another pass. Summaries of spans are in order, and may be modified."""


class Operator(Section, ABC):
    """A feature computation and its parameters; ``columns >> Operator(...)`` applies it to columns."""

    def __rrshift__(self, columns: Selection | Node) -> Node:
        return OperatorCall(self, as_node(columns))

    # Whether it accepts combinations, as in ``["A", ["B", "C"]]``.
    takes_combinations: ClassVar[bool] = False
    # Whether each output depends on all inputs instead of one.
    needs_all_inputs: ClassVar[bool] = False
    # The class of the results of its statistics.
    learned: ClassVar[type[Any]] = Fitted

    def dependencies(self, *, fitting: bool, training: bool) -> tuple[str, ...]:
        """Return the data columns needed besides the inputs. Fitting and training together need all of them."""
        return ()

    @abstractmethod
    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Field]:
        """Return the output columns; ``fields`` has inputs and dependencies. Raises ConfigError for unusable types."""

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Statistic]:
        """Return the statistics that `transform` needs."""
        return ()

    def learned_names(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[str]:
        """Return the names of the `statistics`, without reading a file."""
        return [statistic.name for statistic in self.statistics(inputs, fields)]

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Fitted:
        """Return the result of a statistic from `Fitted.facts` and `Fitted.tables`; any error means a damaged file."""
        return self.learned(**facts)

    def describe(self, fields: Sequence[Field], fitted: Mapping[str, Fitted]) -> Sequence[Field]:
        """Return the output columns with properties known after the fit, such as ``cardinality``."""
        return fields

    @abstractmethod
    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: Mode) -> Block:
        """Return the output columns for a block, in the order of `output`.

        ``inputs`` may be a part of the inputs, unless the operator `needs_all_inputs`. Numbers are on the device. With
        the engine ``dask``, text is `whitewater.features.columns.column.Text`, and lists are on the host.
        """

    @abstractmethod
    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        """Return a function that does for one row what `transform` does in serving."""
