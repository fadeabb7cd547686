"""What a decomposition will cost: which solver, how many passes, how much memory."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from whitewater.genotypes.config import Pca
from whitewater.genotypes.decode import SLAB_CELLS
from whitewater.genotypes.folder import PIECE_BYTES
from whitewater.genotypes.pca.scaled import LEAST_ROWS, MOST_RANGES

if TYPE_CHECKING:
    from whitewater.genotypes.shares import SharedGenotypes

logger = logging.getLogger(__name__)
Solver = Literal["gram", "randomized"]
# Seconds on a core (AMD EPYC 9004, OpenBLAS): to look up a genotype, to multiply it by a column and add it up, to
# multiply it by another genotype, and the cube of the samples in the exact eigenproblem.
LOOK_UP, COLUMN, PRODUCT, EIGENPROBLEM = 0.15e-9, 0.05e-9, 14e-12, 0.3e-9
# What the exact solver may cost although the other would be faster.
EXACT_SECONDS = 1.0
EXPECTED_PASSES = 8
# BLAS is fastest with columns in such multiples.
COLUMNS = 8
# Of a row of the table of variants, and of what it is written from.
VARIANT_BYTES = 150


@dataclass(frozen=True)
class Size:
    """What costs depend on; ``columns`` are those of a slab, of all samples."""

    samples: int
    columns: int
    variants: int
    width: int

    @property
    def pass_seconds(self) -> float:
        """Seconds of a core for a pass of block Krylov iteration."""
        return self.columns * self.variants * (LOOK_UP + COLUMN * self.width)

    @property
    def exact_seconds(self) -> float:
        """Seconds of a core for the exact solver."""
        return self.columns * self.variants * (LOOK_UP + PRODUCT * self.columns) + EIGENPROBLEM * self.samples**3


def block_width(settings: Pca, samples: int) -> int:
    """Return the columns of a block: components and oversampling, rounded up to a multiple of eight."""
    wanted = settings.components + settings.oversampling
    return min(-(-wanted // COLUMNS) * COLUMNS, samples - 1)


def choose_solver(size: Size, settings: Pca) -> Solver:
    """Return the solver: that of the settings, or the cheaper one; the shape of the data alone decides."""
    if settings.solver != "auto":
        return settings.solver
    randomized = min(EXPECTED_PASSES, settings.maximum_passes) * size.pass_seconds
    return "gram" if size.exact_seconds <= max(randomized, EXACT_SECONDS) else "randomized"


def check(shared: SharedGenotypes, settings: Pca, *, samples: int) -> tuple[Solver, int]:
    """Choose the solver for so many samples used, and log what the decomposition will cost.

    Returns the solver, and the bytes that each worker needs on its device beside the genotypes.

    Raises ResourceError if there is not enough memory; the message says what would fit.
    """
    folder, workers, device = shared.folder, shared.workers, shared.device
    size = Size(samples, folder.samples, folder.variants, block_width(settings, samples))
    solver = choose_solver(size, settings)
    # Each task holds a sum and a product of float32; up to two results a task wait to be added up. Between passes the
    # exact solver holds matrices of that size, the other one its blocks and their products.
    at_once = min(MOST_RANGES, sum(workers.threads))
    if solver == "gram":
        method, result = "the exact covariance", 8 * size.columns**2
        work = f"1 pass and an eigenproblem, about {size.exact_seconds:.2g} s of a core"
        remedy, sums = "Set pca.solver to randomized.", 3 * result
    else:
        method, result = "block Krylov iteration", 8 * size.columns * size.width
        work = f"about {EXPECTED_PASSES} passes, each about {size.pass_seconds:.2g} s of a core"
        remedy = "Ask for fewer pca.components, lower pca.maximum_passes, or use fewer threads."
        sums = 2 * 8 * size.samples * size.width * settings.maximum_passes
    sums += (2 * at_once + 1) * result
    what = f"PCA of {size.samples:,} samples x {size.variants:,} variants by {method}"
    logger.info("%s: %s", what, work)
    slab = 4 * max(SLAB_CELLS[device.name], LEAST_ROWS * size.columns)
    # A piece holds at least what a slab is looked up from: at most one byte for four of its own.
    a_task = min(size.variants * folder.row_bytes, max(PIECE_BYTES, slab // 4)) + slab + 2 * result
    variants = size.variants * (VARIANT_BYTES + 12 * (folder.ploidy + 2))
    # Where this process computes between passes on the device of the tasks, results wait there, too.
    on_device = sums if shared.local_device.name == "gpu" else 0
    here = variants + sums - on_device
    workers.forecast(device, a_task=a_task, tasks=MOST_RANGES, shared=on_device, here=here, what=what, remedy=remedy)
    return solver, on_device + a_task * max(workers.threads)
