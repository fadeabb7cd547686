"""The singular value decomposition of a matrix with many rows and few columns, in blocks of rows on threads.

CholeskyQR2 (Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, Roundoff error analysis of the CholeskyQR2 algorithm, ETNA
44, 2015) makes the factors Q and R of products of matrices only: R from the Gram matrix of A, and once more from that
of A R**-1, since the first Q is orthogonal only as far as A is well conditioned. Where A is not, Householder's QR of
each block and of their factors R, stacked, takes its place: TSQR (Demmel, Grigori, Hoemmen and Langou, SIAM Journal on
Scientific Computing 34, 2012), which is slower and loses nothing. Both then take the SVD of R, which is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import inf, sqrt
from typing import Any

from whitewater.devices import Device

# Blocks of 2048 rows of 20 columns and what is made of them stay in the cache of a core.
BLOCKS_OF_SLICE = 64
# The inverse of R costs up to the condition number in accuracy; at 100 the product of the factors is A to 1e-13.
LARGEST_CONDITION = 100.0
UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True)
class TallSvd:
    """A = U diag(s) V': U float64 (rows, columns), s (columns,) descending, V' (columns, columns), on the device.

    ``condition`` is the condition number of A, infinite where it was too large to tell; ``cholesky`` says whether
    CholeskyQR2 was used, or TSQR.
    """

    u: Any
    s: Any
    vt: Any
    condition: float
    cholesky: bool


@dataclass(frozen=True)
class Parts:
    """Contiguous parts of the rows of a matrix, one for each thread, which go through them in blocks."""

    device: Device
    pool: Executor
    bounds: tuple[range, ...]

    def each(self, function: Callable[[range], Any]) -> list[Any]:
        """Return what a function makes of the rows of each part, in order."""
        return list(self.pool.map(function, self.bounds))

    def blocks(self, rows: range) -> Iterator[slice]:
        """Yield the blocks of a part."""
        step = max(1, self.device.slice_rows // BLOCKS_OF_SLICE)
        for start in range(rows.start, rows.stop, step):
            yield slice(start, min(start + step, rows.stop))


def tall_svd(a: Any, *, device: Device, pool: Executor, threads: int) -> TallSvd:
    """Return the SVD of a matrix, float64 (rows, columns) with at least as many rows as columns, as LAPACK would.

    Numbers that are not finite are refused by the array library's own decomposition.
    """
    rows = len(a)
    cuts = [rows * part // threads for part in range(threads + 1)]
    parts = Parts(device, pool, tuple(range(start, stop) for start, stop in pairwise(cuts)))
    gram = sum(parts.each(partial(_gram, a, parts)))
    condition = _condition(gram, device=device)
    if condition > largest_condition(a.shape):
        return _by_householder(a, parts, condition=condition)
    return _by_cholesky(a, parts, gram=gram, condition=condition)


def largest_condition(shape: tuple[int, int]) -> float:
    """Return the condition number up to which CholeskyQR2 is used for a matrix of that shape.

    The first Q is far enough from singular while ``8 condition sqrt((rows columns + columns (columns + 1)) u) <= 1``,
    which is the theorem's assumption.
    """
    rows, columns = shape
    return min(LARGEST_CONDITION, 1 / (8 * sqrt((rows * columns + columns * (columns + 1)) * UNIT_ROUNDOFF)))


def _condition(gram: Any, *, device: Device) -> float:
    """Return the condition number of the matrix that has this Gram matrix, infinite where rounding hides it."""
    xp = device.xp
    if not bool(xp.isfinite(gram).all()):
        return inf
    eigenvalues = xp.linalg.eigvalsh(gram)
    smallest, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    return sqrt(largest / smallest) if smallest > 0 else inf


def _by_cholesky(a: Any, parts: Parts, *, gram: Any, condition: float) -> TallSvd:
    xp = parts.device.xp
    r_1 = xp.linalg.cholesky(gram).T
    to_q_1 = xp.linalg.inv(r_1)
    r_2 = xp.linalg.cholesky(sum(parts.each(partial(_gram_of_product, a, to_q_1, parts)))).T
    u_of_r, s, vt = xp.linalg.svd(r_2 @ r_1)
    u = xp.empty(a.shape)
    # Q_1 is made again, block by block, which is faster than to write and to read it.
    parts.each(partial(_multiply_twice, a, (to_q_1, xp.linalg.inv(r_2) @ u_of_r), u, parts))
    return TallSvd(u, s, vt, condition, cholesky=True)


def _gram(a: Any, parts: Parts, rows: range) -> Any:
    xp, columns = parts.device.xp, a.shape[1]
    total = xp.zeros((columns, columns))
    for block in parts.blocks(rows):
        # Of a copy: NumPy multiplies a matrix by its own transpose with a routine that is slower for few columns.
        total += a[block].T @ a[block].copy()
    return (total + total.T) / 2


def _gram_of_product(a: Any, right: Any, parts: Parts, rows: range) -> Any:
    xp, columns = parts.device.xp, a.shape[1]
    total = xp.zeros((columns, columns))
    for block in parts.blocks(rows):
        product = a[block] @ right
        total += product.T @ product
    return total


def _multiply_twice(a: Any, by: tuple[Any, Any], out: Any, parts: Parts, rows: range) -> None:
    xp = parts.device.xp
    first, second = by
    for block in parts.blocks(rows):
        xp.matmul(a[block] @ first, second, out=out[block])


def _by_householder(a: Any, parts: Parts, *, condition: float) -> TallSvd:
    xp = parts.device.xp
    factors = [factor for part in parts.each(partial(_factors, a, parts)) for factor in part]
    q_of_r, r = xp.linalg.qr(xp.concatenate([r for _, _, r in factors]))
    u_of_r, s, vt = xp.linalg.svd(r)
    u = xp.empty(a.shape)
    list(parts.pool.map(partial(_multiply_factor, u), factors, _stacked(q_of_r @ u_of_r, factors)))
    return TallSvd(u, s, vt, condition, cholesky=False)


def _factors(a: Any, parts: Parts, rows: range) -> list[tuple[slice, Any, Any]]:
    return [(block, *parts.device.xp.linalg.qr(a[block])) for block in parts.blocks(rows)]


def _stacked(matrix: Any, factors: Sequence[tuple[slice, Any, Any]]) -> Iterator[Any]:
    """Yield the rows of a matrix that belong to each factor R."""
    start = 0
    for _, _, r in factors:
        yield matrix[start : start + len(r)]
        start += len(r)


def _multiply_factor(out: Any, factor: tuple[slice, Any, Any], right: Any) -> None:
    block, q, _ = factor
    out[block] = q @ right
