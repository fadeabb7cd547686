"""Leading eigenvectors of the covariance of the samples by block Krylov iteration (Musco and Musco 2015, NeurIPS 28).

From a random block Q_1, each pass over the genotypes gives K Q_j; what it has beyond the space found so far, made
orthonormal, is Q_{j+1}. The Ritz pairs (Rayleigh-Ritz) of the whole space are the best that p passes can tell, and as
the products K Q_j are kept, the residual |K v - theta v| of each is known without another pass. Products come with the
rounding of float32; everything else is float64, and each block is orthogonalised three times, so that the space keeps
its orthogonality (Parlett 1998, The Symmetric Eigenvalue Problem, 6.9).

`Progress` says when the leading components are known well enough. Structure and noise need different answers. A
component of structure stands apart from the others and converges fast; its residual tells its error, about residual /
gap to the other eigenvalues. Components in the bulk of the noise have no gap; which of many nearly equal directions
stands for each is arbitrary, and to converge to it would take many passes. There only the captured variance matters.
What lies close to the edge of the bulk belongs to it: eigenvectors there have next to nothing in common with those of
the population (Baik, Ben Arous and Peche 2005, Ann. Probab. 33:1643).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device

logger = logging.getLogger(__name__)
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


@dataclass
class KrylovSpace:
    """Blocks with orthonormal columns, (n, b) each, and their products with K; on the device, float64."""

    device: Device
    blocks: list[Array] = field(default_factory=list)
    products: list[Array] = field(default_factory=list)
    projected: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def add(self, block: Array, product: Array) -> None:
        """Add a block and its product."""
        self.blocks.append(block)
        self.products.append(product)
        column = np.concatenate([self.device.to_host(each.T @ product) for each in self.blocks])
        above, corner = np.vsplit(column, [len(self.projected)])
        # Rounding leaves the newest corner not quite symmetric.
        self.projected = np.block([[self.projected, above], [above.T, (corner + corner.T) / 2]])

    def ritz_pairs(self, components: int) -> RitzPairs:
        """Return as many leading Ritz pairs as there are, up to ``components``."""
        values, rotations = np.linalg.eigh(self.projected)
        values = values[::-1][:components].copy()
        leading = self.device.to_device(np.ascontiguousarray(rotations[:, ::-1][:, :components]))
        vectors, products = _combined(self.blocks, leading), _combined(self.products, leading)
        differences = products - vectors * self.device.to_device(values)
        residuals = self.device.to_host(self.device.xp.linalg.norm(differences, axis=0))
        return RitzPairs(values, vectors, products, residuals)

    def next_block(self) -> Array | None:
        """Return the orthonormal directions that the newest product adds, or None when the space is all there is."""
        samples = len(self.blocks[0])
        block = self.products[-1][:, : max(0, samples - len(self.projected))]
        if block.shape[1] == 0:
            return None
        for _ in range(3):
            block = self.device.xp.linalg.qr(self._beyond(block))[0]
        return block

    def _beyond(self, block: Array) -> Array:
        for each in self.blocks:
            block = block - each @ (each.T @ block)
        return block


def start_block(samples: npt.NDArray[np.bool_], *, width: int, seed: int) -> Floats:
    """Return a random block with orthonormal columns that sum to 0, (samples used, width): equal on every device.

    A row is drawn for each sample, used or not. The columns are uniformly distributed among the directions orthogonal
    to the vector of ones, which K maps to 0.
    """
    rows = np.random.Generator(np.random.Philox(seed)).standard_normal((len(samples), width))[samples]
    return np.asarray(np.linalg.qr(rows - rows.mean(axis=0))[0], np.float64)


def block_krylov(
    times: Callable[[Array], Array],
    start: Array,
    *,
    components: int,
    maximum_passes: int,
    is_enough: Callable[[RitzPairs, KrylovSpace], bool],
    device: Device,
) -> tuple[RitzPairs, KrylovSpace]:
    """Iterate until the Ritz pairs are ``is_enough``, the space is complete, or the passes are used up.

    Parameters
    ----------
    times
        Returns K times a block, float64 (n, b).
    start
        The first block, float64 (n, b) on the device, with orthonormal columns.
    """
    space, block = KrylovSpace(device), start
    for number in range(1, maximum_passes + 1):
        space.add(block, times(block))
        pairs = space.ritz_pairs(components)
        following = None if is_enough(pairs, space) or number == maximum_passes else space.next_block()
        if following is None:
            break
        block = following
    return pairs, space


def _combined(blocks: Sequence[Array], rotations: Array) -> Array:
    """Return the sum of each block times its rows of ``rotations``."""
    row = blocks[0].shape[1]
    total: Array = blocks[0] @ rotations[:row]
    for block in blocks[1:]:
        total = total + block @ rotations[row : row + block.shape[1]]
        row += block.shape[1]
    return total


# ---- when to end


@dataclass
class Progress:
    """Judges the Ritz pairs after each pass."""

    components: int  # how many are wanted
    tolerance: float  # residual relative to the eigenvalue at which a component is converged
    structure: Callable[[RitzPairs, KrylovSpace], int]  # returns how many of the Ritz pairs are structure, not noise
    history: list[Floats] = field(default_factory=list)
    converged: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))
    lacking: int = 0

    def is_enough(self, pairs: RitzPairs, space: KrylovSpace) -> bool:
        """Say whether no further pass is needed: structure has converged, and noise has its share of the variance."""
        self.history.append(pairs.values)
        self.converged = is_converged(pairs.values, pairs.residuals, tolerance=self.tolerance)
        structure = self.structure(pairs, space)
        self.lacking = int((~self.converged[:structure]).sum())
        logger.info("pass %d: %s", len(self.history), self)
        if len(pairs.values) < self.components or self.lacking:
            return False
        return bool(self.converged.all()) or variance_is_captured(self.history, open_=~self.converged)

    def __str__(self) -> str:
        """Describe the state after the last pass."""
        text = f"{int(self.converged.sum())} of {self.components} components converged"
        return f"{text}, {self.lacking} of structure to come" if self.lacking else text


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
