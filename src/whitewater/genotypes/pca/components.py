"""Principal components of samples from a folder of their genotypes: cost, scaling, solver, order and signs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device
from whitewater.errors import InputError
from whitewater.genotypes.config import Pca
from whitewater.genotypes.decode import SLAB_CELLS, count_genotypes
from whitewater.genotypes.genotypes import PIECE_BYTES
from whitewater.genotypes.pca.krylov import (
    RitzPairs,
    block_krylov,
    is_converged,
    start_block,
    structure_in,
    variance_is_captured,
)
from whitewater.genotypes.pca.scaled import (
    LEAST_ROWS,
    MOST_RANGES,
    ScaledGenotypes,
    VariantScaling,
    scaled_dosages,
    scaling,
    total_variance,
)
from whitewater.genotypes.pca.tracy_widom import TracyWidomTest, tracy_widom_test
from whitewater.genotypes.shares import Share, SharedGenotypes

logger = logging.getLogger(__name__)
Floats = npt.NDArray[np.float64]
Solver = Literal["gram", "randomized"]
# The test of Tracy and Widom of eigenvalues, which is given the sum of the squares of all.
Test = Callable[..., TracyWidomTest]
# Eigenvalues below this share of the mean of all are the rounding of float32 products.
NO_VARIANCE = 1e-4
# Residual relative to the eigenvalue at which a component is taken out of the estimate and counted exactly.
KNOWN = 1e-2
# Samples whose values differ by less, relatively, are taken to be tied: rounding must not choose between them.
TIE = 1e-6
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
class Spectrum:
    """The leading eigenpairs of the covariance of n samples, and what is known of the others.

    ``eigenvalues`` (k,), descending; ``vectors`` (n, k), unit columns; ``total`` and ``total_of_squares`` of all
    eigenvalues, the second an estimate unless the solver is exact; ``residuals`` |K v - lambda v| / lambda (k,), or
    None where the solver is exact; ``converged`` (k,): whether they are within the tolerance; ``passes`` over the
    genotypes.
    """

    eigenvalues: Floats
    vectors: Floats
    total: float
    total_of_squares: float
    residuals: Floats | None
    converged: npt.NDArray[np.bool_]
    passes: int
    solver: Solver


@dataclass(frozen=True)
class PrincipalComponents:
    """Components, with the operator that they are of and the numbers that its dosages are scaled by."""

    genotypes: ScaledGenotypes
    scaling: VariantScaling
    spectrum: Spectrum
    significance: TracyWidomTest

    @property
    def scores(self) -> Floats:
        """The scores, float64 (samples used, k): eigenvectors times the roots of their eigenvalues."""
        return self.spectrum.vectors * np.sqrt(self.spectrum.eigenvalues)


def principal_components(shared: SharedGenotypes, used: npt.NDArray[np.bool_], *, settings: Pca) -> PrincipalComponents:
    """Compute the leading principal components of the samples ``used``, bool (samples,).

    Passes over the genotypes are tasks of the workers; what comes between them is done in this process. GPUs keep the
    genotypes, also for the next call, where they have room for them.

    Eigenvalues are those of K = X X' / m; a component's sign is that of `oriented`.

    Raises InputError if there are too few samples, or variants that vary, for so many components, and ResourceError if
    there is not enough memory.
    """
    path, samples, wanted = shared.folder.path, int(used.sum()), settings.components
    if samples <= wanted:
        raise InputError(
            f"{samples} samples of {path} are used, which have {max(samples - 1, 0)} components at most; {wanted} are "
            "asked for. Lower the number of components, or use more samples: relatedness.exclude, hold_out_labels and "
            "minimum_call_rate take some out."
        )
    solver, beside = forecast(shared, settings, samples=samples)
    shared.keep(beside=beside)
    counts = count_used(shared, used)
    scaled = scaling(counts, settings.scaling)
    if scaled.varying < wanted:
        raise InputError(
            f"{scaled.varying} variants of {path} vary among the samples used, fewer than the {wanted} components "
            "asked for. Keep more variants (variant_qc, ld_prune), or lower the number of components."
        )
    table = scaled_dosages(scaled, ploidy=shared.folder.ploidy)
    genotypes = ScaledGenotypes(shared, table, used, scaled.varying)
    total = total_variance(counts, table, varying=scaled.varying)
    del counts
    test = partial(tracy_widom_test, total=total, samples=samples, variants=scaled.varying)
    decompose = _exact if solver == "gram" else _randomized
    spectrum = decompose(genotypes, settings, total=total, test=test)
    rank = int((spectrum.eigenvalues > NO_VARIANCE * total / samples).sum())
    if rank < len(spectrum.eigenvalues):
        raise InputError(
            f"The genotypes of the samples used in {path} have only {rank} components with variance: samples or "
            f"variants are copies of each other. Set pca.components to {rank} or fewer."
        )
    spectrum = replace(spectrum, vectors=oriented(spectrum.vectors))
    significance = test(spectrum.eigenvalues, total_of_squares=spectrum.total_of_squares)
    return PrincipalComponents(genotypes, scaled, spectrum, significance)


def _exact(genotypes: ScaledGenotypes, settings: Pca, *, total: float, test: Test) -> Spectrum:
    device, size = genotypes.shared.local_device, settings.components
    values, vectors = (device.to_host(each) for each in device.xp.linalg.eigh(genotypes.covariance()))
    return Spectrum(
        eigenvalues=values[::-1][:size].copy(),
        vectors=vectors[:, ::-1][:, :size],
        total=total,
        total_of_squares=float((values**2).sum()),
        residuals=None,
        converged=np.ones(size, bool),
        passes=1,
        solver="gram",
    )


def _randomized(genotypes: ScaledGenotypes, settings: Pca, *, total: float, test: Test) -> Spectrum:
    device, samples, wanted = genotypes.shared.local_device, genotypes.samples, settings.components
    width = block_width(settings, samples)
    start = device.to_device(start_block(genotypes.used, width=width, seed=settings.seed))
    history: list[Floats] = []
    passes = block_krylov(
        genotypes.covariance_times, start, components=wanted, maximum_passes=settings.maximum_passes, device=device
    )
    for pairs, products in passes:
        history.append(pairs.values)
        squares = total_of_squares(pairs, start, products[0], total=total, samples=samples, device=device)
        effective = test(pairs.values, total_of_squares=squares).effective_variants
        structure = structure_in(pairs.values, total=total, samples=samples, effective_variants=effective)
        converged = is_converged(pairs.values, pairs.residuals, tolerance=settings.tolerance)
        lacking = np.flatnonzero(~converged[:structure])
        to_come = f", {len(lacking)} of structure to come" if len(lacking) else ""
        logger.info("pass %d: %d of %d components converged%s", len(history), converged.sum(), wanted, to_come)
        # No further pass is needed once structure has converged, and noise has its share of the variance.
        captured = converged.all() or variance_is_captured(history, open_=~converged)
        if len(pairs.values) == wanted and not len(lacking) and captured:
            break
    relative = pairs.residuals / np.abs(pairs.values)
    if len(lacking):
        logger.warning(
            "After %d passes the residual of %s is above pca.tolerance, %.1e of the eigenvalue. Raise "
            "pca.maximum_passes or pca.oversampling, or use pca.solver gram.",
            len(history),
            ", ".join(f"PC{at + 1} ({relative[at]:.1e})" for at in lacking),
            settings.tolerance,
        )
    return Spectrum(
        eigenvalues=pairs.values,
        vectors=device.to_host(pairs.vectors),
        total=total,
        total_of_squares=squares,
        residuals=relative,
        converged=converged,
        passes=len(history),
        solver="randomized",
    )


def count_used(shared: SharedGenotypes, used: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Count dosages 0 to ploidy, then missing calls, of each variant among samples: int32 (variants, ploidy + 2)."""
    parts = shared.map(_count, shared.shares(), label="counts", used=used)
    return np.concatenate([shared.local_device.to_host(part) for part in parts])


