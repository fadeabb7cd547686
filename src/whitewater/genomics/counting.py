"""Counts of the dosages of each variant among the samples used."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from whitewater.devices import Device, Genotypes
from whitewater.genomics.genotype_folder import GenotypeFolder
from whitewater.genomics.scaled_genotypes import Range, RunTasks


def count_used(
    folder: GenotypeFolder, used: npt.NDArray[np.bool_], *, device: Device, run_tasks: RunTasks
) -> npt.NDArray[np.int32]:
    """Count dosages 0 to ploidy, then missing calls, of each variant among samples: int32 (variants, ploidy + 2)."""
    work = partial(_count, folder=folder, device=device)
    return np.concatenate(list(run_tasks(work, folder.ranges(), label="counts", shared={"used": used})))


def _count(
    between: Range, *, folder: GenotypeFolder, device: Device, used: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int32]:
    chosen = device.from_host(used)
    parts = []
    for piece in folder.pieces(*between):
        read = folder.read(*piece)
        genotypes = Genotypes(device.from_host(read.codes), read.samples, read.ploidy)
        parts.append(device.to_host(device.count_genotypes(genotypes, chosen)))
    return np.concatenate(parts)
