"""Principal components of samples: the forecast of time and memory, two solvers, order and signs.

Components of structure stand apart from the others and converge fast, so the residual measures their error. Components
in the bulk of the noise have no gap, and their directions are arbitrary: there only the captured variance matters.
Components near the edge of the bulk count as noise, since their eigenvectors say next to nothing about the population
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
from whitewater.genotypes.pca.passes import MOST_RANGES, RawGenotypes, ScaledGenotypes, compute_scaling, scaled_dosages
from whitewater.genotypes.pca.tracy_widom import Floats, TracyWidomTest, sum_before, tracy_widom_test

logger = logging.getLogger(__name__)
Solver = Literal["gram", "randomized"]
# Eigenvalues below this fraction of the mean of all are rounding errors of float32 products.
NO_VARIANCE = 1e-4
# Relative residual below which a component is summed exactly instead of estimated.
EXACT_RESIDUAL = 1e-2
# Entries with a smaller relative difference are ties, so that rounding does not decide between them.
TIE = 1e-6
# Seconds of a core (AMD EPYC 9004, OpenBLAS): to look up a genotype, to multiply it by a column and add it up, to
# multiply it by another genotype; and per cubed number of samples in the exact eigenproblem.
LOOK_UP, COLUMN, PRODUCT, EIGENPROBLEM = 0.15e-9, 0.05e-9, 14e-12, 0.3e-9
# The exact solver is chosen below this cost, even if the other is faster.
EXACT_SECONDS = 1.0
EXPECTED_PASSES = 8
# Bytes per variant of the variants table and of the columns it is written from.
VARIANT_BYTES = 150
# Fraction of the variance of all components that those in the noise may still gain, by extrapolation.
REMAINING_VARIANCE = 1e-4
# Relative growth of a noise component in the last pass. A weak component of structure, hidden under stronger ones,
# grows faster.
GROWTH = 1e-2
# The extrapolation assumes that growth falls at least by this factor per pass.
SLOWEST_DECAY = 0.97
# Least residual with float32 products, relative to sqrt(largest eigenvalue * own eigenvalue): twice the measured one.
ROUNDING = 3e-7
# Structure begins this factor above the edge of the bulk.
ABOVE_EDGE = 1.05


@dataclass(frozen=True)
class RitzPairs:
    """The best approximations of the leading eigenpairs of K in a subspace, in float64."""

    values: Floats  # theta, (k,), descending, on the host
    vectors: Array  # v, (n, k), on the device
    products: Array  # K v, (n, k), on the device
    residuals: Floats  # |K v - theta v|, (k,), on the host


class Spectrum(NamedTuple):
    """The leading eigenpairs of the covariance K of n samples."""

    eigenvalues: Floats  # lambda, (k,), descending
    vectors: Floats  # v, (n, k), unit columns, with the signs of `fix_signs`
    sum_of_squares: float  # of all eigenvalues; the randomized solver estimates it
    residuals: Floats | None  # |K v - lambda v| / lambda, (k,); None for the exact solver
    converged: npt.NDArray[np.bool_]  # (k,), whether residuals are within the tolerance
    passes: int  # over the genotypes


@dataclass(frozen=True)
class PrincipalComponents:
    """Components, and the scaled genotypes that they were computed from."""

    genotypes: ScaledGenotypes
    scaling: "pd.DataFrame"
    solver: Solver
    spectrum: Spectrum
    total: float  # the sum of all eigenvalues
    significance: TracyWidomTest

    @property
    def scores(self) -> Floats:
        """float64 (samples used, k): eigenvectors times the roots of their eigenvalues."""
        return self.spectrum.vectors * np.sqrt(self.spectrum.eigenvalues)


def principal_components(raw: RawGenotypes, used: npt.NDArray[np.bool_], *, settings: Pca) -> PrincipalComponents:
    """Compute the leading principal components, those of K = X X' / m, of the samples ``used``, bool (samples,).

    Raises InputError if there are too few samples or varying variants, and ResourceError if memory is too small.
    """
    path, samples, components = raw.folder.path, int(used.sum()), settings.components
    if samples <= components:
        raise InputError(
            f"{samples} samples of {path} are used, which have at most {max(samples - 1, 0)} components, but "
            f"{components} are asked for. Ask for fewer components, or use more samples: relatedness.exclude, "
            "hold_out_labels and minimum_call_rate leave some out."
        )
    solver, other_bytes = forecast(raw, settings, samples=samples)
    raw.keep_on_gpus(other_bytes=other_bytes)
    counts = raw.counts(used)
    scaling = compute_scaling(counts, settings.scaling)
    varying = int((scaling["scale"] > 0).sum())
    if varying < components:
        raise InputError(
            f"{varying} variants of {path} vary among the samples used, fewer than the {components} components "
            "asked for. Keep more variants (variant_qc, ld_prune), or ask for fewer components."
        )
    table = scaled_dosages(scaling, ploidy=raw.folder.ploidy)
    genotypes = ScaledGenotypes(raw, table, used, varying)
    # The trace of the covariance, which is the sum of all eigenvalues, from the counts alone.
    total = float(np.einsum("ij,ij,ij->", counts, table, table, dtype=np.float64)) / varying
    del counts
    test = partial(tracy_widom_test, total=total, samples=samples, variants=varying)
    if solver == "gram":
        spectrum = _solve_exactly(genotypes, components)
    else:
        spectrum = _iterate(genotypes, settings, total=total, test=test)
    rank = int((spectrum.eigenvalues > NO_VARIANCE * total / samples).sum())
    if rank < len(spectrum.eigenvalues):
        raise InputError(
            f"The genotypes of the samples used in {path} have only {rank} components with variance: samples or "
            f"variants are copies of each other. Set pca.components to {rank} or fewer."
        )
    significance = test(spectrum.eigenvalues, sum_of_squares=spectrum.sum_of_squares)
    return PrincipalComponents(genotypes, scaling, solver, spectrum, total, significance)


def _solve_exactly(genotypes: ScaledGenotypes, components: int) -> Spectrum:
    device = genotypes.raw.local_device
    values, vectors = map(device.to_host, device.xp.linalg.eigh(genotypes.covariance()))
    return Spectrum(
        eigenvalues=values[::-1][:components].copy(), vectors=fix_signs(vectors[:, ::-1][:, :components]),
        sum_of_squares=float((values**2).sum()), residuals=None, converged=np.ones(components, bool), passes=1,
    )  # fmt: skip


def _iterate(genotypes: ScaledGenotypes, settings: Pca, *, total: float, test: partial[TracyWidomTest]) -> Spectrum:
    device, samples, components = genotypes.raw.local_device, genotypes.samples, settings.components
    width = block_width(settings, samples)
    start = device.to_device(start_block(genotypes.used, width=width, seed=settings.seed))
    history: list[Floats] = []
    passes = block_krylov(
        genotypes.covariance_times, start, components=components, maximum_passes=settings.maximum_passes, device=device
    )
    for pairs, products in passes:
        history.append(pairs.values)
        squares = estimate_sum_of_squares(pairs, start, products[0], total=total, samples=samples, device=device)
        effective = test(pairs.values, sum_of_squares=squares).effective_variants
        structure = count_structure(pairs.values, total=total, samples=samples, effective_variants=effective)
        converged = is_converged(pairs.values, pairs.residuals, tolerance=settings.tolerance)
        unconverged = np.flatnonzero(~converged[:structure])
        missing = f", {len(unconverged)} of structure have not" if len(unconverged) else ""
        logger.info("pass %d: %d of %d components converged%s", len(history), converged.sum(), components, missing)
        # Stop once structure has converged and noise has its variance.
        captured = converged.all() or variance_is_captured(history, unconverged=~converged)
        if len(pairs.values) == components and not len(unconverged) and captured:
            break
    relative = pairs.residuals / np.abs(pairs.values)
    if len(unconverged):
        names = ", ".join(f"PC{index + 1} ({relative[index]:.1e})" for index in unconverged)
        logger.warning("After %d passes the residual of %s is above pca.tolerance, %.1e of the eigenvalue. Raise "
                       "pca.maximum_passes or pca.oversampling, or use pca.solver gram.",
                       len(history), names, settings.tolerance)  # fmt: skip
    vectors = fix_signs(device.to_host(pairs.vectors))
    return Spectrum(pairs.values, vectors, squares, relative, converged, passes=len(history))


def estimate_sum_of_squares(
    pairs: RitzPairs, probes: Array, products: Array, *, total: float, samples: int, device: Device
) -> float:
    """Estimate the trace of K^2 as in Hutch++ (Meyer et al. 2021, SOSA): exact for converged components, else sampled.

    Let M = K - c J, where J projects on the n - 1 directions that sum to 0, and c is about the mean eigenvalue in the
    noise. Then tr K^2 = tr M^2 + 2 c tr K - c^2 (n - 1), and M is small in the noise. So the error is about
    sqrt(4 / (n b)) of the *spread* of the eigenvalues, which determines the effective variants, not of their sum of
    squares. ``probes`` and ``products`` are the start block Q, (n, b), and K Q; ``total`` is tr K, and ``samples`` n.
    """
    exact = device.to_device(np.flatnonzero(is_converged(pairs.values, pairs.residuals, tolerance=EXACT_RESIDUAL)))
    vectors, images = pairs.vectors[:, exact], pairs.products[:, exact]
    dimensions = samples - 1
    center = (total - float((vectors * images).sum())) / max(dimensions - vectors.shape[1], 1)
    exact_sum = float(((images - center * vectors) ** 2).sum())
    share = vectors.T @ probes
    rest = products - images @ share - center * (probes - vectors @ share)
    estimate = dimensions * float((rest**2).sum()) / probes.shape[1]
    return float(exact_sum + estimate + 2 * center * total - center**2 * dimensions)


def fix_signs(vectors: Floats) -> Floats:
    """Flip columns so that the entry of largest absolute value, the first of ties, is positive."""
    sizes = np.abs(vectors)
    first = (sizes >= (1 - TIE) * sizes.max(axis=0)).argmax(axis=0)
    return vectors * np.where(vectors[first, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def start_block(used: npt.NDArray[np.bool_], *, width: int, seed: int) -> Floats:
    """Return a random block with orthonormal columns, (samples used, width), equal on every device.

    A row is drawn for each sample, used or not. Columns sum to 0: they are uniformly distributed among the directions
    orthogonal to the vector of ones, which K maps to 0.
    """
    rows = np.random.Generator(np.random.Philox(seed)).standard_normal((len(used), width))[used]
    return np.asarray(np.linalg.qr(rows - rows.mean(axis=0))[0], np.float64)


def block_krylov(
    times: Callable[[Array], Array], start: Array, *, components: int, maximum_passes: int, device: Device
) -> Iterator[tuple[RitzPairs, list[Array]]]:
    """Iterate until the Krylov space is complete or the passes are used up; the caller may stop earlier.

    From a random block Q_1, each pass gives K Q_j; the part of it outside the space so far, made orthonormal, is
    Q_{j+1} (Musco and Musco 2015, NeurIPS 28). Ritz pairs are the best estimates from the whole space, and the products
    K Q_j give their residuals without another pass. Products are rounded to float32; the rest is float64, and each
    block is orthogonalized three times to keep the space orthogonal (Parlett 1998, The Symmetric Eigenvalue Problem,
    6.9).

    ``times`` returns K times a block, float64 (n, b). ``start`` is the first block, on the device, with orthonormal
    columns. Yields, after each pass, at most ``components`` leading Ritz pairs, and the products of all blocks so far.
    """
    blocks, products = list[Array](), list[Array]()
    projected, block = np.empty((0, 0)), start
    for _ in range(maximum_passes):
        product = times(block)
        blocks.append(block)
        products.append(product)
        column = np.concatenate([device.to_host(basis.T @ product) for basis in blocks])
        above, corner = np.vsplit(column, [len(projected)])
        # Rounding makes the new corner slightly asymmetric.
        projected = np.block([[projected, above], [above.T, (corner + corner.T) / 2]])
        values, rotations = np.linalg.eigh(projected)
        values = values[::-1][:components].copy()
        leading = device.to_device(np.ascontiguousarray(rotations[:, ::-1][:, :components]))
        vectors, images = _combine(blocks, leading), _combine(products, leading)
        residuals = device.to_host(device.xp.linalg.norm(images - vectors * device.to_device(values), axis=0))
        yield RitzPairs(values, vectors, images, residuals), products
        block = product[:, : max(0, len(start) - len(projected))]
        if block.shape[1] == 0:
            return
        for _ in range(3):
            for basis in blocks:
                block = block - basis @ (basis.T @ block)
            block = device.xp.linalg.qr(block)[0]


def _combine(blocks: Sequence[Array], rotations: Array) -> Array:
    """Return the sum of each block times its rows of ``rotations``."""
    ends = accumulate(block.shape[1] for block in blocks)
    return reduce(add, (block @ rotations[end - block.shape[1] : end] for block, end in zip(blocks, ends, strict=True)))


def is_converged(values: Floats, residuals: Floats, *, tolerance: float) -> npt.NDArray[np.bool_]:
    """Return whether each residual is within the tolerance, or as small as float32 products allow."""
    sizes = np.abs(values)
    return np.asarray(residuals <= np.maximum(tolerance * sizes, ROUNDING * np.sqrt(sizes[0] * sizes)), bool)


def count_structure(values: Floats, *, total: float, samples: int, effective_variants: Floats) -> int:
    """Return the number of components up to the last one above the noise.

    The noise after i components reaches to the edge of Marchenko and Pastur (1967), given the mean of the remaining
    eigenvalues and ``effective_variants``, float64 (components,), of `TracyWidomTest`.
    """
    rows = np.maximum(samples - 1 - np.arange(len(values)), 1)
    rest = total - sum_before(values)
    edges = rest / rows * (1 + np.sqrt(rows / effective_variants)) ** 2
    above = np.flatnonzero(values > ABOVE_EDGE * edges)
    return int(above[-1]) + 1 if len(above) else 0


def variance_is_captured(history: list[Floats], *, unconverged: npt.NDArray[np.bool_]) -> bool:
    """Return whether unconverged components have almost all of the variance that they will ever have.

    ``history`` holds the Ritz values after each pass, which only grow. Future growth is extrapolated as a geometric
    series from the last two passes.
    """
    if len(history) < 3 or len(history[-3]) < len(history[-1]):
        return False
    before, growth = (np.maximum(np.diff(history[-3:], axis=0), 0.0))[:, unconverged]
    decay = np.minimum(np.divide(growth, before, out=np.zeros_like(growth), where=before > 0), SLOWEST_DECAY)
    remaining = float((growth * decay / (1 - decay)).sum())
    values = history[-1]
    is_slow = bool((growth <= GROWTH * values[unconverged]).all())
    return is_slow and remaining <= REMAINING_VARIANCE * float(values.sum())


def block_width(settings: Pca, samples: int) -> int:
    """Return the columns of a block: components and oversampling, rounded up to a multiple of 8, fastest in BLAS."""
    return min(-(-(settings.components + settings.oversampling) // 8) * 8, samples - 1)


def choose_solver(settings: Pca, *, samples: int, columns: int, variants: int) -> tuple[Solver, float]:
    """Return the solver and the core seconds that it takes; ``columns`` is the width of a slab, of all samples.

    `auto` chooses the cheaper one from the shape of the data alone.
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


