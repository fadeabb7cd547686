"""Step `fit`: fits the feature workflow on the training rows."""

from pathlib import Path
from typing import Any, cast

from whitewater.features import artifact
from whitewater.features.config import Fit
from whitewater.features.dataset import Dataset
from whitewater.features.fit import fit_workflow
from whitewater.features.log_folder import ROW_ID, open_log
from whitewater.features.plan import Plan
from whitewater.features.schema import column_json
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Source
from whitewater_apps.recsys.feature_groups import default_features, graph_of


def fit(run: Run[Fit], *, train: Path, workflow: Output, statistics: Output) -> None:
    """Fit the workflow of the configured features, or of the source's default ones, on the training rows.

    Raises ConfigError if the features cannot be computed from the log's columns; InputError if the log is missing or
    damaged; ResourceError if its row groups do not fit into memory.
    """
    log = open_log(train)
    groups = run.settings.features or default_features(cast("Source", log.source), log.columns)
    dataset = Dataset(train)
    position_time = log.time if log.time.unit == "position" else None
    graph = graph_of(groups, log.columns, dataset.schema, position_time=position_time)
    with run.workers() as workers:
        plan = fit_workflow(graph, dataset, carry=(log.label, ROW_ID), run=run, workers=workers)
    artifact.write(plan, workflow)
    described = {group.name: summary(plan, group.name) for group in groups}
    write_json(statistics, {"format": 1, "rows": log.rows, "groups": described})
    run.note(rows=log.rows, features=len(plan.outputs))


def summary(plan: Plan, group: str) -> dict[str, Any]:
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


if __name__ == "__main__":
    main(fit)
