"""The graph of the groups of features that a configuration names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from whitewater.errors import ConfigError
from whitewater.features import operators
from whitewater.features.config import Feature, Role
from whitewater.features.graph import Inputs, Node, as_node
from whitewater.features.operators import OPERATORS, AddMetadata
from whitewater.features.plan import bind

if TYPE_CHECKING:
    from whitewater.features.operator import Operator
    from whitewater.features.schema import Schema

NOT_FEATURES = ("label", "time", "key")
_WILD = frozenset("*?[")


def graph_of(features: Sequence[Feature], columns: Mapping[str, Role], schema: Schema) -> Node:
    """Return the features of all groups; each column that comes out has its group's name as a tag.

    ``columns`` are the roles of the log's; no glob matches a label, a time or a key.

    Raises ConfigError, naming the group whose columns, operators or parameters are wrong, or the two that make a column
    of one name.
    """
    nodes = []
    made: dict[str, str] = {}
    for feature in features:
        try:
            nodes.append(_group(feature, columns))
            names = bind(nodes[-1], schema).outputs
        except ConfigError as error:
            raise ConfigError(f"recsys.fit.features, group {feature.name!r}: {error}") from None
        if twice := [name for name in names if name in made]:
            raise ConfigError(
                f"recsys.fit.features: two columns are called {twice[0]!r}: that of the group {made[twice[0]]!r} and "
                f"that of the group {feature.name!r}. Give one another name with Rename, such as "
                f"{{Rename: {{postfix: _{feature.name}}}}}."
            )
        made |= dict.fromkeys(names, feature.name)
    return reduce(add, nodes)


def refuse_periods(features: Sequence[Feature], time: str, period: str) -> None:
    """Refuse operators that take a column, which has the positions of rows, for times.

    Raises ConfigError if a period is one of seconds, of which there are none.
    """
    for feature in features:
        for operator in _operators(feature):
            if getattr(operator, "time", None) == time and "period" not in operator.model_fields_set:
                raise ConfigError(
                    f"recsys.fit.features, group {feature.name!r}: {type(operator).__name__} counts by periods of "
                    "86,400 seconds, but the log has no times. Set {time: day, period: 1}, which counts by the "
                    f"{period}."
                )


def _operators(feature: Feature) -> list[Operator]:
    found = []
    for each in feature.operators:
        named = {each: {}} if isinstance(each, str) else each
        if len(named) != 1:
            raise ConfigError(
                f"{each} is not one operator. Write each as an entry of its own: - Clip: {{min_value: 0}}."
            )
        found += [_operator(name, parameters or {}) for name, parameters in named.items()]
    return found


def _group(feature: Feature, columns: Mapping[str, Role]) -> Node:
    node = as_node(_columns(feature.columns, columns))
    for operator in _operators(feature):
        node = node >> operator
    return node >> AddMetadata(tags=(feature.name,))


def _operator(name: str, parameters: Mapping[str, Any]) -> Operator:
    if name not in OPERATORS:
        raise ConfigError(f"there is no operator {_unknown(name, OPERATORS)} The operators are {', '.join(OPERATORS)}.")
    operator: type[Operator] = getattr(operators, name)
    return operator(**parameters)


def _columns(wanted: Iterable[str | tuple[str, ...]], columns: Mapping[str, Role]) -> Inputs:
    found: list[str | tuple[str, ...]] = []
    for each in wanted:
        if isinstance(each, tuple):
            found.append(tuple(_known(name, columns) for name in each))
        elif _WILD.isdisjoint(each) or each in columns:
            found.append(_known(each, columns))
        else:
            found += _matching(each, columns)
    return tuple(dict.fromkeys(found))


def _known(name: str, columns: Mapping[str, Role]) -> str:
    if name not in columns:
        raise ConfigError(f"the log has no column {_unknown(name, columns)} Its columns are {', '.join(columns)}.")
    if columns[name] == "label":
        raise ConfigError(f"{name!r} is the label: a feature of it would tell the answer. Leave it out.")
    return name


def _matching(glob: str, columns: Mapping[str, Role]) -> list[str]:
    names = [name for name, role in columns.items() if role not in NOT_FEATURES]
    found = [name for name in names if fnmatchcase(name, glob)]
    if not found:
        raise ConfigError(f"no column matches {glob!r}. The columns are {', '.join(names)}.")
    return found


def _unknown(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"{name!r}; did you mean {near[0]!r}?" if near else f"{name!r}."