def forecast(raw: RawGenotypes, settings: Pca, *, samples: int) -> tuple[Solver, int]:
    """Choose the solver for this number of samples, and log its cost.

    Returns the solver, and the bytes that each worker needs on its device besides the genotypes. Raises ResourceError
    if memory is too small.
    """
    folder, workers, device = raw.folder, raw.workers, raw.device
    columns, variants, width = folder.samples, folder.variants, block_width(settings, samples)
    solver, seconds = choose_solver(settings, samples=samples, columns=columns, variants=variants)
    # Each task holds a sum and a product of float32; up to two results per task wait to be added up. Between passes the
    # exact solver holds matrices of that size, the other one its blocks and their products.
    if solver == "gram":
        method, remedy = "the exact covariance", "Set pca.solver to randomized."
        result = 8 * columns**2
        sums = 3 * result
    else:
        method = "block Krylov iteration"
        remedy = "Lower pca.components or pca.maximum_passes, or use fewer threads."
        result = 8 * columns * width
        sums = 2 * 8 * samples * width * settings.maximum_passes
    sums += (2 * min(MOST_RANGES, sum(workers.threads)) + 1) * result
    what = f"PCA of {samples:,} samples x {variants:,} variants by {method}"
    logger.info("%s takes about %.2g s of a core", what, seconds)
    slab = 4 * max(SLAB_CELLS[device.name], LEAST_ROWS * columns)
    # A piece holds at least the codes of a slab, which take at most a quarter of its bytes.
    a_task = min(variants * folder.row_bytes, max(PIECE_BYTES, slab // 4)) + slab + 2 * result
    # If this process computes on the device of the tasks, results wait there, too.
    on_device = sums if raw.local_device.name == "gpu" else 0
    here = variants * (VARIANT_BYTES + 12 * (folder.ploidy + 2)) + sums - on_device
    workers.forecast(device, a_task=a_task, tasks=MOST_RANGES, shared=on_device, here=here, what=what, remedy=remedy)
    return solver, on_device + a_task * max(workers.threads)
