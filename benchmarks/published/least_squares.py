"""Ridge regression from centred sums of squares and products, which are added up block by block in one pass.

Tony F. Chan, Gene H. Golub and Randall J. LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
Variances", 1979: each block is centred by its own mean, so that no digits are lost where means are large.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from whitewater.devices import Device

# Of the slices of a device: twelve columns of 8 bytes of a sixteenth of them stay in the second cache of a core.
SLICE_PARTS = 16


@dataclass(frozen=True)
class Moments:
    """Sums over rows of columns and target, in that order; on the host.

    ``mean`` is float64 (columns + 1,), ``products``, float64 (columns + 1, columns + 1), the sums of the products of
    deviations from it.
    """

    count: int
    mean: Any
    products: Any

    def __add__(self, other: Moments) -> Moments:
        count = self.count + other.count
        apart = other.mean - self.mean
        return Moments(
            count,
            self.mean + apart * (other.count / count),
            self.products + other.products + np.outer(apart, apart) * (self.count * other.count / count),
        )


@dataclass(frozen=True)
class Line:
    """A linear model: ``coefficients``, float64 (columns,), and ``intercept``."""

    coefficients: Any
    intercept: float


def merged(parts: Iterable[Moments]) -> Moments:
    """Return the moments of all rows of at least one part."""
    return reduce(add, parts)


def moments(device: Device, x: Any, y: Any) -> Moments:
    """Return the moments of ``x``, float64 (rows, columns), and ``y``, float64 (rows,), of at least one row."""
    xp = device.xp
    rows = min(len(y), device.slice_rows // SLICE_PARTS)
    buffer = xp.empty((x.shape[1] + 1, rows))

    def of_block(start: int) -> Moments:
        block = slice(start, start + rows)
        values = buffer[:, : len(y[block])]
        values[:-1] = x[block].T
        values[-1] = y[block]
        mean = values.mean(axis=1)
        values -= mean[:, None]
        return Moments(values.shape[1], device.to_host(mean), device.to_host(values @ values.T))

    return merged(of_block(start) for start in range(0, len(y), rows))


def ridge(of: Moments, *, alpha: float) -> Line:
    """Return the ridge regression with an intercept, which is not penalised, by the normal equations."""
    penalty = alpha * np.eye(len(of.mean) - 1)
    coefficients = np.linalg.solve(of.products[:-1, :-1] + penalty, of.products[:-1, -1])
    return Line(coefficients, float(of.mean[-1] - of.mean[:-1] @ coefficients))


def r2(line: Line, of: Moments) -> float:
    """Return the coefficient of determination of a model on the rows that the moments are of.

    The squared residuals are a sum over products, of which as many digits are lost as 1 - R2 has zeros.
    """
    weights = np.append(-line.coefficients, 1.0)
    bias = float(weights @ of.mean) - line.intercept
    residual = float(weights @ of.products @ weights) + of.count * bias**2
    return 1.0 - residual / float(of.products[-1, -1])
