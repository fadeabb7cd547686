"""Dask: `da.linalg.svd_compressed` of the scaled matrix, persisted as float32, as the published talks do."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np

from benchmarks.genomics.variant import COMPONENTS, Work, load_dosages, main, scaled

POWER_ITERATIONS = 3


def compute(work: Work) -> int:
    """Compute the components and return the number of variants."""
    with dask.config.set(scheduler="threads", num_workers=work.threads):
        dosages = da.from_array(load_dosages(work), chunks=(10_000, -1))
        values = dosages.map_blocks(scaled, dtype=np.float32).persist()
        _, _, components = da.linalg.svd_compressed(values, COMPONENTS, n_power_iter=POWER_ITERATIONS, seed=0)
        np.save(work.output, np.asarray(components.compute()).T)
    return len(values)


if __name__ == "__main__":
    main(compute)
