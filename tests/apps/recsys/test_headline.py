"""What the recsys application says of its results: only what the files have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from whitewater_apps.recsys.headline import headline

Sets = Mapping[str, float | None]


def write_metrics(
    place: Path, *, trees: Sets | None = None, regression: Sets | None = None, error: float = 0.005, clicks: int = 1800
) -> None:
    models = {"boosted_trees": trees or {}, "logistic_regression": regression or {}}
    found = {
        name: {key: {"auc": auc, "auc_standard_error": None if auc is None else error} for key, auc in sets.items()}
        for name, sets in models.items()
    }
    test = {"rows": 7_273, "label_rate": clicks / 7_273}
    (place / "metrics.json").write_text(json.dumps({"parts": {"test": test}, "models": found}))


def write_drift(place: Path, psi: Mapping[str, float | None], *, drifting: int, days: int = 2) -> None:
    columns = [
        {
            "name": name,
            "verdict": "drift" if number < drifting else "stable",
            "days": [{"psi": None}, {"psi": value}] if days > 1 else [],
        }
        for number, (name, value) in enumerate(psi.items())
    ]
    (place / "drift.json").write_text(json.dumps({"columns": columns, "days": [{}] * days, "period": "day"}))


def test_nothing_is_said_of_files_that_are_not_there(tmp_path: Path) -> None:
    assert headline(tmp_path) == []


def test_the_better_model_is_told_with_its_interval_and_what_it_needs_most(tmp_path: Path) -> None:
    sets = {"all": 0.747, "plain": 0.69, "without targets": 0.701, "without numeric": 0.74}
    write_metrics(tmp_path, trees=sets, regression={"all": 0.72, "without targets": 0.6})
    assert headline(tmp_path) == [
        "Boosted trees reach an AUC of 0.747 ± 0.010 on 7,273 later rows with the features, 0.690 ± 0.010 with the "
        "plain numbers alone.",
        "The group `targets` matters most: without it the AUC is 0.701 ± 0.010.",
    ]


def test_without_groups_to_compare_only_the_model_is_told(tmp_path: Path) -> None:
    write_metrics(tmp_path, regression={"all": 0.72}, trees={"all": 0.71})
    (sentence,) = headline(tmp_path)
    assert sentence == "A logistic regression reaches an AUC of 0.720 ± 0.010 on 7,273 later rows with the features."


def test_groups_that_are_not_missed_are_told_as_such(tmp_path: Path) -> None:
    write_metrics(tmp_path, trees={"all": 0.7, "without a": 0.7, "without b": 0.71})
    assert headline(tmp_path)[1:] == ["No group of features is needed: the AUC is no lower without any one of them."]


def test_an_auc_that_does_not_exist_is_told_as_such(tmp_path: Path) -> None:
    write_metrics(tmp_path, trees={"all": None, "plain": None})
    assert headline(tmp_path) == ["There is no AUC: the 7,273 test rows are all of one label."]


@pytest.mark.parametrize(
    ("psi", "drifting", "days", "said"),
    [
        ({"C7": 0.3, "C8": 0.9, "I1": 2.0}, 2, 2, "2 of 3 columns drift from the first day, C8 the most (PSI 0.90)."),
        ({"C7": 0.3, "I1": 0.0}, 1, 2, "1 of 2 columns drifts from the first day, C7 the most (PSI 0.30)."),
        ({"C7": None, "I1": 0.0}, 1, 2, "1 of 2 columns drifts from the first day."),
        ({"C7": 0.3, "I1": 0.0}, 0, 2, "None of 2 columns drifts from the first day."),
        ({"C7": 0.3}, 0, 1, "All rows are of one day, so there is no drift to report."),
    ],
    ids=["two", "one", "by nulls", "none", "one day"],
)
def test_the_columns_that_drift_are_counted(
    tmp_path: Path, psi: Mapping[str, float | None], drifting: int, days: int, said: str
) -> None:
    write_drift(tmp_path, psi, drifting=drifting, days=days)
    assert headline(tmp_path) == [said]
