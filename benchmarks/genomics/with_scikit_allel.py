"""scikit-allel: the dosages in memory, missing ones imputed by the nearest dosage to the mean, and its randomized PCA.

It scales by Patterson's method itself, and knows no gaps: so it is given float32 with means in them, which its scaler
leaves alone.
"""

from __future__ import annotations

import allel
import numpy as np

from benchmarks.genomics.variant import COMPONENTS, Work, load_dosages, main

POWER_ITERATIONS = 3


def compute(work: Work) -> int:
    """Compute the components and return the number of variants."""
    dosages = load_dosages(work)
    values = dosages.astype(np.float32)
    missing = dosages < 0
    values[missing] = np.nan
    means = np.nanmean(values, axis=1)
    values[missing] = np.broadcast_to(means[:, None], values.shape)[missing]
    components, _ = allel.randomized_pca(
        values, n_components=COMPONENTS, copy=False, iterated_power=POWER_ITERATIONS, scaler="patterson", random_state=0
    )
    np.save(work.output, components)
    return len(values)


if __name__ == "__main__":
    main(compute)
