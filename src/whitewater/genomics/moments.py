"""The sum of the squares of all eigenvalues, from the products that block Krylov iteration has made anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whitewater.devices import Array, Device
from whitewater.genomics.convergence import is_converged

if TYPE_CHECKING:
    from whitewater.genomics.krylov import RitzPairs

# Residual relative to the eigenvalue at which a component is taken out of the estimate and counted exactly.
KNOWN = 1e-2


def total_of_squares(
    found: RitzPairs, probes: Array, products: Array, *, total: float, samples: int, device: Device
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
        The start block Q, (n, b), see `whitewater.genomics.krylov.start_block`, and K Q.
    total
        The trace of K.
    samples
        n.
    """
    known = device.from_host(np.flatnonzero(is_converged(found.values, found.residuals, tolerance=KNOWN)))
    vectors, images = found.vectors[:, known], found.products[:, known]
    free = samples - 1
    center = (total - float((vectors * images).sum())) / max(free - vectors.shape[1], 1)
    exact = float(((images - center * vectors) ** 2).sum())
    share = vectors.T @ probes
    rest = products - images @ share - center * (probes - vectors @ share)
    estimated = free * float((rest**2).sum()) / probes.shape[1]
    return float(exact + estimated + 2 * center * total - center**2 * free)
