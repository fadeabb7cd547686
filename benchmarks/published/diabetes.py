"""The diabetes data of scikit-learn, as the published rows R13 and R14 used them.

Bradley Efron, Trevor Hastie, Iain Johnstone and Robert Tibshirani, "Least Angle Regression", Annals of Statistics 32,
2004: 442 patients, 10 columns. A training part of 80 % of them, 353 rows of 10 float64, has 28,240 bytes: the 28 KB
of the source, whose larger sizes are those rows repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.published.row import SEED
from benchmarks.report import Size

TEST_SHARE = 0.2
ROWS = 353
COLUMNS = 10
ROW_BYTES = 8 * (COLUMNS + 1)


def training_part(repeats: int) -> tuple[Any, Any]:
    """Return columns, float64 (353 * repeats, 10), and target, float64 (353 * repeats,), on the host."""
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    x, y = load_diabetes(return_X_y=True)
    x, _, y, _ = train_test_split(x, y, test_size=TEST_SHARE, random_state=SEED)
    return np.tile(x, (repeats, 1)), np.tile(y, repeats)


def size(repeats: int) -> Size:
    """Return how much columns and target are."""
    return Size(rows=ROWS * repeats, bytes=ROWS * repeats * ROW_BYTES, basis="memory")
