"""R8: the exact singular value decomposition of a matrix with many rows and 20 columns.

1e7 x 20 float64, 1.6 GB, uniform in [0, 1), one chunk wide and 16 chunks long: ``da.linalg.svd(x)``. All variants are
given the same numbers, and compute U, s and V'. The answer is the singular values, and whether U is orthogonal and the
product of the factors is x as precisely as LAPACK makes them. At full scale each variant takes about 6 GB of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import ceil, sqrt
from typing import Any

import dask
import dask.array as da
import numpy as np
from pydantic import JsonValue

from benchmarks.published.dask_cluster import dask_client
from benchmarks.published.row import BOTH, ONE_BLAS_THREAD, SEED, CallCase, Row, Timed, Variant, Work
from benchmarks.report import Size
from whitewater.engines import Device
from whitewater.errors import IntegrityError

ROWS, COLUMNS, CHUNKS = 10_000_000, 20, 16
# Of U'U from the identity, and of U s V' from x, relative to x; LAPACK's own errors are about 1e-14.
PRECISION = 1e-12
# Of `tuned`: at a condition number of 100 the product of the factors is x to 1e-13.
LARGEST_CONDITION = 100.0
# Blocks of 2048 rows of 20 columns and what is made of them stay in the cache of a core.
BLOCKS_OF_SLICE = 64

Factors = tuple[Any, Any, Any]


def rows(work: Work) -> int:
    """Return the rows of the matrix, no fewer than its columns."""
    return max(COLUMNS, round(ROWS * work.scale))


def chunk_rows(work: Work) -> int:
    """Return the rows of a chunk, no fewer than its columns, as Dask's algorithm needs."""
    return max(COLUMNS, ceil(rows(work) / CHUNKS))


def lazily_drawn(work: Work) -> Any:
    """Return the matrix as an array of Dask, which NumPy draws whatever the device is: the same numbers everywhere."""
    with dask.config.set({"array.backend": "numpy"}):
        return da.random.default_rng(SEED).random((rows(work), COLUMNS), chunks=(chunk_rows(work), COLUMNS))


def draw(work: Work) -> Any:
    """Return the matrix, on the host."""
    return lazily_drawn(work).compute(scheduler="threads", num_workers=work.threads)


def accuracy(blocks: Iterable[tuple[Any, Any]], s: Any, vt: Any) -> JsonValue:
    """Return the singular values, and whether the factors are what they should be.

    ``blocks`` are the rows of x and of U; all arrays are on the host.
    """
    gram = np.zeros((len(s), len(s)))
    residual = norm = 0.0
    for x, u in blocks:
        gram += u.T @ u
        residual += float(np.square(x - (u * s) @ vt).sum())
        norm += float(np.square(x).sum())
    return {
        "singular_values": [float(value) for value in s],
        "orthogonal": bool(abs(gram - np.eye(len(s))).max() < PRECISION),
        "product_is_x": sqrt(residual / norm) < PRECISION,
    }


