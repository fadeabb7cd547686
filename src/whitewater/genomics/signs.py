"""The sign of a component, which is arbitrary, made a rule."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# Samples whose values differ by less, relatively, are taken to be tied: rounding must not choose between them.
TIE = 1e-6


def oriented(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Turn each column so that its largest entry by absolute value, the first of several, is positive."""
    sizes = np.abs(vectors)
    first = (sizes >= (1 - TIE) * sizes.max(axis=0)).argmax(axis=0)
    return vectors * np.where(vectors[first, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
