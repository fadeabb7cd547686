"""How good predicted probabilities are: discrimination and calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
# The sets of features whose quality `metrics.json` has: all, the group of numbers as they came, all without a group.
ALL, PLAIN, WITHOUT = "all", "plain", "without "
_BINS = 10
# A probability of 0 or 1 that is wrong would cost infinitely much.
_NEAREST = 1e-7
# Of fewer rows of a label, or with a wider half of the interval of 95 %, an area under the curve tells nothing.
FEWEST, WIDEST = 30, 0.1
# Standard errors on both sides of an estimate that hold 95 % of a normal distribution.
NORMAL = 1.96


@dataclass(frozen=True)
class CalibrationBin:
    """Rows of about equal predicted probability: how many, the mean prediction, and the share of positive labels."""

    rows: int
    predicted: float
    observed: float


@dataclass(frozen=True)
class Quality:
    """Quality of the predictions of some rows."""

    # Area under the ROC curve: how likely a positive row is predicted above a negative one, ties counting half. None
    # where the rows are all of one label.
    auc: float | None
    # Over draws of test rows: E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, "Comparing the areas under two or
    # more correlated receiver operating characteristic curves", Biometrics 44, 1988.
    auc_standard_error: float | None
    log_loss: float  # mean of -log of the probability of what happened, in nats
    # Expected calibration error: mean distance of predicted and observed over ten bins of about equally many rows,
    # weighted by their rows. Rows of equal predictions are in one bin, so there may be fewer.
    calibration_error: float
    calibration: tuple[CalibrationBin, ...]  # the bins, in ascending order of the prediction


def is_measured(quality: Mapping[str, Any], test: Mapping[str, Any]) -> bool:
    """Say whether the area under the curve of a `Quality` tells anything, given the ``rows`` and ``label_rate``."""
    positives = round(test["rows"] * (test["label_rate"] or 0))
    error = quality["auc_standard_error"]
    enough = min(positives, test["rows"] - positives) >= FEWEST
    return enough and error is not None and NORMAL * error <= WIDEST


def quality(labels: Floats, predictions: Floats) -> Quality:
    """Return the quality of predicted probabilities, (rows,), for labels of 0 and 1, (rows,); at least one row."""
    positive = labels > 0.5
    bins = _calibration(positive, predictions)
    auc, error = area_under_curve(positive, predictions)
    certain = np.clip(predictions.astype(np.float64), _NEAREST, 1 - _NEAREST)
    return Quality(
        auc,
        error,
        float(-np.mean(np.where(positive, np.log(certain), np.log1p(-certain)))),
        sum(each.rows * abs(each.predicted - each.observed) for each in bins) / len(labels),
        bins,
    )


def area_under_curve(positive: npt.NDArray[np.bool_], predictions: Floats) -> tuple[float | None, float | None]:
    """Return the area under the ROC curve and its standard error, or None where there is one label, or one row of it.

    The area is the mean, over positive rows, of the share of negative rows that are predicted below.
    """
    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        return None, None
    ranks = _ranks(predictions)
    below = (ranks[positive] - _ranks(predictions[positive])) / negatives
    above = 1 - (ranks[~positive] - _ranks(predictions[~positive])) / positives
    auc = float(below.mean())
    if min(positives, negatives) < 2:
        return auc, None
    return auc, float(np.sqrt(below.var(ddof=1) / positives + above.var(ddof=1) / negatives))


def _ranks(values: Floats) -> npt.NDArray[np.float64]:
    """Return ranks from 1; equal values have their mean rank."""
    from scipy.stats import rankdata

    # SciPy 1.18 gives float32 its ranks as float32, which holds no more than 2^24 of them.
    ranks: npt.NDArray[np.float64] = rankdata(values.astype(np.float64, copy=False))
    return ranks


def _calibration(positive: npt.NDArray[np.bool_], predictions: Floats) -> tuple[CalibrationBin, ...]:
    bins = ((_ranks(predictions) - 0.5) * _BINS / len(predictions)).astype(np.int64)
    groups = [np.flatnonzero(bins == number) for number in range(_BINS)]
    return tuple(
        CalibrationBin(len(group), float(predictions[group].mean(dtype=np.float64)), float(positive[group].mean()))
        for group in groups
        if len(group)
    )