def of_host(x: Any, chunk: int, factors: Sequence[Any]) -> JsonValue:
    """Return the answer, of factors on the host."""
    u, s, vt = factors
    starts = range(0, len(x), chunk)
    return accuracy(((x[start : start + chunk], u[start : start + chunk]) for start in starts), s, vt)


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Dask, as it was written: the QR decomposition of each chunk, and of their factors R, stacked."""
    from distributed import wait

    device = work.device
    with dask_client(device, work.cluster, threads=work.threads) as client:
        x = lazily_drawn(work).map_blocks(device.to_device, meta=device.xp.empty((0, 0))).persist()
        wait(x)

        def call() -> Factors:
            factors: Factors = client.persist(da.linalg.svd(x))
            wait(factors)
            return factors

        def answer(factors: Factors) -> JsonValue:
            u, s, vt = factors
            chunks = ((on_host(x.blocks[i]), on_host(u.blocks[i])) for i in range(x.numblocks[0]))
            return accuracy(chunks, on_host(s), on_host(vt))

        def on_host(array: Any) -> Any:
            return device.to_host(array.compute())

        yield Timed(call, answer=answer)


@contextmanager
def cholesky(work: Work) -> Iterator[Timed]:
    """CholeskyQR2 in blocks of rows on threads, for matrices that are well conditioned, as this one is.

    Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, Roundoff error analysis of the CholeskyQR2 algorithm, ETNA 44, 2015.
    """
    device, x = work.device, draw(work)
    with ThreadPoolExecutor(work.threads) as pool:
        yield Timed(
            partial(cholesky_svd, device.to_device(x), device=device, pool=pool),
            answer=lambda factors: of_host(x, chunk_rows(work), [device.to_host(each) for each in factors]),
        )


def cholesky_svd(a: Any, *, device: Device, pool: Executor) -> Factors:
    """Return U, s and V' of a matrix, float64 (rows, columns): R from its Gram matrix, and again from that of Q.

    Raises
    ------
    IntegrityError
        If the condition number is too large, above 100, for Cholesky's factors.
    """
    xp, step = device.xp, max(1, device.slice_rows // BLOCKS_OF_SLICE)
    blocks = [slice(start, start + step) for start in range(0, len(a), step)]
    gram = sum(pool.map(lambda block: a[block].T @ a[block].copy(), blocks))
    values = xp.linalg.eigvalsh(gram)
    if not bool(values[-1] <= LARGEST_CONDITION**2 * values[0]):
        raise IntegrityError("The matrix is too ill-conditioned for CholeskyQR2. Decompose it by Householder's QR.")
    r_1 = xp.linalg.cholesky(gram).T
    inverse = xp.linalg.inv(r_1)

    def gram_of_q(block: slice) -> Any:
        q = a[block] @ inverse
        return q.T @ q

    r_2 = xp.linalg.cholesky(sum(pool.map(gram_of_q, blocks))).T
    u_of_r, s, vt = xp.linalg.svd(r_2 @ r_1)
    u, right = xp.empty(a.shape), xp.linalg.inv(r_2) @ u_of_r
    # The first Q is made again, block by block, which is faster than to write and to read it.
    list(pool.map(lambda block: xp.matmul(a[block] @ inverse, right, out=u[block]), blocks))
    return u, s, vt


@contextmanager
def numpy_svd(work: Work) -> Iterator[Timed]:
    """LAPACK's divide and conquer, through NumPy."""
    yield _lapack(work, partial(np.linalg.svd, full_matrices=False))


@contextmanager
def scipy_svd(work: Work) -> Iterator[Timed]:
    """LAPACK's divide and conquer, through SciPy."""
    from scipy import linalg

    yield _lapack(work, partial(linalg.svd, full_matrices=False, lapack_driver="gesdd"))


def _lapack(work: Work, svd: Callable[[Any], Factors]) -> Timed:
    x = draw(work)
    return Timed(partial(svd, x), answer=partial(of_host, x, chunk_rows(work)))


ROW = Row(
    id="R8",
    name="svd_tall",
    title="exact singular value decomposition of a 1e7 x 20 matrix",
    cases=(
        CallCase(
            name="",
            variants=(
                Variant("tuned", cholesky, devices=BOTH, environment=ONE_BLAS_THREAD, memory=2.5),
                Variant("as_published", as_published, devices=BOTH, environment=ONE_BLAS_THREAD, memory=3.0),
                Variant("numpy", numpy_svd, memory=4.2),
                Variant("scipy", scipy_svd, memory=3.5),
            ),
            oracle="numpy",
            size=lambda work: Size(rows=rows(work), bytes=8 * rows(work) * COLUMNS, basis="memory"),
            # QR, Q and U, by Golub and Van Loan, Matrix Computations, 2013, figure 8.6.1.
            operations=lambda work: 6.0 * rows(work) * COLUMNS**2 + 20.0 * COLUMNS**3,
        ),
    ),
)