def _count(share: Share, *, used: npt.NDArray[np.bool_]) -> Array:
    chosen = share.device.to_device(used)
    parts = [count_genotypes(share.device, genotypes, chosen) for _, genotypes in share.pieces()]
    counts: Array = share.device.xp.concatenate(parts)
    return counts


def total_of_squares(
    pairs: RitzPairs, probes: Array, products: Array, *, total: float, samples: int, device: Device
) -> float:
    """Estimate the trace of K^2.

    With M = K - c J, where J projects on the n - 1 directions that sum to 0 and c is about the mean of the eigenvalues
    in the noise, tr K^2 = tr M^2 + 2 c tr K - c^2 (n - 1). tr M^2 is exact over the components that are known and
    estimated over the others from random directions, as by Hutch++ (Meyer et al. 2021, SOSA). As M is small there, so
    is the error: about sqrt(4 / (n b)) of the *spread* of the eigenvalues, on which the number of effective variants
    rests, not of their sum of squares.

    Parameters
    ----------
    probes, products
        The start block Q, (n, b), see `whitewater.genotypes.pca.krylov.start_block`, and K Q.
    total
        The trace of K.
    samples
        n.
    """
    known = device.to_device(np.flatnonzero(is_converged(pairs.values, pairs.residuals, tolerance=KNOWN)))
    vectors, images = pairs.vectors[:, known], pairs.products[:, known]
    free = samples - 1
    center = (total - float((vectors * images).sum())) / max(free - vectors.shape[1], 1)
    exact = float(((images - center * vectors) ** 2).sum())
    share = vectors.T @ probes
    rest = products - images @ share - center * (probes - vectors @ share)
    estimated = free * float((rest**2).sum()) / probes.shape[1]
    return float(exact + estimated + 2 * center * total - center**2 * free)


