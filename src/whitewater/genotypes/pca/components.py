"""Principal components of samples from a folder of their genotypes: cost, scaling, solver, order and signs.

When are the leading components known well enough? Structure and noise need different answers. A component of structure
stands apart from the others and converges fast; its residual tells its error, about residual / gap to the other
eigenvalues. Components in the bulk of the noise have no gap; which of many nearly equal directions stands for each is
arbitrary, and to converge to it would take many passes. There only the captured variance matters. What lies close to
the edge of the bulk belongs to it: eigenvectors there have next to nothing in common with those of the population
(Baik, Ben Arous and Peche 2005, Ann. Probab. 33:1643).
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import accumulate
from operator import add
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from whitewater import lazy_pandas as pd
from whitewater.engines import Array, Device
from whitewater.errors import InputError
from whitewater.genotypes.codes import LEAST_ROWS, SLAB_CELLS
from whitewater.genotypes.config import Pca
from whitewater.genotypes.genotypes import PIECE_BYTES
from whitewater.genotypes.pca.passes import MOST_RANGES, ScaledGenotypes, SharedGenotypes, scaled_dosages, scaling
from whitewater.genotypes.pca.tracy_widom import TracyWidomTest, sum_before, tracy_widom_test

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
# The share of the variance of all components that those in the noise may still lack, by extrapolation.
VARIANCE_TO_COME = 1e-4
# Relative growth of each component in the noise in the last pass: a weak component of structure that is still hidden
# under stronger ones grows faster.
GROWTH = 1e-2
# Growth falls from pass to pass at least so much, in the extrapolation.
SLOWEST_DECAY = 0.97
# Residual, relative to the root of the largest eigenvalue times the own one, that float32 products may not get below:
# about twice what was measured.
ROUNDING = 3e-7
# How far above the edge of the bulk structure begins.
ABOVE_EDGE = 1.05


@dataclass(frozen=True)
class RitzPairs:
    """The best approximations of the leading eigenpairs in a space.

    ``values`` (k,), descending, on the host; ``vectors`` v (n, k) and their ``products`` K v (n, k), on the device;
    ``residuals`` |K v - theta v| (k,), on the host. All are float64.
    """

    values: Floats
    vectors: Array
    products: Array
    residuals: Floats


class Spectrum(NamedTuple):
    """The leading eigenpairs of the covariance of n samples, and what is known of the others.

    ``eigenvalues`` (k,), descending; ``vectors`` (n, k), unit columns, with the signs of `oriented`;
    ``total_of_squares`` of all eigenvalues, an estimate unless the solver is exact; ``residuals``
    |K v - lambda v| / lambda (k,), or None where the solver is exact; ``converged`` (k,): whether they are within the
    tolerance; ``passes`` over the genotypes.
    """

    eigenvalues: Floats
    vectors: Floats
    total_of_squares: float
    residuals: Floats | None
    converged: npt.NDArray[np.bool_]
    passes: int


@dataclass(frozen=True)
class PrincipalComponents:
    """Components, with the operator that they are of, the numbers that its dosages are scaled by, and its trace."""

    genotypes: ScaledGenotypes
    scaling: "pd.DataFrame"
    solver: Solver
    spectrum: Spectrum
    total: float
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
    counts = shared.counts(used)
    scaled = scaling(counts, settings.scaling)
    varying = int((scaled["scale"] > 0).sum())
    if varying < wanted:
        raise InputError(
            f"{varying} variants of {path} vary among the samples used, fewer than the {wanted} components "
            "asked for. Keep more variants (variant_qc, ld_prune), or lower the number of components."
        )
    table = scaled_dosages(scaled, ploidy=shared.folder.ploidy)
    genotypes = ScaledGenotypes(shared, table, used, varying)
    # The trace of the covariance, which is the sum of all its eigenvalues, without reading a genotype.
    total = float(np.einsum("ij,ij,ij->", counts, table, table, dtype=np.float64)) / varying
    del counts
    test = partial(tracy_widom_test, total=total, samples=samples, variants=varying)
    if solver == "gram":
        spectrum = _exact(genotypes, wanted)
    else:
        spectrum = _randomized(genotypes, settings, total=total, test=test)
    rank = int((spectrum.eigenvalues > NO_VARIANCE * total / samples).sum())
    if rank < len(spectrum.eigenvalues):
        raise InputError(
            f"The genotypes of the samples used in {path} have only {rank} components with variance: samples or "
            f"variants are copies of each other. Set pca.components to {rank} or fewer."
        )
    significance = test(spectrum.eigenvalues, total_of_squares=spectrum.total_of_squares)
    return PrincipalComponents(genotypes, scaled, solver, spectrum, total, significance)


def _exact(genotypes: ScaledGenotypes, size: int) -> Spectrum:
    device = genotypes.shared.local_device
    values, vectors = (device.to_host(each) for each in device.xp.linalg.eigh(genotypes.covariance()))
    return Spectrum(
        eigenvalues=values[::-1][:size].copy(), vectors=oriented(vectors[:, ::-1][:, :size]), residuals=None,
        total_of_squares=float((values**2).sum()), converged=np.ones(size, bool), passes=1,
    )  # fmt: skip


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
        names = ", ".join(f"PC{at + 1} ({relative[at]:.1e})" for at in lacking)
        logger.warning("After %d passes the residual of %s is above pca.tolerance, %.1e of the eigenvalue. Raise "
                       "pca.maximum_passes or pca.oversampling, or use pca.solver gram.",
                       len(history), names, settings.tolerance)  # fmt: skip
    vectors = oriented(device.to_host(pairs.vectors))
    return Spectrum(pairs.values, vectors, squares, relative, converged, passes=len(history))


def total_of_squares(
    pairs: RitzPairs, probes: Array, products: Array, *, total: float, samples: int, device: Device
) -> float:
    """Estimate the trace of K^2.

    With M = K - c J, where J projects on the n - 1 directions that sum to 0 and c is about the mean of the eigenvalues
    in the noise, tr K^2 = tr M^2 + 2 c tr K - c^2 (n - 1). tr M^2 is exact over the components that are known and
    estimated over the others from random directions, as by Hutch++ (Meyer et al. 2021, SOSA). As M is small there, so
    is the error: about sqrt(4 / (n b)) of the *spread* of the eigenvalues, on which the number of effective variants
    rests, not of their sum of squares. ``probes`` and ``products`` are the start block Q, (n, b), and K Q; ``total`` is
    the trace of K, and ``samples`` n.
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


