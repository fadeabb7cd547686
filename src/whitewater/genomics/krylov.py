"""Leading eigenvectors of the covariance of the samples by block Krylov iteration (Musco and Musco 2015, NeurIPS 28).

From a random block Q_1, each pass over the genotypes gives K Q_j; what it has beyond the space found so far, made
orthonormal, is Q_{j+1}. The Ritz pairs (Rayleigh-Ritz) of the whole space are the best that p passes can tell, and as
the products K Q_j are kept, the residual |K v - theta v| of each is known without another pass. Products come with the
rounding of float32; everything else is float64, and each block is orthogonalised three times, so that the space keeps
its orthogonality (Parlett 1998, The Symmetric Eigenvalue Problem, 6.9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from whitewater.devices import Array, Device

Floats = npt.NDArray[np.float64]


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
        size, width = len(column), block.shape[1]
        grown = np.zeros((size, size))
        grown[: size - width, : size - width] = self.projected
        grown[:, size - width :] = column
        grown[size - width :, :] = column.T
        # Rounding leaves the newest corner not quite symmetric.
        grown[size - width :, size - width :] = (column[size - width :] + column[size - width :].T) / 2
        self.projected = grown

    def ritz_pairs(self, components: int) -> RitzPairs:
        """Return as many leading Ritz pairs as there are, up to ``components``."""
        values, rotations = np.linalg.eigh(self.projected)
        values = values[::-1][:components].copy()
        leading = self.device.from_host(np.ascontiguousarray(rotations[:, ::-1][:, :components]))
        vectors, products = _combined(self.blocks, leading), _combined(self.products, leading)
        differences = products - vectors * self.device.from_host(values)
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
    """Iterate until what is found ``is_enough``, the space is complete, or the passes are used up.

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
        found = space.ritz_pairs(components)
        following = None if is_enough(found, space) or number == maximum_passes else space.next_block()
        if following is None:
            break
        block = following
    return found, space


def _combined(blocks: Sequence[Array], rotations: Array) -> Array:
    """Return the sum of each block times its rows of ``rotations``."""
    row = blocks[0].shape[1]
    total: Array = blocks[0] @ rotations[:row]
    for block in blocks[1:]:
        total = total + block @ rotations[row : row + block.shape[1]]
        row += block.shape[1]
    return total
