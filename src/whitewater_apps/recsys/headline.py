"""The results of a run of the recsys application, in sentences."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whitewater.figures import words
from whitewater.io.store import read_json
from whitewater.manifest import is_of_last_run
from whitewater_apps.recsys.prediction_quality import ALL, PLAIN, WITHOUT, differ, estimate, is_measured, measured_sets

_MODELS = {"logistic_regression": "A logistic regression reaches", "boosted_trees": "Boosted trees reach"}


def headline(results: Path) -> list[str]:
    """Return the results of the last run in a folder such as ``results/recsys/cpu`` as sentences."""
    summaries = {results / "metrics.json": _summarize_metrics, results / "drift.json": _summarize_drift}
    paths = [path for path in summaries if path.exists() and is_of_last_run(path)]
    return [sentence for path in paths for sentence in summaries[path](read_json(path))]


def _summarize_metrics(metrics: Mapping[str, Any]) -> list[str]:
    """Say how good the best model is, and which group of features it needs most."""
    test = metrics["parts"]["test"]
    rows = test["rows"]
    models = {name: sets for name in _MODELS if ALL in (sets := measured_sets(metrics, name))}
    if not models:
        return [f"There is no AUC: the {rows:,} test rows are all of one label."]
    best = max(models, key=lambda name: models[name][ALL]["auc"])
    sets, everything = models[best], models[best][ALL]
    if not is_measured(everything, test):
        clicks = round(rows * test["label_rate"])
        return [f"The AUC is not measurable: of {rows:,} later rows {clicks:,} have the label 1, which makes it "
                f"{estimate(everything)}."]  # fmt: skip
    plain = ""
    if PLAIN in sets:
        noise = "" if differ(everything, sets[PLAIN]) else ", which is within noise"
        plain = f", {estimate(sets[PLAIN])} with the plain numbers alone{noise}"
    sentences = [f"{_MODELS[best]} an AUC of {estimate(everything)} on {rows:,} later rows with the features{plain}."]
    without = {key.removeprefix(WITHOUT): each for key, each in sets.items() if key.startswith(WITHOUT)}
    if without:
        group = min(without, key=lambda name: (without[name]["auc"], name))
        area = estimate(without[group])
        if without[group]["auc"] >= everything["auc"]:
            sentences.append("No group of features is needed: the AUC is no lower without any one of them.")
        elif differ(everything, without[group]):
            sentences.append(f"The group `{group}` matters most: without it the AUC is {area}.")
        else:
            sentences.append(f"No group of features matters beyond noise: without `{group}`, which matters most, the "
                             f"AUC is {area}.")  # fmt: skip
    return sentences


def _summarize_drift(report: Mapping[str, Any]) -> list[str]:
    columns, period = report["columns"], report["period"]
    if not columns:
        return []
    if len(report["days"]) < 2:
        return [f"All rows are of one {period}, so there is no drift to report."]
    drifting = [each for each in columns if each["verdict"] == "drift"]
    number = words.pluralize(len(columns), "column")
    if not drifting:
        return [f"None of {number} drifts from the first {period}."]
    most = max(drifting, key=greatest_psi)
    example = f", {most['name']} the most (PSI {greatest_psi(most):.2f})" if greatest_psi(most) > 0 else ""
    return [f"{len(drifting):,} of {number} drift{'s' if len(drifting) == 1 else ''} from the first {period}{example}."]


def greatest_psi(column: Mapping[str, Any]) -> float:
    """Return the largest population stability index of a column, or 0."""
    return max((each["psi"] for each in column["days"] if each["psi"] is not None), default=0.0)