def start_block(samples: npt.NDArray[np.bool_], *, width: int, seed: int) -> Floats:
    """Return a random block with orthonormal columns that sum to 0, (samples used, width): equal on every device.

    A row is drawn for each sample, used or not. The columns are uniformly distributed among the directions orthogonal
    to the vector of ones, which K maps to 0.
    """
    rows = np.random.Generator(np.random.Philox(seed)).standard_normal((len(samples), width))[samples]
    return np.asarray(np.linalg.qr(rows - rows.mean(axis=0))[0], np.float64)


def block_krylov(
    times: Callable[[Array], Array], start: Array, *, components: int, maximum_passes: int, device: Device
) -> Iterator[tuple[RitzPairs, list[Array]]]:
    """Iterate until the space is complete, or the passes are used up; the caller may end it before.

    From a random block Q_1, each pass over the genotypes gives K Q_j; what it has beyond the space found so far, made
    orthonormal, is Q_{j+1} (Musco and Musco 2015, NeurIPS 28). The Ritz pairs of the whole space are the best that p
    passes can tell, and as the products K Q_j are kept, the residual |K v - theta v| of each is known without another
    pass. Products come with the rounding of float32; everything else is float64, and each block is orthogonalized three
    times, so that the space keeps its orthogonality (Parlett 1998, The Symmetric Eigenvalue Problem, 6.9).

    ``times`` returns K times a block, float64 (n, b). ``start`` is the first one, on the device, with orthonormal
    columns. Yields, after each pass, the leading Ritz pairs, as many as there are of the ``components`` asked for, and
    the products of all blocks so far.
    """
    blocks, products = list[Array](), list[Array]()
    projected, block = np.empty((0, 0)), start
    for _ in range(maximum_passes):
        product = times(block)
        blocks.append(block)
        products.append(product)
        column = np.concatenate([device.to_host(each.T @ product) for each in blocks])
        above, corner = np.vsplit(column, [len(projected)])
        # Rounding leaves the newest corner not quite symmetric.
        projected = np.block([[projected, above], [above.T, (corner + corner.T) / 2]])
        values, rotations = np.linalg.eigh(projected)
        values = values[::-1][:components].copy()
        leading = device.to_device(np.ascontiguousarray(rotations[:, ::-1][:, :components]))
        vectors, images = _combined(blocks, leading), _combined(products, leading)
        residuals = device.to_host(device.xp.linalg.norm(images - vectors * device.to_device(values), axis=0))
        yield RitzPairs(values, vectors, images, residuals), products
        block = product[:, : max(0, len(start) - len(projected))]
        if block.shape[1] == 0:
            return
        for _ in range(3):
            for each in blocks:
                block = block - each @ (each.T @ block)
            block = device.xp.linalg.qr(block)[0]


def _combined(blocks: Sequence[Array], rotations: Array) -> Array:
    """Return the sum of each block times its rows of ``rotations``."""
    ends = accumulate(block.shape[1] for block in blocks)
    return reduce(add, (block @ rotations[end - block.shape[1] : end] for block, end in zip(blocks, ends, strict=True)))


def is_converged(values: Floats, residuals: Floats, *, tolerance: float) -> npt.NDArray[np.bool_]:
    """Say of each component whether its residual is within the tolerance, or as small as float32 products let it be."""
    sizes = np.abs(values)
    return np.asarray(residuals <= np.maximum(tolerance * sizes, ROUNDING * np.sqrt(sizes[0] * sizes)), bool)


