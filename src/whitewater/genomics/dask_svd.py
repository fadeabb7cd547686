"""Leading components by Dask's `svd_compressed` (Halko, Martinsson and Tropp 2011), for comparison."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from whitewater.genomics.scaled_genotypes import ScaledGenotypes, scaled_range

# Dask's advice is 4 at most.
POWER_ITERATIONS = 4
# Over the genotypes: with the first block, there and back in each iteration, and with the basis found.
PASSES = 2 * POWER_ITERATIONS + 2


def compressed_svd(
    genotypes: ScaledGenotypes, *, components: int, oversampling: int, seed: int, threads: int
) -> npt.NDArray[np.float64]:
    """Return the leading eigenvectors of the covariance of the samples, float64 (samples used, k), on the host.

    Blocks of X are scaled when they are needed, again in each of the passes, on the Dask client that is open, or else
    on so many threads of this process.
    """
    import dask
    import dask.array as da
    from dask.base import compute
    from dask.delayed import delayed

    xp = genotypes.device.xp
    block = delayed(scaled_range)
    shared = {name: delayed(getattr(genotypes, name), traverse=False) for name in ("folder", "table", "used", "device")}
    empty = xp.empty((0, 0), xp.float32)
    blocks = [
        da.from_delayed(block(each, **shared), (each[1] - each[0], genotypes.samples), meta=empty)
        for each in genotypes.folder.ranges()
    ]
    random = da.random.RandomState(seed, RandomState=xp.random.RandomState)
    with dask.config.set(num_workers=threads):
        _, _, rows = da.linalg.svd_compressed(
            da.concatenate(blocks), components, n_power_iter=POWER_ITERATIONS, n_oversamples=oversampling, seed=random,
            compute=True, coerce_signs=False,
        )  # fmt: skip
        vectors: npt.NDArray[np.float64] = genotypes.device.to_host(compute(rows)[0].T).astype(np.float64)
    return vectors
