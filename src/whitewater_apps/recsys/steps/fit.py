"""Step `fit`: learns from the training rows what the features need."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from whitewater.features import artifact
from whitewater.features.config import Fit
from whitewater.features.dataset import Dataset
from whitewater.features.fit import fit_workflow
from whitewater.features.log_folder import ROW_ID, open_log
from whitewater.features.schema import column_json
from whitewater.features.transform import Transformation
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Source
from whitewater_apps.recsys.feature_groups import default_features, graph_of


def fit(run: Run[Fit], *, train: Path, workflow: Output, statistics: Output) -> None:
    """Fit the workflow of the configured features on the training rows.

    Raises ConfigError if the features cannot be made of the log's columns; InputError if the log is missing or damaged;
    ResourceError if its row groups do not fit into memory.
    """
    log = open_log(train)
    groups = run.settings.features or default_features(cast("Source", log.source), log.columns)
    dataset = Dataset(train)
    positions = log.time if log.time.unit == "position" else None
    graph = graph_of(groups, log.columns, dataset.schema, positions=positions)
    with run.workers() as workers:
        fitted = fit_workflow(graph, dataset, carry=(log.label, ROW_ID), run=run, workers=workers)
    artifact.write(fitted, workflow)
    write_json(statistics, summary(fitted, [group.name for group in groups], rows=log.rows))
    run.note(rows=log.rows, features=len(fitted.plan.outputs))


def summary(fitted: Transformation, groups: list[str], *, rows: int) -> dict[str, Any]:
    """Return what was learned, in brief: of each group of features its columns, and its operators with their facts."""
    return {"format": 1, "rows": rows, "groups": {name: _group(fitted, name) for name in groups}}


def _group(fitted: Transformation, name: str) -> dict[str, Any]:
    plan = fitted.plan
    outputs = {each: origin for each, origin in plan.outputs.items() if name in plan.field_of(each, origin).tags}
    stages = [
        _stage(type(plan.stages[number].operator).__name__, plan.stages[number].inputs, fitted.learned[number] or {})
        for number in sorted({number for number, _ in plan.work(outputs)})
    ]
    columns = [column_json(plan.field_of(each, origin)) for each, origin in outputs.items()]
    return {"columns": columns, "operators": [stage for stage in stages if stage["operator"] != "AddMetadata"]}


def _stage(operator: str, inputs: Any, learned: Mapping[str, Any]) -> dict[str, Any]:
    return {"operator": operator, "inputs": inputs, "learned": {name: each.facts() for name, each in learned.items()}}


if __name__ == "__main__":
    main(fit)
