"""The groups of features that the configuration names, or else those that suit the source, as a graph.

In those that suit a source, numbers are counts with long tails: they go through ``log1p``, whose smallest value that
has a meaning is 0, and then on one scale. Nulls are filled last, so that neither mean nor deviation counts what was
filled in; that they were null is a feature too. Columns that are not counts but values about a large offset, such as
Unix times, would lose what tells them apart by the logarithm, so they go on one scale as they are; in the generated log
these are known.

The group ``plain`` has the numbers as they came, on one scale: what the others are worth is told against it.

What is learned of labels is safe: target encoding out of fold, counts and means of the past by earlier periods.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from whitewater.errors import ConfigError
from whitewater.features import operators
from whitewater.features.config import Feature, Role
from whitewater.features.log_folder import DAY, LABEL, LogTime
from whitewater.features.operator import Inputs, Node, as_node
from whitewater.features.operators import OPERATORS, AddMetadata
from whitewater.features.plan import bind
from whitewater_apps.recsys.config import Source
from whitewater_apps.recsys.prediction_quality import PLAIN
from whitewater_apps.recsys.synthetic.numbers import kind

if TYPE_CHECKING:
    from whitewater.features.operator import Operator
    from whitewater.features.schema import Schema

Operators = tuple[str | dict[str, dict[str, Any]], ...]
# A name, columns, and the operators that these go through.
Group = tuple[Any, ...]
NOT_FEATURES = ("label", "time", "key")
_WILD = frozenset("*?[")
# Pairs of columns with few values, of the generated log and of Criteo's.
PAIRS = (("C8", "C10"), ("C9", "C17"), ("C6", "C20"))
_PLAIN: Operators = ({"Rename": {"postfix": "_plain"}}, "Normalize")
_LAST: Operators = ("Normalize", {"FillMedian": {"add_binary_cols": True}})
_COUNTS: Operators = ({"Clip": {"min_value": 0}}, "LogOp", *_LAST)
_TARGETS: Operators = ({"TargetEncoding": {"target": LABEL, "kfold": 5, "p_smooth": 20}},)
_EXAMPLE = """\
recsys:
  fit:
    features:
      - name: numbers
        columns: [price, "count_*"]
        operators: [{Clip: {min_value: 0}}, LogOp, Normalize, {FillMissing: {fill_val: 0}}]
      - name: categories
        columns: [user, [country, device]]
        operators: [{Categorify: {freq_threshold: 5}}]"""


def default_features(source: Source, columns: Mapping[str, Role]) -> tuple[Feature, ...]:
    """Return the groups of features of a source's log, given the role of each column.

    Raises ConfigError for files, whose columns mean what only their owner knows.
    """
    if source == "files":
        raise ConfigError("recsys.fit.features is empty, but what suits the columns of files is not known. List "
                          f"groups, such as\n{_EXAMPLE}")  # fmt: skip
    groups = _of_ratings() if source == "movielens" else _of_clicks(source, columns)
    return tuple(
        Feature(name=name, columns=tuple(chosen), operators=tuple(chain)) for name, chosen, *chain in groups if chosen
    )


def _of_clicks(source: Source, columns: Mapping[str, Role]) -> list[Group]:
    numbers = [name for name, role in columns.items() if role == "continuous"]
    categories = [name for name, role in columns.items() if role == "categorical"]
    shifted = [name for name in numbers if source == "generated" and _has_offset(name)]
    counts = [name for name in numbers if name not in shifted]
    pairs = [pair for pair in PAIRS if set(pair) <= set(categories)]
    # The days of Criteo's files are known, but not their times.
    past = {} if source == "generated" else {"time": DAY, "period": 1}
    return [
        (PLAIN, numbers, *_PLAIN),
        ("numeric", counts, *_COUNTS),
        ("offsets", shifted, *_LAST),
        ("categories", categories, {"Categorify": {"freq_threshold": 5}}),
        ("targets", categories, *_TARGETS),
        ("crosses", pairs, *_TARGETS),
        ("past_counts", categories, {"PastCount": past}, "LogOp", "Normalize"),
    ]


def _of_ratings() -> list[Group]:
    ids = ("user", "item")
    return [
        ("users", ["user"], {"Categorify": {"freq_threshold": 5}}, "TagAsUserID"),
        ("items", ["item"], {"Categorify": {"freq_threshold": 5}}, "TagAsItemID"),
        ("genres", ["genres"], "Categorify", "TagAsItemFeatures"),
        (PLAIN, ["year"], *_PLAIN),
        ("year", ["year"], *_LAST, "TagAsItemFeatures"),
        ("targets", ids, *_TARGETS),
        ("past_counts", ids, "PastCount", "LogOp", "Normalize"),
        ("past_means", ids, {"PastMean": {"target": LABEL}}),
    ]


def _has_offset(name: str) -> bool:
    """Say whether a column of the generated log has values about a large offset."""
    return kind(int(name.removeprefix("I")) - 1).form in ("time", "shifted")


def graph_of(
    features: Sequence[Feature], columns: Mapping[str, Role], schema: Schema, *, positions: LogTime | None = None
) -> Node:
    """Return the features of all groups; each column that comes out has its group's name as a tag.

    ``columns`` are the roles of the log's; no glob matches a label, a time or a key. ``positions`` is the log's time
    where that has the positions of rows: then operators whose period is one of seconds are refused.

    Raises ConfigError, naming the group whose columns, operators or parameters are wrong, or the two that make a column
    of one name.
    """
    nodes = []
    made: dict[str, str] = {}
    for feature in features:
        try:
            nodes.append(_node(feature, columns, positions))
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


def _operator(entry: str | dict[str, dict[str, Any]]) -> Operator:
    named = {entry: {}} if isinstance(entry, str) else entry
    if len(named) != 1:
        raise ConfigError(f"{entry} is not one operator. Write each as an entry of its own: - Clip: {{min_value: 0}}.")
    ((name, parameters),) = named.items()
    if name not in OPERATORS:
        raise ConfigError(f"there is no operator {_unknown(name, OPERATORS)} The operators are {', '.join(OPERATORS)}.")
    operator: Operator = getattr(operators, name)(**parameters or {})
    return operator


def _node(feature: Feature, columns: Mapping[str, Role], positions: LogTime | None) -> Node:
    node = as_node(_columns(feature.columns, columns))
    for operator in map(_operator, feature.operators):
        time = getattr(operator, "time", None)
        if positions and time == positions.column and "period" not in operator.model_fields_set:
            raise ConfigError(f"{type(operator).__name__} counts by periods of 86,400 seconds, but the log has no "
                              f"times. Set {{time: day, period: 1}}, which counts by the {positions.period}."
                              )  # fmt: skip
        node = node >> operator
    return node >> AddMetadata(tags=(feature.name,))


def _columns(wanted: Iterable[str | tuple[str, ...]], columns: Mapping[str, Role]) -> Inputs:
    chosen: list[str | tuple[str, ...]] = []
    for each in wanted:
        if isinstance(each, tuple):
            chosen.append(tuple(_check_column(name, columns) for name in each))
        elif _WILD.isdisjoint(each) or each in columns:
            chosen.append(_check_column(each, columns))
        else:
            names = [name for name, role in columns.items() if role not in NOT_FEATURES]
            matching = fnmatch.filter(names, each)
            if not matching:
                raise ConfigError(f"no column matches {each!r}. The columns are {', '.join(names)}.")
            chosen += matching
    return tuple(dict.fromkeys(chosen))


def _check_column(name: str, columns: Mapping[str, Role]) -> str:
    if name not in columns:
        raise ConfigError(f"the log has no column {_unknown(name, columns)} Its columns are {', '.join(columns)}.")
    if columns[name] == "label":
        raise ConfigError(f"{name!r} is the label: a feature of it would tell the answer. Leave it out.")
    return name


def _unknown(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"{name!r}; did you mean {near[0]!r}?" if near else f"{name!r}."
