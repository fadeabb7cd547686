"""R9: the 10 leading components of a matrix of random numbers that is larger than memory.

1e6 x 2e4 float64, uniform in [0, 1), in chunks of 20000 x 5000: ``svd_compressed(x, k=10, compute=True)``, of which v
is computed, in a few GB of memory. That is 160 GB; the source, whose laptop took 150 s, calls it 20 GB. ``scale`` is of
the bytes: both edges shrink by its root, and there are always 50 x 4 chunks.

Each variant draws its own numbers, so the answer says whether the result is one that a correct sample gives. Take
x = 1/2 + noise of variance 1/12, m x n. Its largest singular value is ``sqrt(m n / 4 + (m + n) / 12)`` give or take a
standard error of ``sqrt(1/12)``, on constant vectors; those of the noise end at ``(sqrt(m) + sqrt(n)) / sqrt(12)``
(Benaych-Georges and Nadakuditi, Journal of Multivariate Analysis 111, 2012).

- Nothing captured exceeds what is there: the leading value is at most 5 standard errors above. With no power
  iterations a sample falls short: its best vector is off the constant one by an angle whose squared tangent is
  ``1 / (3 c)``, where c, chi-square with 20 degrees of freedom, is below 2 once in 9 million. So the leading value is
  at least 0.92 of the largest.
- The right vector that goes with it is nearer to the constant one: what it has of the noise is less by the ratio of the
  noise's end to the largest value, 0.09 for 2500 x 50 and less for more, so that their cosine is above 0.98. Without a
  chunk of columns it would be 0.87.
- What is captured of the noise is near ``sqrt((m + n) / 12)`` for every direction, 0.885 of the noise's end; the tenth
  value is between 0.8 and 1.02 of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import ceil, sqrt
from typing import Any

import numpy as np
from pydantic import JsonValue

from benchmarks.published.dask_cluster import dask_client
from benchmarks.published.row import BOTH, ONE_BLAS_THREAD, SEED, CallCase, Published, Row, Timed, Variant, Work
from benchmarks.report import Size
from whitewater.engines import Device

ROWS, COLUMNS, ROW_CHUNKS, COLUMN_CHUNKS = 1_000_000, 20_000, 50, 4
COMPONENTS, OVERSAMPLES = 10, 10
FEWEST = 2500, 50
VARIANCE, MEAN = 1 / 12, 1 / 2
LEAST_LEADING, STANDARD_ERRORS, LEAST_COSINE, TENTH = 0.92, 5.0, 0.98, (0.8, 1.02)
PRECISION = 1e-10

Components = tuple[Any, Any]


def shape(work: Work) -> tuple[int, int]:
    """Return rows and columns, at least those for which the bounds of the answer hold."""
    return max(FEWEST[0], round(ROWS * sqrt(work.scale))), max(FEWEST[1], round(COLUMNS * sqrt(work.scale)))


def chunk_shape(work: Work) -> tuple[int, int]:
    """Return rows and columns of a chunk."""
    rows, columns = shape(work)
    return ceil(rows / ROW_CHUNKS), ceil(columns / COLUMN_CHUNKS)


def size(work: Work) -> Size:
    """Return the rows and bytes of the numbers, each of which is drawn once at least."""
    rows, columns = shape(work)
    return Size(rows=rows, bytes=8 * rows * columns, basis="memory")


def operations(work: Work) -> float:
    """Return those of the two products of the matrix with a narrow one."""
    rows, columns = shape(work)
    return 2.0 * 2.0 * rows * columns * (COMPONENTS + OVERSAMPLES)


def answer(work: Work, components: Components) -> JsonValue:
    """Return the shape of v, and whether v is orthogonal and the singular values are those of such a matrix."""
    s, v = (work.device.to_host(each) for each in components)
    rows, columns = shape(work)
    largest = sqrt(rows * columns * MEAN**2 + (rows + columns) * VARIANCE)
    noise = (sqrt(rows) + sqrt(columns)) * sqrt(VARIANCE)
    return {
        "shape": list(v.shape),
        "orthogonal": bool(abs(v @ v.T - np.eye(len(v))).max() < PRECISION),
        "leading": bool(LEAST_LEADING * largest <= s[0] <= largest + STANDARD_ERRORS * sqrt(VARIANCE)),
        "constant": bool(abs(v[0].sum()) / sqrt(columns) > LEAST_COSINE),
        "tenth": bool(TENTH[0] * noise <= s[COMPONENTS - 1] <= TENTH[1] * noise),
    }


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Dask, as it was written, with the wider fusion of tasks that the source turns on; x is drawn for each pass."""
    import dask
    import dask.array as da

    with dask_client(work.device, work.cluster, threads=work.threads) as client:

        def call() -> Components:
            x = da.random.random(size=shape(work), chunks=chunk_shape(work))
            with dask.config.set({"optimization.fuse.ave-width": 5}):
                _, s, v = da.linalg.svd_compressed(x, k=COMPONENTS, compute=True)
                computed: Components = client.gather(client.compute((s, v)))
            return computed

        yield Timed(call, answer=partial(answer, work))


