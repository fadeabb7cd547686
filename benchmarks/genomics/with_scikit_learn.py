"""scikit-learn: the dosages in memory, scaled to float32, and its randomized SVD.

`PCA(svd_solver="randomized")` does the same product after a second centering of a copy. Power iterations: 4 are the
fewest with which all components are accurate; LU normalizes them, as is its default.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils.extmath import randomized_svd

from benchmarks.genomics.variant import COMPONENTS, Work, load_dosages, main, scaled

POWER_ITERATIONS = 3


def compute(work: Work) -> int:
    """Compute the components and return the number of variants."""
    with work.phase("load_seconds"):
        dosages = load_dosages(work)
    with work.phase("preprocess_seconds"):
        values = scaled(dosages)
    with work.phase("svd_seconds"):
        _, _, components = randomized_svd(values, COMPONENTS, n_iter=POWER_ITERATIONS, random_state=0)
    np.save(work.output, components.T)
    return len(values)


if __name__ == "__main__":
    main(compute)