def structure_in(values: Floats, *, total: float, samples: int, effective_variants: Floats) -> int:
    """Return the number of components up to the last one that is above the noise.

    The bulk of the eigenvalues that follow i others reaches up to the edge of Marchenko and Pastur (1967), with their
    mean and ``effective_variants``, float64 (components,), as of `whitewater.genotypes.pca.tracy_widom.TracyWidomTest`.
    """
    rows = np.maximum(samples - 1 - np.arange(len(values)), 1)
    rest = total - sum_before(values)
    edges = rest / rows * (1 + np.sqrt(rows / effective_variants)) ** 2
    above = np.flatnonzero(values > ABOVE_EDGE * edges)
    return int(above[-1]) + 1 if len(above) else 0


def variance_is_captured(history: list[Floats], *, open_: npt.NDArray[np.bool_]) -> bool:
    """Say whether the components that are ``open_`` have almost all of the variance that they will ever have.

    ``history`` are the Ritz values after each pass, which only grow. What is to come is extrapolated from the last two
    growths as a geometric series.
    """
    if len(history) < 3 or len(history[-3]) < len(history[-1]):
        return False
    before, growth = (np.maximum(np.diff(history[-3:], axis=0), 0.0))[:, open_]
    decay = np.minimum(np.divide(growth, before, out=np.zeros_like(growth), where=before > 0), SLOWEST_DECAY)
    to_come = float((growth * decay / (1 - decay)).sum())
    values = history[-1]
    return bool((growth <= GROWTH * values[open_]).all()) and to_come <= VARIANCE_TO_COME * float(values.sum())


def block_width(settings: Pca, samples: int) -> int:
    """Return the columns of a block: components and oversampling, rounded up to a multiple of eight."""
    wanted = settings.components + settings.oversampling
    return min(-(-wanted // COLUMNS) * COLUMNS, samples - 1)


def choose_solver(settings: Pca, *, samples: int, columns: int, variants: int) -> tuple[Solver, float]:
    """Return the solver, and the seconds of a core that it takes; ``columns`` are those of a slab, of all samples.

    The solver is that of the settings, or the cheaper one: the shape of the data alone decides.
    """
    passes, width = min(EXPECTED_PASSES, settings.maximum_passes), block_width(settings, samples)
    seconds: dict[Solver, float] = {
        "gram": columns * variants * (LOOK_UP + PRODUCT * columns) + EIGENPROBLEM * samples**3,
        "randomized": columns * variants * (LOOK_UP + COLUMN * width) * passes,
    }
    solver = settings.solver
    if solver == "auto":
        solver = "gram" if seconds["gram"] <= max(seconds["randomized"], EXACT_SECONDS) else "randomized"
    return solver, seconds[solver]


def forecast(shared: SharedGenotypes, settings: Pca, *, samples: int) -> tuple[Solver, int]:
    """Choose the solver for so many samples used, and log what the decomposition will cost.

    Returns the solver, and the bytes that each worker needs on its device beside the genotypes.

    Raises ResourceError if there is not enough memory; the message says what would fit.
    """
    folder, workers, device = shared.folder, shared.workers, shared.device
    columns, variants, width = folder.samples, folder.variants, block_width(settings, samples)
    solver, seconds = choose_solver(settings, samples=samples, columns=columns, variants=variants)
    # Each task holds a sum and a product of float32; up to two results a task wait to be added up. Between passes the
    # exact solver holds matrices of that size, the other one its blocks and their products.
    if solver == "gram":
        method, remedy = "the exact covariance", "Set pca.solver to randomized."
        result = 8 * columns**2
        sums = 3 * result
    else:
        method = "block Krylov iteration"
        remedy = "Ask for fewer pca.components, lower pca.maximum_passes, or use fewer threads."
        result = 8 * columns * width
        sums = 2 * 8 * samples * width * settings.maximum_passes
    sums += (2 * min(MOST_RANGES, sum(workers.threads)) + 1) * result
    what = f"PCA of {samples:,} samples x {variants:,} variants by {method}"
    logger.info("%s takes about %.2g s of a core", what, seconds)
    slab = 4 * max(SLAB_CELLS[device.name], LEAST_ROWS * columns)
    # A piece holds at least what a slab is looked up from: at most one byte for four of its own.
    a_task = min(variants * folder.row_bytes, max(PIECE_BYTES, slab // 4)) + slab + 2 * result
    # Where this process computes between passes on the device of the tasks, results wait there, too.
    on_device = sums if shared.local_device.name == "gpu" else 0
    here = variants * (VARIANT_BYTES + 12 * (folder.ploidy + 2)) + sums - on_device
    workers.forecast(device, a_task=a_task, tasks=MOST_RANGES, shared=on_device, here=here, what=what, remedy=remedy)
    return solver, on_device + a_task * max(workers.threads)