@contextmanager
def one_pass(work: Work) -> Iterator[Timed]:
    """Blocks of rows on threads, drawn once into a buffer of the size of the cache, of which both products are made.

    With R, the Cholesky factor of Y'Y, where Y = x W, an orthonormal basis Q of Y is Y R**-1, and Q'x is R**-T (Y'x).
    Y'Y and Y'x add up over blocks of rows, so that x is seen once, as long as Y is well conditioned, as it is here.
    """
    xp, (rows, columns) = work.device.xp, shape(work)
    test_matrix = work.device.to_device(
        np.random.default_rng(SEED).standard_normal((columns, COMPONENTS + OVERSAMPLES))
    )
    step = chunk_shape(work)[0]
    tasks = [range(start, min(start + step, rows)) for start in range(0, rows, step)]
    with ThreadPoolExecutor(work.threads) as pool:

        def call() -> Components:
            yy, yx = map(sum, zip(*pool.map(partial(products, work.device, test_matrix), tasks), strict=True))
            _, s, vt = xp.linalg.svd(xp.linalg.inv(xp.linalg.cholesky(yy)) @ yx, full_matrices=False)
            return s[:COMPONENTS], vt[:COMPONENTS]

        yield Timed(call, answer=partial(answer, work))


def products(device: Device, test_matrix: Any, rows: range) -> tuple[Any, Any]:
    """Draw rows x of the matrix, block by block, and return Y'Y and Y'x, Y being x times the test matrix."""
    xp, (columns, width) = device.xp, test_matrix.shape
    generator = xp.random.default_rng(SEED + rows.start)
    yy, yx = xp.zeros((width, width)), xp.zeros((width, columns))
    buffer = xp.empty((max(1, min(len(rows), 2 * device.slice_rows // columns)), columns))
    for start in range(rows.start, rows.stop, len(buffer)):
        x = buffer[: rows.stop - start]
        # Without a size CuPy draws one number, for all of ``out``.
        generator.random(x.shape, out=x)
        y = x @ test_matrix
        yy += y.T @ y
        yx += y.T @ x
    return yy, yx


@contextmanager
def in_memory(work: Work) -> Iterator[Timed]:
    """scikit-learn, with the whole matrix in memory, as far as it fits."""
    from sklearn.utils.extmath import randomized_svd

    generator = np.random.default_rng(SEED)

    def call() -> Components:
        _, s, v = randomized_svd(
            generator.random(shape(work)),
            n_components=COMPONENTS,
            n_oversamples=OVERSAMPLES,
            n_iter=0,
            random_state=SEED,
        )
        return s, v

    yield Timed(call, answer=partial(answer, work))


ROW = Row(
    id="R9",
    name="svd_compressed",
    title="10 leading components of a 1e6 x 2e4 matrix of random numbers, which is not kept",
    cases=(
        CallCase(
            name="",
            variants=(
                Variant("tuned", one_pass, devices=BOTH, environment=ONE_BLAS_THREAD),
                Variant("as_published", as_published, devices=BOTH, environment=ONE_BLAS_THREAD),
                Variant("scikit_learn", in_memory, packages=("sklearn",), memory=2.2),
            ),
            oracle="as_published",
            size=size,
            operations=operations,
            published=(Published("Dask, laptop", 150.0),),
        ),
    ),
)
