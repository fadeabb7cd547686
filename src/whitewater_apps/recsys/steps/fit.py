"""Step `fit`: fits the workflow of the configured feature groups, or of the source's default ones, on training rows.

The default groups treat numbers as counts with long tails: clip at 0, ``log1p``, normalize. Nulls are filled last, so
that they affect neither mean nor standard deviation. Values around a large offset, such as Unix times in the generated
log, are only normalized, because the logarithm would erase their differences. The group ``plain`` has the raw numbers,
only normalized, as a baseline. No feature leaks labels: target encoding is out of fold, and past counts and means use
earlier periods only.
"""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, cast

from whitewater.errors import ConfigError, did_you_mean
from whitewater.features import artifact, operators
from whitewater.features.config import Feature, Fit, Role
from whitewater.features.dataset import Dataset
from whitewater.features.fit import fit_workflow
from whitewater.features.log_folder import DAY, LABEL, ROW_ID, LogTime, open_log
from whitewater.features.operator import Inputs, Node, Operator, as_node
from whitewater.features.operators import OPERATORS, AddMetadata
from whitewater.features.plan import Plan, bind
from whitewater.features.schema import Schema, column_json
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Source
from whitewater_apps.recsys.prediction_quality import PLAIN
from whitewater_apps.recsys.synthetic import kind

Operators = tuple[str | dict[str, dict[str, Any]], ...]
Group = tuple[Any, ...]  # its name, its columns, and their operators
# Pairs of columns with few distinct values, in the generated log and in Criteo's.
PAIRS = (("C8", "C10"), ("C9", "C17"), ("C6", "C20"))
_FREQUENT = {"Categorify": {"freq_threshold": 5}}
_PLAIN: Operators = ({"Rename": {"postfix": "_plain"}}, "Normalize")
_SCALE_AND_FILL: Operators = ("Normalize", {"FillMedian": {"add_binary_cols": True}})
_COUNTS: Operators = ({"Clip": {"min_value": 0}}, "LogOp", *_SCALE_AND_FILL)
_TARGETS: Operators = ({"TargetEncoding": {"target": LABEL, "kfold": 5, "p_smooth": 20}},)
_RATINGS: list[Group] = [
    ("users", ["user"], _FREQUENT, "TagAsUserID"),
    ("items", ["item"], _FREQUENT, "TagAsItemID"),
    ("genres", ["genres"], "Categorify", "TagAsItemFeatures"),
    (PLAIN, ["year"], *_PLAIN),
    ("year", ["year"], *_SCALE_AND_FILL, "TagAsItemFeatures"),
    ("targets", ["user", "item"], *_TARGETS),
    ("past_counts", ["user", "item"], "PastCount", "LogOp", "Normalize"),
    ("past_means", ["user", "item"], {"PastMean": {"target": LABEL}}),
]
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


def fit(run: Run[Fit], *, train: Path, workflow: Output, statistics: Output) -> None:
    """Fit the workflow of the configured features, or of the source's default ones, on the training rows.

    Raises ConfigError if the features cannot be computed from the log's columns; InputError if the log is missing or
    damaged; ResourceError if its row groups do not fit into memory.
    """
    log = open_log(train)
    groups = run.settings.features or default_features(cast("Source", log.source), log.columns)
    dataset = Dataset(train)
    position_time = log.time if log.time.unit == "position" else None
    graph = build_graph(groups, log.columns, dataset.schema, position_time=position_time)
    with run.workers() as workers:
        plan = fit_workflow(graph, dataset, carry=(log.label, ROW_ID), run=run, workers=workers)
    artifact.write(plan, workflow)
    summaries = {group.name: summarize_group(plan, group.name) for group in groups}
    write_json(statistics, {"format": 1, "rows": log.rows, "groups": summaries})
    run.note(rows=log.rows, features=len(plan.outputs))


def summarize_group(plan: Plan, group: str) -> dict[str, Any]:
    """Return the columns of a feature group, and its operators with what they learned."""
    outputs = {name: origin for name, origin in plan.outputs.items() if group in plan.field_of(name, origin).tags}
    operators = []
    for number in sorted({number for number, _ in plan.evaluation_order(outputs)}):
        stage = plan.stages[number]
        facts = {name: fitted.facts() for name, fitted in (stage.learned or {}).items()}
        if stage.label != "AddMetadata":
            operators.append({"operator": stage.label, "inputs": stage.inputs, "learned": facts})
    columns = [column_json(plan.field_of(name, origin)) for name, origin in outputs.items()]
    return {"columns": columns, "operators": operators}


