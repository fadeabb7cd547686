"""What a run of the recsys application found, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from math import hypot
from pathlib import Path
from typing import Any

from whitewater.io.store import read_json
from whitewater.manifest import is_of_last_run
from whitewater_apps.recsys.prediction_quality import ALL, NORMAL, PLAIN, WITHOUT, is_measured

_MODELS = {"logistic_regression": "A logistic regression reaches", "boosted_trees": "Boosted trees reach"}

Qualities = Mapping[str, Mapping[str, Any]]


def headline(results: Path) -> list[str]:
    """Return what the results of one device, such as ``results/recsys/cpu``, say, one sentence a line.

    Nothing is said of missing files and earlier runs.
    """
    sentences: list[str] = []
    for name, tell in (("metrics.json", _worth), ("drift.json", _drift)):
        path = results / name
        if path.exists() and is_of_last_run(path):
            sentences += tell(read_json(path))
    return sentences


def _worth(metrics: Mapping[str, Any]) -> list[str]:
    """Say how good the better model is, and without which features it is worse."""
    test = metrics["parts"]["test"]
    rows = test["rows"]
    models = {name: _measured(metrics["models"].get(name, {})) for name in _MODELS}
    measured = {name: sets for name, sets in models.items() if ALL in sets}
    if not measured:
        return [f"There is no AUC: the {rows:,} test rows are all of one label."]
    best = max(measured, key=lambda name: measured[name][ALL]["auc"])
    sets = measured[best]
    if not is_measured(sets[ALL], test):
        clicks = round(rows * test["label_rate"])
        return [f"The AUC is not measurable: of {rows:,} later rows {clicks:,} have the label 1, which makes it "
                f"{_estimate(sets[ALL])}."]  # fmt: skip
    plain = f", {_estimate(sets[PLAIN])} with the plain numbers alone" if PLAIN in sets else ""
    if plain and abs(_loss_without(sets, PLAIN)) <= _noise(sets, PLAIN):
        plain += ", which is within noise"
    first = f"{_MODELS[best]} an AUC of {_estimate(sets[ALL])} on {rows:,} later rows with the features{plain}."
    return [first, *_loss(sets)]


def _estimate(quality: Mapping[str, Any]) -> str:
    """Return an area under the curve with half its interval of 95 %."""
    error = quality["auc_standard_error"]
    return f"{quality['auc']:.3f}" + (f" ± {NORMAL * error:.3f}" if error is not None else "")


def _measured(sets: Qualities) -> dict[str, Mapping[str, Any]]:
    return {key: each for key, each in sets.items() if each["auc"] is not None}


def _loss(sets: Qualities) -> list[str]:
    """Say without which group the most is lost."""
    without = {key.removeprefix(WITHOUT): each for key, each in sets.items() if key.startswith(WITHOUT)}
    if not without:
        return []
    group = min(without, key=lambda name: (without[name]["auc"], name))
    key = WITHOUT + group
    if _loss_without(sets, key) <= 0:
        return ["No group of features is needed: the AUC is no lower without any one of them."]
    if _loss_without(sets, key) <= _noise(sets, key):
        return [f"No group of features matters beyond noise: without `{group}`, which matters most, the AUC is "
                f"{_estimate(sets[key])}."]  # fmt: skip
    return [f"The group `{group}` matters most: without it the AUC is {_estimate(without[group])}."]


def _loss_without(sets: Qualities, key: str) -> float:
    return float(sets[ALL]["auc"] - sets[key]["auc"])


def _noise(sets: Qualities, key: str) -> float:
    """Return the half interval of a difference, as if rows were not shared: less may be a matter of the rows."""
    return NORMAL * hypot(*(sets[name]["auc_standard_error"] or 0.0 for name in (ALL, key)))


def _drift(found: Mapping[str, Any]) -> list[str]:
    columns, period = found["columns"], found["period"]
    if not columns:
        return []
    if len(found["days"]) < 2:
        return [f"All rows are of one {period}, so that there is no drift to tell."]
    drifting = [each for each in columns if each["verdict"] == "drift"]
    number = f"{len(columns):,} column{'s' if len(columns) > 1 else ''}"
    if not drifting:
        return [f"None of {number} drifts from the first {period}."]
    most = max(drifting, key=_greatest)
    told = f", {most['name']} the most (PSI {_greatest(most):.2f})" if _greatest(most) > 0 else ""
    return [f"{len(drifting):,} of {number} drift{'s' if len(drifting) == 1 else ''} from the first {period}{told}."]


def _greatest(column: Mapping[str, Any]) -> float:
    """Return the greatest population stability index of a column, 0 where there is none."""
    return max((each["psi"] for each in column["days"] if each["psi"] is not None), default=0.0)
