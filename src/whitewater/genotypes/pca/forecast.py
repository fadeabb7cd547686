"""What a decomposition will cost: which solver, how many passes, how much memory."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from whitewater.genotypes.config import Pca
from whitewater.genotypes.decode import SLAB_CELLS
from whitewater.genotypes.folder import PIECE_BYTES
from whitewater.genotypes.pca.scaled import LEAST_ROWS, MOST_RANGES, ScaledGenotypes

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers

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
    def genotypes(self) -> int:
        """Genotypes that a pass looks up."""
        return self.columns * self.variants

    @property
    def pass_seconds(self) -> float:
        """Seconds of a core for a pass of block Krylov iteration."""
        return self.genotypes * (LOOK_UP + COLUMN * self.width)

    @property
    def exact_seconds(self) -> float:
        """Seconds of a core for the exact solver."""
        return self.genotypes * (LOOK_UP + PRODUCT * self.columns) + EIGENPROBLEM * self.samples**3


def block_width(settings: Pca, samples: int) -> int:
    """Return the columns of a block: components and oversampling, rounded up to a multiple of eight."""
    wanted = settings.components + settings.oversampling
    return min(-(-wanted // COLUMNS) * COLUMNS, samples - 1)


def size_of(genotypes: ScaledGenotypes, settings: Pca) -> Size:
    """Return the size of a decomposition."""
    folder = genotypes.folder
    return Size(genotypes.samples, folder.samples, folder.variants, block_width(settings, genotypes.samples))


def choose_solver(size: Size, settings: Pca) -> Solver:
    """Return the solver: that of the settings, or the cheaper one; the shape of the data alone decides."""
    if settings.solver != "auto":
        return settings.solver
    randomized = min(EXPECTED_PASSES, settings.maximum_passes) * size.pass_seconds
    return "gram" if size.exact_seconds <= max(randomized, EXACT_SECONDS) else "randomized"


def check(genotypes: ScaledGenotypes, settings: Pca, solver: Solver, *, workers: Workers) -> None:
    """Log what the decomposition will cost, and refuse it where it will not fit into memory.

    Raises ResourceError if there is not enough memory; the message says what would fit.
    """
    size = size_of(genotypes, settings)
    method, work, remedy = {
        "gram": (
            "the exact covariance",
            f"1 pass and an eigenproblem, about {size.exact_seconds:.2g} s of a core",
            "Set pca.solver to randomized.",
        ),
        "randomized": (
            "block Krylov iteration",
            f"about {EXPECTED_PASSES} passes, each about {size.pass_seconds:.2g} s of a core",
            "Ask for fewer pca.components, lower pca.maximum_passes, or use fewer threads.",
        ),
    }[solver]
    what = f"PCA of {size.samples:,} samples x {genotypes.varying:,} variants by {method}"
    logger.info("%s: %s", what, work)
    need = memory_need(genotypes, settings, solver, at_once=min(MOST_RANGES, sum(workers.threads)))
    # Between passes this process computes where the workers do, unless they are elsewhere.
    shared = need.between_passes if genotypes.local_device.name == "gpu" else 0
    workers.forecast(
        genotypes.device,
        a_task=need.a_task,
        tasks=MOST_RANGES,
        shared=shared,
        here=need.waiting + need.between_passes - shared,
        what=what,
        remedy=remedy,
    )


@dataclass(frozen=True)
class MemoryNeed:
    """About the most bytes that are held at once.

    ``a_task`` by a task; ``waiting`` by results on the host that are to be added up, and what is known of the variants;
    ``between_passes`` by the solver.
    """

    a_task: int
    waiting: int
    between_passes: int


def memory_need(genotypes: ScaledGenotypes, settings: Pca, solver: Solver, *, at_once: int) -> MemoryNeed:
    """Return the memory that the decomposition and what comes after it need, where so many tasks run at once."""
    size, folder = size_of(genotypes, settings), genotypes.folder
    slab = 4 * max(SLAB_CELLS[genotypes.device.name], LEAST_ROWS * size.columns)
    # A piece holds at least what a slab is looked up from: at most one byte for four of its own.
    task = min(size.variants * folder.row_bytes, max(PIECE_BYTES, slab // 4)) + slab
    variants = size.variants * (VARIANT_BYTES + 12 * (folder.ploidy + 2))
    width = size.columns if solver == "gram" else size.width
    result = 8 * width * size.columns
    basis = 2 * 8 * size.samples * size.width * settings.maximum_passes  # the blocks and their products
    # Each task holds a sum and a product of float32; up to two results a task wait to be added up.
    return MemoryNeed(
        task + 2 * result, variants + (2 * at_once + 1) * result, 3 * result if solver == "gram" else basis
    )
