"""When the leading components are known well enough.

Structure and noise need different answers. A component of structure stands apart from the others and converges fast;
its residual tells its error, about residual / gap to the other eigenvalues. Components in the bulk of the noise have no
gap; which of many nearly equal directions stands for each is arbitrary, and to converge to it would take many passes.
There only the captured variance matters. What lies close to the edge of the bulk belongs to it: eigenvectors there have
next to nothing in common with those of the population (Baik, Ben Arous and Peche 2005, Ann. Probab. 33:1643).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from whitewater.genomics.krylov import KrylovSpace, RitzPairs

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


@dataclass
class Progress:
    """Judges the Ritz pairs after each pass."""

    components: int  # how many are wanted
    tolerance: float  # residual relative to the eigenvalue at which a component is converged
    structure: Callable[[RitzPairs, KrylovSpace], int]  # returns how many of the Ritz pairs are structure, not noise
    history: list[Floats] = field(default_factory=list)
    converged: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))
    lacking: int = 0

    def is_enough(self, found: RitzPairs, space: KrylovSpace) -> bool:
        """Say whether no further pass is needed: structure has converged, and noise has its share of the variance."""
        self.history.append(found.values)
        self.converged = is_converged(found.values, found.residuals, tolerance=self.tolerance)
        structure = self.structure(found, space)
        self.lacking = int((~self.converged[:structure]).sum())
        logger.info("pass %d: %s", len(self.history), self)
        if len(found.values) < self.components or self.lacking:
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
    mean and ``effective_variants``, float64 (components,), as of `whitewater.genomics.tracy_widom.TracyWidomTest`.
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
