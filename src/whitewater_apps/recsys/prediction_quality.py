"""How good predicted probabilities are: discrimination and calibration."""

from collections.abc import Mapping
from math import hypot
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError

Floats = npt.NDArray[np.floating]
# The sets of features in `metrics.json`: all, the group of raw numbers, and all without a group.
ALL, PLAIN, WITHOUT = "all", "plain", "without "
_BINS = 10
# With fewer rows of a label, or a larger margin of the 95% interval, an area under the curve tells nothing.
FEWEST, WIDEST = 30, 0.1
# Standard errors of a 95% interval.
NORMAL = 1.96


def measured_sets(metrics: Mapping[str, Any], model: str) -> dict[str, Mapping[str, Any]]:
    """Return the qualities of a model by set of features, where there is an area under the curve."""
    sets = metrics["models"].get(model, {})
    return {name: quality for name, quality in sets.items() if quality["auc"] is not None}


def is_measured(quality: Mapping[str, Any], test: Mapping[str, Any]) -> bool:
    """Say whether the area under the curve of a `quality` tells anything, given the ``rows`` and ``label_rate``."""
    positives = round(test["rows"] * (test["label_rate"] or 0))
    error = quality["auc_standard_error"]
    enough = min(positives, test["rows"] - positives) >= FEWEST
    return enough and error is not None and NORMAL * error <= WIDEST


def differ(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Say whether two areas differ by more than the margin of their difference, as if from independent rows."""
    errors = [quality["auc_standard_error"] or 0.0 for quality in (first, second)]
    return bool(abs(first["auc"] - second["auc"]) > NORMAL * hypot(*errors))


def estimate(quality: Mapping[str, Any]) -> str:
    """Return an area under the curve as text, with the margin of its 95% interval if known."""
    error = quality["auc_standard_error"]
    return f"{quality['auc']:.3f}" + (f" ± {NORMAL * error:.3f}" if error is not None else "")


def quality(labels: Floats, predictions: Floats) -> dict[str, Any]:
    """Return the quality of predicted probabilities, (rows,), for labels of 0 and 1, (rows,); at least one row.

    - ``auc``: area under the ROC curve: how likely a positive row is predicted above a negative one, ties counting
      half; None where the rows are all of one label;
    - ``auc_standard_error``: over draws of test rows: E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, "Comparing
      the areas under two or more correlated receiver operating characteristic curves", Biometrics 44, 1988;
    - ``log_loss``: mean of -log of the probability of what happened, in nats;
    - ``calibration``: ten bins of about equally many rows, ascending: ``rows``, the mean ``predicted``, and the share
      of positive labels, ``observed``. Rows of equal predictions are in one bin, so there may be fewer;
    - ``calibration_error``: mean distance of predicted and observed over the bins, weighted by their rows.

    Raises InputError if a prediction is not a number.
    """
    if not np.isfinite(predictions).all():
        raise InputError("the model predicts values that are not finite. Check recsys.fit for features without bounds.")
    from scipy.stats import rankdata

    positive, predictions = labels > 0.5, predictions.astype(np.float64)
    bins = ((rankdata(predictions) - 0.5) * _BINS / len(predictions)).astype(np.int64)
    calibration = [
        {"rows": len(group), "predicted": float(predictions[group].mean()), "observed": float(positive[group].mean())}
        for group in (np.flatnonzero(bins == number) for number in np.unique(bins))
    ]
    auc, error = area_under_curve(positive, predictions)
    # The log loss of a wrong probability of 0 or 1 would be infinite.
    certain = np.clip(predictions, 1e-7, 1 - 1e-7)
    distances = sum(each["rows"] * abs(each["predicted"] - each["observed"]) for each in calibration)
    return {
        "auc": auc,
        "auc_standard_error": error,
        "log_loss": float(-np.mean(np.where(positive, np.log(certain), np.log1p(-certain)))),
        "calibration_error": distances / len(labels),
        "calibration": calibration,
    }


def area_under_curve(positive: npt.NDArray[np.bool_], predictions: Floats) -> tuple[float | None, float | None]:
    """Return the area under the ROC curve and its standard error, or None where there is one label, or one row of it.

    The area is the mean, over positive rows, of the share of negative rows that are predicted below.
    """
    from scipy.stats import rankdata

    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        return None, None
    # SciPy 1.18 gives float32 its ranks as float32, which holds no more than 2^24 of them.
    exact = predictions.astype(np.float64)
    ranks = rankdata(exact)
    below = (ranks[positive] - rankdata(exact[positive])) / negatives
    above = 1 - (ranks[~positive] - rankdata(exact[~positive])) / positives
    auc = float(below.mean())
    if min(positives, negatives) < 2:
        return auc, None
    return auc, float(np.sqrt(below.var(ddof=1) / positives + above.var(ddof=1) / negatives))
