"""What the command `results` says of models whose differences, or whose areas, are a matter of chance."""

from __future__ import annotations

import json
from typing import Any

from tests.guarantees.running import Clone

METRICS = "results/recsys/cpu/metrics.json"


def told(clone: Clone, *, clicks: int, error: float, **aucs: float) -> str:
    """Return what is said of models with so many test rows of label 1, of 6,000, and areas by set of features."""
    found = {key.replace("_", " "): {"auc": auc, "auc_standard_error": error} for key, auc in aucs.items()}
    metrics: dict[str, Any] = {
        "parts": {"test": {"rows": 6000, "of": 6000, "label_rate": clicks / 6000}},
        "models": {"boosted_trees": found, "logistic_regression": {}},
    }
    (clone / METRICS).write_text(json.dumps(metrics))
    ended = clone.start("python", "-m", "whitewater", "results", PYTHONPATH="src").ended()
    assert ended.status == 0, ended.terminal
    _, _, of_recsys = ended.terminal.partition("recsys on cpu")
    return " ".join(of_recsys.partition("taxi on cpu")[0].split())


def test_differences_within_noise_are_no_losses_and_areas_of_few_rows_are_not_measurable(copied: Clone) -> None:
    noise = told(copied, clicks=3000, error=0.004, all=0.693, plain=0.692, without_year=0.691)
    assert "0.692 ± 0.008 with the plain numbers alone, which is within noise." in noise
    assert "No group of features matters beyond noise" in noise
    assert "Most is lost" not in noise
    loss = told(copied, clicks=3000, error=0.004, all=0.693, plain=0.6, without_year=0.66)
    assert "within noise" not in loss
    assert "The group `year` matters most: without it the AUC is 0.660 ± 0.008." in loss
    for clicks, error in ((3000, 0.2286), (12, 0.004)):
        few = told(copied, clicks=clicks, error=error, all=0.37, without_year=0.2)
        assert f"The AUC is not measurable: of 6,000 later rows {clicks:,} have the label 1" in few
        assert "Most is lost" not in few
