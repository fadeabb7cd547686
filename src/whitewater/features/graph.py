"""The graph of a workflow as a user writes it: columns, and the operators that they go through.

::

    numbers = ["I1", "I2"] >> FillMedian() >> LogOp() >> Normalize()
    categories = ["C1", ["C1", "C2"]] >> Categorify(freq_threshold=5)
    features = numbers + categories

Nodes do not change, and each is made of nodes that were there before, so there are no cycles. Which columns there are
is known when a graph meets data: see `whitewater.features.plan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whitewater.errors import ConfigError

Inputs = tuple[str | tuple[str, ...], ...]
"""Columns, and combinations of columns, in order."""
Selection = str | Sequence[str | Sequence[str]]
"""A column, or columns; a sequence among them is a combination of columns."""


class Node:
    """Columns at a place of the graph.

    ``node >> operator`` applies an operator, ``node + other`` joins columns, ``node - names`` leaves some out, and
    ``node[names]`` picks some; ``other`` may be a node or names of columns of the data.
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


def as_node(columns: Node | Selection) -> Node:
    """Return names of columns of the data as a node."""
    return columns if isinstance(columns, Node) else Source(selected(columns))


def selected(columns: Selection) -> Inputs:
    """Return a selection as tuples.

    Raises ConfigError if there is no column, a name is no text, or a combination has fewer than two columns.
    """
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not names:
        raise ConfigError("no columns are selected. Name at least one.")
    return tuple(each if isinstance(each, str) else _combination(each) for each in names)


def _combination(columns: Sequence[str]) -> tuple[str, ...]:
    if not all(isinstance(each, str) for each in columns):
        raise ConfigError(f"{columns!r} is no column. Give a name, or a list of names for a combination of columns.")
    if len(set(columns)) < 2 or len(set(columns)) < len(columns):
        raise ConfigError(f"a combination needs two different columns at least, and {list(columns)} are not.")
    return tuple(columns)
