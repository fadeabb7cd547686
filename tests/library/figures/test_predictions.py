"""Predictions beside what was observed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from whitewater.figures.shapes import tenths


def test_calibration_is_the_mean_observed_in_each_tenth_of_the_predictions() -> None:
    random = np.random.default_rng(0)
    rows = pd.DataFrame({"predicted": random.random(2_000)})
    rows["observed"] = rows["predicted"] + random.normal(0, 0.1, len(rows))
    predicted, observed, margin = tenths(rows["predicted"].to_numpy(), rows["observed"].to_numpy())
    groups = rows.groupby(pd.qcut(rows["predicted"], 10), observed=True)
    np.testing.assert_allclose(predicted, groups["predicted"].mean())
    np.testing.assert_allclose(observed, groups["observed"].mean())
    np.testing.assert_allclose(margin, 1.96 * groups["observed"].sem())


def test_equal_predictions_are_one_group() -> None:
    predicted, observed, _ = tenths(np.full(50, 0.2), np.linspace(0, 1, 50))
    assert (predicted.tolist(), observed.tolist()) == ([pytest.approx(0.2)], [pytest.approx(0.5)])