def oriented(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Turn each column so that its largest entry by absolute value, the first of several, is positive."""
    sizes = np.abs(vectors)
    first = (sizes >= (1 - TIE) * sizes.max(axis=0)).argmax(axis=0)
    return vectors * np.where(vectors[first, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


# ---- what it will cost


def block_width(settings: Pca, samples: int) -> int:
    """Return the columns of a block: components and oversampling, rounded up to a multiple of eight."""
    wanted = settings.components + settings.oversampling
    return min(-(-wanted // COLUMNS) * COLUMNS, samples - 1)


def core_seconds(settings: Pca, *, samples: int, columns: int, variants: int) -> dict[Solver, float]:
    """Return the seconds of a core that the solvers take; ``columns`` are those of a slab, of all samples."""
    passed = columns * variants * (LOOK_UP + COLUMN * block_width(settings, samples))
    exact = columns * variants * (LOOK_UP + PRODUCT * columns) + EIGENPROBLEM * samples**3
    return {"gram": exact, "randomized": EXPECTED_PASSES * passed}


def choose_solver(settings: Pca, seconds: Mapping[Solver, float]) -> Solver:
    """Return the solver: that of the settings, or the cheaper one; the shape of the data alone decides."""
    if settings.solver != "auto":
        return settings.solver
    passes = min(EXPECTED_PASSES, settings.maximum_passes) / EXPECTED_PASSES
    return "gram" if seconds["gram"] <= max(passes * seconds["randomized"], EXACT_SECONDS) else "randomized"


def forecast(shared: SharedGenotypes, settings: Pca, *, samples: int) -> tuple[Solver, int]:
    """Choose the solver for so many samples used, and log what the decomposition will cost.

    Returns the solver, and the bytes that each worker needs on its device beside the genotypes.

    Raises ResourceError if there is not enough memory; the message says what would fit.
    """
    folder, workers, device = shared.folder, shared.workers, shared.device
    columns, variants, width = folder.samples, folder.variants, block_width(settings, samples)
    seconds = core_seconds(settings, samples=samples, columns=columns, variants=variants)
    solver = choose_solver(settings, seconds)
    # Each task holds a sum and a product of float32; up to two results a task wait to be added up. Between passes the
    # exact solver holds matrices of that size, the other one its blocks and their products.
    at_once = min(MOST_RANGES, sum(workers.threads))
    if solver == "gram":
        method, result = "the exact covariance", 8 * columns**2
        work = f"1 pass and an eigenproblem, about {seconds['gram']:.2g} s of a core"
        remedy, sums = "Set pca.solver to randomized.", 3 * result
    else:
        method, result = "block Krylov iteration", 8 * columns * width
        work = f"about {EXPECTED_PASSES} passes, each about {seconds['randomized'] / EXPECTED_PASSES:.2g} s of a core"
        remedy = "Ask for fewer pca.components, lower pca.maximum_passes, or use fewer threads."
        sums = 2 * 8 * samples * width * settings.maximum_passes
    sums += (2 * at_once + 1) * result
    what = f"PCA of {samples:,} samples x {variants:,} variants by {method}"
    logger.info("%s: %s", what, work)
    slab = 4 * max(SLAB_CELLS[device.name], LEAST_ROWS * columns)
    # A piece holds at least what a slab is looked up from: at most one byte for four of its own.
    a_task = min(variants * folder.row_bytes, max(PIECE_BYTES, slab // 4)) + slab + 2 * result
    # Where this process computes between passes on the device of the tasks, results wait there, too.
    on_device = sums if shared.local_device.name == "gpu" else 0
    here = variants * (VARIANT_BYTES + 12 * (folder.ploidy + 2)) + sums - on_device
    workers.forecast(device, a_task=a_task, tasks=MOST_RANGES, shared=on_device, here=here, what=what, remedy=remedy)
    return solver, on_device + a_task * max(workers.threads)
