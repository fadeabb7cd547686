"""Leading eigenvectors of the covariance of the samples by block Krylov iteration (Musco and Musco 2015, NeurIPS 28).

From a random block Q_1, each pass over the genotypes gives K Q_j; what it has beyond the space found so far, made
orthonormal, is Q_{j+1}. The Ritz pairs (Rayleigh-Ritz) of the whole space are the best that p passes can tell, and as
the products K Q_j are kept, the residual |K v - theta v| of each is known without another pass. Products come with the
rounding of float32; everything else is float64, and each block is orthogonalised three times, so that the space keeps
its orthogonality (Parlett 1998, The Symmetric Eigenvalue Problem, 6.9).

When are the leading components known well enough? Structure and noise need different answers. A
component of structure stands apart from the others and converges fast; its residual tells its error, about residual /
gap to the other eigenvalues. Components in the bulk of the noise have no gap; which of many nearly equal directions
stands for each is arbitrary, and to converge to it would take many passes. There only the captured variance matters.
What lies close to the edge of the bulk belongs to it: eigenvectors there have next to nothing in common with those of
the population (Baik, Ben Arous and Peche 2005, Ann. Probab. 33:1643).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import add

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device

Floats = npt.NDArray[np.float64]
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

    Parameters
    ----------
    times
        Returns K times a block, float64 (n, b).
    start
        The first block, float64 (n, b) on the device, with orthonormal columns.
    components
        Ritz pairs that are asked for.

    Yields
    ------
    tuple
        After each pass the leading Ritz pairs, as many as there are, and the products of all blocks so far.
    """
    blocks: list[Array] = []
    products: list[Array] = []
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


# ---- when to end


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
    rest = total - np.concatenate([[0.0], np.cumsum(values)[:-1]])
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
