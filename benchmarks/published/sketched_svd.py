"""The leading part of a singular value decomposition, of blocks of rows that are seen once and need not be kept.

Halko, Martinsson and Tropp (SIAM Review 53, 2011) take an orthonormal basis Q of the range of Y = A W, for a narrow
random W, and the SVD of Q'A, for which A is needed twice: Q is known only after all of A. But with R, the Cholesky
factor of Y'Y, Q is Y R**-1 and Q'A is R**-T (Y'A), and both Y'Y and Y'A add up over blocks of rows. So one pass does,
with the same result, while Y is well conditioned.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

from whitewater.devices import Device
from whitewater.errors import IntegrityError

# Q is orthogonal to the square of the condition number of Y times 1e-16; that of the published matrix is about 8.
LARGEST_CONDITION = 1e4


@dataclass(frozen=True)
class Sketch:
    """What is kept of the rows A seen so far: Y'Y, float64 (width, width), and Y'A, float64 (width, columns)."""

    yy: Any
    ya: Any

    def __add__(self, other: Sketch) -> Sketch:
        return Sketch(self.yy + other.yy, self.ya + other.ya)


def empty_sketch(test_matrix: Any, *, device: Device) -> Sketch:
    """Return the sketch of no rows; ``test_matrix`` is W, float64 (columns, width)."""
    columns, width = test_matrix.shape
    return Sketch(device.xp.zeros((width, width)), device.xp.zeros((width, columns)))


def add_block(sketch: Sketch, block: Any, test_matrix: Any) -> None:
    """Add a block of rows of A, float64 (rows, columns), to a sketch in place."""
    y = block @ test_matrix
    sketch.yy.__iadd__(y.T @ y)
    sketch.ya.__iadd__(y.T @ block)


def leading_svd(sketch: Sketch, components: int, *, device: Device) -> tuple[Any, Any]:
    """Return the leading singular values, float64 (components,), and right vectors, float64 (components, columns).

    Raises
    ------
    IntegrityError
        If Y is too ill-conditioned for one pass.
    """
    xp = device.xp
    eigenvalues = xp.linalg.eigvalsh(sketch.yy)
    smallest, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    if not largest <= smallest * LARGEST_CONDITION**2:
        raise IntegrityError(
            f"the sketch of the matrix has singular values from {sqrt(max(0.0, smallest)):.3g} to {sqrt(largest):.3g}, "
            "too far apart for one pass. Orthogonalise it, and make a second pass."
        )
    inverse = xp.linalg.inv(xp.linalg.cholesky(sketch.yy))
    _, s, vt = xp.linalg.svd(inverse @ sketch.ya, full_matrices=False)
    return s[:components], vt[:components]