def default_features(source: Source, columns: Mapping[str, Role]) -> tuple[Feature, ...]:
    """Return the default feature groups for the log of a source; for files, only their owner knows, so ConfigError."""
    if source == "files":
        raise ConfigError("recsys.fit.features is empty, and there are no default features for files. List groups, "
                          f"such as\n{_EXAMPLE}")  # fmt: skip
    groups = _RATINGS if source == "movielens" else _click_groups(source, columns)
    return tuple(
        Feature(name=name, columns=tuple(inputs), operators=tuple(chain)) for name, inputs, *chain in groups if inputs
    )


def _click_groups(source: Source, columns: Mapping[str, Role]) -> list[Group]:
    numbers = [name for name, role in columns.items() if role == "continuous"]
    categories = [name for name, role in columns.items() if role == "categorical"]
    forms = {name: kind(int(name.removeprefix("I")) - 1).form for name in numbers if source == "generated"}
    offsets = [name for name, form in forms.items() if form in ("time", "shifted")]
    counts = [name for name in numbers if name not in offsets]
    pairs = [pair for pair in PAIRS if set(pair) <= set(categories)]
    # Criteo's files have days, but no times.
    past = {} if source == "generated" else {"time": DAY, "period": 1}
    return [
        (PLAIN, numbers, *_PLAIN),
        ("numeric", counts, *_COUNTS),
        ("offsets", offsets, *_SCALE_AND_FILL),
        ("categories", categories, _FREQUENT),
        ("targets", categories, *_TARGETS),
        ("crosses", pairs, *_TARGETS),
        ("past_counts", categories, {"PastCount": past}, "LogOp", "Normalize"),
    ]


def build_graph(
    features: Sequence[Feature], columns: Mapping[str, Role], schema: Schema, *, position_time: LogTime | None = None
) -> Node:
    """Return the features of all groups as one graph; every output column is tagged with the name of its group.

    ``columns`` maps the log's columns to their roles; globs never match a label, time or key. ``position_time`` is the
    log's time column if it holds row positions rather than seconds: operators that count by seconds are then refused.
    Raises ConfigError, naming the group that is wrong, or the two that make a column of the same name.
    """
    nodes = []
    group_of: dict[str, str] = {}
    for feature in features:
        try:
            node = as_node(_inputs(feature.columns, columns))
            for entry in feature.operators:
                node = node >> _operator(entry, position_time)
            nodes.append(node >> AddMetadata(tags=(feature.name,)))
            names = bind(nodes[-1], schema).outputs
        except ConfigError as error:
            raise ConfigError(f"recsys.fit.features, group {feature.name!r}: {error}") from None
        for name in names:
            if name in group_of:
                raise ConfigError(f"recsys.fit.features: two columns are called {name!r}: that of the group "
                                  f"{group_of[name]!r} and that of the group {feature.name!r}. Rename one of them, "
                                  f"such as with {{Rename: {{postfix: _{feature.name}}}}}.")  # fmt: skip
        group_of |= dict.fromkeys(names, feature.name)
    return reduce(add, nodes)


def _operator(entry: str | dict[str, dict[str, Any]], position_time: LogTime | None) -> Operator:
    parameters_by_name = {entry: {}} if isinstance(entry, str) else entry
    if len(parameters_by_name) != 1:
        raise ConfigError(f"{entry} is not one operator. List operators one by one: - Clip: {{min_value: 0}}.")
    ((name, parameters),) = parameters_by_name.items()
    if name not in OPERATORS:
        raise ConfigError(f"there is no operator {name!r}{did_you_mean(name, OPERATORS) or '.'} The operators are "
                          f"{', '.join(OPERATORS)}.")  # fmt: skip
    operator: Operator = getattr(operators, name)(**parameters)
    time = getattr(operator, "time", None)
    if position_time and time == position_time.column and "period" not in operator.model_fields_set:
        raise ConfigError(f"{name} counts by periods of 86,400 seconds, but the log has no times. Set {{time: day, "
                          f"period: 1}} to count by {position_time.period}.")  # fmt: skip
    return operator


def _inputs(entries: Iterable[str | tuple[str, ...]], columns: Mapping[str, Role]) -> Inputs:
    inputs: list[str | tuple[str, ...]] = []
    features = [name for name, role in columns.items() if role not in ("label", "time", "key")]
    for entry in entries:
        if LABEL in ([entry] if isinstance(entry, str) else entry):
            raise ConfigError(f"{LABEL!r} is the label: a feature of it would leak the answer. Leave it out.")
        if isinstance(entry, str) and entry not in columns:
            matches = fnmatch.filter(features, entry)
            if not matches:
                raise ConfigError(f"no column matches {entry!r}{did_you_mean(entry, features) or '.'} The columns are "
                                  f"{', '.join(features)}.")  # fmt: skip
            inputs += matches
        else:
            inputs.append(entry)
    return tuple(dict.fromkeys(inputs))


if __name__ == "__main__":
    main(fit)
