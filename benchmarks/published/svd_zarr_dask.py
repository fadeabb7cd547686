"""R11 as published: Dask loads a Zarr store, filters and scales the dosages, and takes their `svd_compressed`.

Chunks are decoded on the host, and all that follows is done on the device. Power iterations are as many as those of the
peers in `benchmarks.genomics`. Arguments and the line that it prints are those of `benchmarks.genomics.variant`.
"""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from distributed import wait

from benchmarks.genomics.variant import COMPONENTS, Work, dosages_of, main, passing, scaled
from benchmarks.published.dask_cluster import dask_client
from whitewater import engines
from whitewater.engines import Device
from whitewater.engines.config import Cluster

POWER_ITERATIONS = 3


def compute(work: Work) -> int:
    """Compute the components and return the number of variants."""
    device = engines.resolve(work.device)
    xp = device.xp
    with dask_client(device, Cluster.model_validate_json(work.cluster), threads=work.threads):
        with work.phase("load_seconds"):
            calls = da.from_zarr(work.store, component="call_genotype").rechunk({1: -1, 2: -1})
            dosages = calls.map_blocks(loaded, device, drop_axis=2, dtype=np.int8, meta=xp.empty((0, 0), np.int8))
            dosages = dosages.persist()
            wait(dosages)
        with work.phase("preprocess_seconds"):
            # How many variants of a chunk are kept is known when it is there.
            heights = (np.nan,) * dosages.numblocks[0]
            empty = xp.empty((0, 0), np.float32)
            values = dosages.map_blocks(
                prepared, device, chunks=(heights, dosages.chunks[1]), dtype=np.float32, meta=empty
            ).persist()
            values.compute_chunk_sizes()
        with work.phase("svd_seconds"):
            _, _, components = da.linalg.svd_compressed(values, COMPONENTS, n_power_iter=POWER_ITERATIONS, seed=0)
            found = device.to_host(components.compute())
        np.save(work.output, found.T)
    return int(values.shape[0])


def loaded(calls: Any, device: Device) -> Any:
    """Return the dosages of a chunk of calls, on the device."""
    return device.to_device(dosages_of(calls))


def prepared(dosages: Any, device: Device) -> Any:
    """Return the variants of a chunk that pass, scaled."""
    return scaled(dosages[passing(dosages, xp=device.xp)], xp=device.xp)


if __name__ == "__main__":
    main(compute)
