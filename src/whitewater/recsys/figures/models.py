"""The models and sets of features of `metrics.json`, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from whitewater import style


@dataclass(frozen=True)
class Look:
    """How a model is drawn: what it is called, its colour, and its mark."""

    name: str
    colour: str
    mark: str


LOOKS = {
    "logistic_regression": Look("logistic regression", style.BLUE, "o"),
    "boosted_trees": Look("boosted trees", style.VERMILION, "s"),
}
ALL, PLAIN, WITHOUT = "all", "plain", "without "


def test_rows(metrics: Mapping[str, Any]) -> str:
    """Return how many rows the models were tried on, and of how many these were drawn where there were more."""
    test = metrics["parts"]["test"]
    drawn = f", drawn from {style.count(test['of'])}" if test["of"] > test["rows"] else ""
    rate = f", {style.percent(test['label_rate'])} of which have the label 1" if test["label_rate"] is not None else ""
    return f"{style.count(test['rows'])} test rows{drawn}{rate}"
