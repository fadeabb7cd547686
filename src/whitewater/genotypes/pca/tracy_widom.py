"""The Tracy-Widom distribution of order 1, and the test of principal components based on it.

The distribution is the Fredholm determinant F1(s) = det(1 - V) of the kernel V(x, y) = Ai((x + y) / 2) / 2 on (s, inf)
(Ferrari and Spohn 2005, J. Phys. A 38:L557), by Gauss-Legendre quadrature (Bornemann 2010, Math. Comp. 79:871).

The test is that of Patterson, Price and Reich 2006 (PLoS Genetics 2:e190). Without structure, the covariance of samples
at n independent variants is a Wishart matrix of m = samples - 1 rows (centering removes one) and n degrees of freedom.
Its largest eigenvalue, scaled, follows this distribution (Johnstone 2001, Ann. Stat. 29:295).
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
NODES = 50
# Below this end F1 is less than 1e-31, and the kernel oscillates too fast for the nodes.
LEFT_END = -12.0
# Above this end Ai underflows.
RIGHT_END = 108.0
# The kernel is cut off where it is down by exp(-42) = 1e-18: Ai(x) falls as exp(-2/3 x**1.5).
CUTOFF = 42 * 3 / 2


@dataclass(frozen=True)
class TracyWidomTest:
    """The test of each component, given that all before it are significant; arrays are float64 (components,)."""

    statistics: Floats
    effective_variants: Floats  # the number of independent variants that fits the eigenvalues from this one on
    deviations: Floats  # they convert a statistic to an eigenvalue

    @cached_property
    def p_values(self) -> Floats:
        """The probability of a larger statistic by chance."""
        return survival(self.statistics)

    def significant_components(self, level: float) -> int:
        """Return the number of components before the first one whose p-value is not below ``level``."""
        return int(np.logical_and.accumulate(self.statistics > critical_value(level)).sum())

    def thresholds(self, eigenvalues: Floats, level: float) -> Floats:
        """Return the eigenvalues above which the p-values of the components are below ``level``."""
        return eigenvalues - (self.statistics - critical_value(level)) * self.deviations


def tracy_widom_test(
    eigenvalues: Floats, *, total: float, sum_of_squares: float, samples: int, variants: int
) -> TracyWidomTest:
    """Test each component for more variance than expected by chance.

    Component i, counted from 0, is tested without the i larger eigenvalues. With the number m = samples - 1 - i of
    eigenvalues left, their sum T, sum of squares Q and largest one l (equations 5 to 11 of Patterson et al.)::

        n = (m + 2) T^2 / (m Q - T^2)                                effective variants, from the moments
        mu = (sqrt(n - 1) + sqrt(m))^2 / n
        sigma = (sqrt(n - 1) + sqrt(m)) / n * (1 / sqrt(n - 1) + 1 / sqrt(m))^(1/3)
        statistic = (m l / T - mu) / sigma

    For small data, p-values are right in their tail but slightly too small in the middle, because n depends on the
    eigenvalues: their mean is about 0.46 for 50 samples and 700 variants.

    ``eigenvalues``, float64 (components,), are the largest of the covariance of the samples, descending, on any scale.
    ``total`` and ``sum_of_squares`` are sums over all eigenvalues. ``variants``, without constant ones, replaces the
    effective variants if the eigenvalues are equal.
    """
    rows = np.maximum(samples - 1 - np.arange(len(eigenvalues)), 1).astype(np.float64)
    rest = total - sum_before(eigenvalues)
    effective = np.full(len(eigenvalues), float(variants))
    spread = rows * (sum_of_squares - sum_before(eigenvalues**2)) - rest**2
    np.divide((rows + 2) * rest**2, spread, out=effective, where=spread > 1e-12 * rest**2)
    share = np.divide(rows * eigenvalues, rest, out=np.zeros(len(eigenvalues)), where=rest > 1e-12 * total)
    root = np.sqrt(np.maximum(effective - 1, 1.0))
    edge = root + np.sqrt(rows)
    deviations = edge / effective * np.cbrt(1 / root + 1 / np.sqrt(rows))
    statistics = (share - edge**2 / effective) / deviations
    return TracyWidomTest(statistics, effective, deviations * rest / rows)


def survival(values: npt.ArrayLike) -> Floats:
    """Return 1 - F1, with a small relative error down to the smallest floats; 0 above about 103."""
    from scipy.special import airy

    start = np.clip(np.asarray(values, np.float64), LEFT_END, RIGHT_END)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    nodes, weights = (nodes + 1) / 2, weights / 2  # on (0, 1)
    length = 2 * (np.cbrt(CUTOFF + np.maximum(start, 0) ** 1.5) ** 2 - start)
    points = start[..., None] + length[..., None] * nodes
    roots = np.sqrt(length[..., None] * weights)
    kernel = airy((points[..., :, None] + points[..., None, :]) / 2)[0] / 2
    eigenvalues = np.minimum(np.linalg.eigvalsh(roots[..., :, None] * kernel * roots[..., None, :]), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.abs(np.expm1(np.log1p(-eigenvalues).sum(axis=-1))), np.float64)


@cache
def critical_value(level: float) -> float:
    """Return the value that is exceeded with probability ``level``, which must be above 1e-280."""
    # The secant method on the logarithm, which is almost linear: ten times faster than importing a solver of SciPy.
    value = float(np.cbrt(-1.5 * np.log(level)) ** 2)  # the asymptote of 1 - F1
    last = value - 1
    excess = np.log(survival(last) / level)
    while abs(value - last) > 1e-10:
        height = np.log(survival(value) / level)
        last, value, excess = value, value - height * (value - last) / (height - excess), height
    return float(value)


def sum_before(values: Floats) -> Floats:
    """Return, for each value, the sum of those before it."""
    return np.concatenate([[0.0], np.cumsum(values)[:-1]])
