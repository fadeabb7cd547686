"""R10: the ten leading singular vectors of simulated genotypes that stay in memory.

``x = randint(0, 3, (1e7, 2e4), uint8)``, persisted; ``u, s, v = svd_compressed(x, k=10)`` and ``v.compute()``: the
randomized method of Halko, Martinsson and Tropp (SIAM Review 53, 2011) with a sketch of 20 columns and no power
iterations, which multiplies x twice. Such data is noise around a mean: the first singular value stands far above the
second, and all further ones are nearly equal. Both edges follow the root of the scale; chunks are those published.

Ours keeps x in two bits a genotype and needs one pass. With a sketch O, W = X' X O holds all that the method uses: with
the Cholesky factor L of O' W = (X O)' (X O), the orthonormal basis is Q = X O L'^-1, and (Q' X)' = W L'^-1.

What is compared: the length of X along the first vector, which the published method finds to about 0.01 / columns;
the sum of the x that is held; whether the vectors are orthonormal; whether the other nine hold more of X than
directions at random do, which one multiplication by X' makes sure of; and how far the singular values are below the
length of X along their vectors: the first at most 5 % (the published method expects 1.7 %, and less than 5 % in 999 of
1000 sketches), the others 0.5 % in the mean (0.1 % by the moments of such noise, at any scale), so that no hundredth of
the rows can have been left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from benchmarks.published.dask_cluster import dask_client
from benchmarks.published.dask_spill import limited_client, spilled
from benchmarks.published.row import BOTH, ONE_BLAS_THREAD, SEED, CallCase, Published, Row, Timed, Variant, Work
from benchmarks.published.two_bit import packed, slabs, whole_bytes
from benchmarks.report import Size
from whitewater.engines import Device
from whitewater.genotypes.genotypes import Genotypes

ROWS, COLUMNS = 10_000_000, 20_000
CHUNK = (20_000, 5_000)
COMPONENTS, OVERSAMPLES = 10, 10
SKETCH = COMPONENTS + OVERSAMPLES
# Of the bytes of x, what the workers of case `limited` may hold.
HELD = 0.5
LOWEST_FIRST, LOWEST_OTHERS = 0.95, 0.995
# float32 leaves so much between the products of unit vectors and 0 or 1.
ROUNDING = 1e-5
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Svd:
    """Singular values (k,), descending, and right singular vectors as rows, (k, columns); on any device."""

    values: Any
    vectors: Any


def shape(work: Work) -> tuple[int, int]:
    """Return rows and columns of x; both edges follow the root of the scale."""
    edge = sqrt(work.scale)
    return max(SKETCH, round(ROWS * edge)), max(SKETCH, whole_bytes(COLUMNS * edge))


def cells(work: Work) -> int:
    """Return the number of genotypes, which is that of bytes of x."""
    rows, columns = shape(work)
    return rows * columns


def cuts(length: int, step: int) -> list[int]:
    """Return where chunks of a length begin, and where the last one ends."""
    return [*range(0, length, step), length]


def draw(row: int, column: int, height: int, width: int) -> npt.NDArray[np.uint8]:
    """Return the chunk of x that begins at a row and a column: the same numbers wherever it is drawn."""
    return np.random.default_rng([SEED, row, column]).integers(0, 3, (height, width), dtype=np.uint8)


def band(row: int, stop: int, columns: int) -> npt.NDArray[np.uint8]:
    """Return all columns of some rows of x."""
    edges = pairwise(cuts(columns, CHUNK[1]))
    return np.concatenate([draw(row, left, stop - row, right - left) for left, right in edges], axis=1)


def bands(work: Work) -> list[tuple[int, int]]:
    """Return first row and end of each row of chunks."""
    return list(pairwise(cuts(shape(work)[0], CHUNK[0])))


# -------------------------------------------------------------------------------------------------- the published code


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Dask's `svd_compressed` of persisted chunks of 20000 x 5000, NumPy's or CuPy's."""
    with dask_client(work.device, work.cluster, threads=work.threads):
        yield persisted(work)


def persisted(work: Work, phases: Callable[[], dict[str, float]] = dict) -> Timed:
    """Persist x on the workers of Dask's current client, and return the call that decomposes it."""
    import dask.array as da
    from dask.base import compute
    from distributed import wait

    x = dask_array(work).persist()
    wait(x)

    def decompose() -> Svd:
        _, s, v = da.linalg.svd_compressed(x, k=COMPONENTS, seed=SEED)
        return Svd(*compute(s, v))

    return Timed(decompose, answer=Judge(work, int(x.sum(dtype=np.int64).compute())).answer, phases=phases)


def dask_array(work: Work) -> Any:
    """Return x as a Dask array of the device's chunks, not computed yet."""
    import dask.array as da

    sizes = tuple(tuple(np.diff(cuts(*each)).tolist()) for each in zip(shape(work), CHUNK, strict=True))
    empty = work.device.xp.empty((0, 0), np.uint8)
    return da.map_blocks(drawn_at, device=work.device, chunks=sizes, dtype=np.uint8, meta=empty)


def drawn_at(device: Device, block_info: Any = None) -> Any:
    """Return the chunk at a place that Dask names, on the device."""
    (row, bottom), (column, right) = block_info[None]["array-location"]
    return device.to_device(draw(row, column, bottom - row, right - column))


@contextmanager
def limited(work: Work) -> Iterator[Timed]:
    """Run Dask on workers that hold half of the data together, and write the rest to disk."""
    with limited_client(work, int(cells(work) * HELD)) as client:
        yield persisted(work, partial(spilled, client))


# ---------------------------------------------------------------------------------------------------------------- ours


@contextmanager
def in_two_bits(work: Work) -> Iterator[Timed]:
    """Two bits a genotype on the workers; looked up slab by slab, and multiplied twice while they are in the cache.

    That is a fourth of the bytes of x, and within the limit of case `limited`, where nothing is spilled.
    """
    device, columns = work.device, shape(work)[1]
    with device.workers(work.cluster, threads=work.threads) as workers:
        tasks = [(*bounds, columns, device) for bounds in bands(work)]
        held = workers.keep_results(packed_band, tasks)
        judge = Judge(work, sum(total for _, total in workers.as_completed(sum_of, held, {"device": device})))

        def decompose() -> Svd:
            sketch, empty = orthonormal_sketch(columns), Genotypes(np.empty((0, columns // 4), np.uint8), columns)
            places = empty.sample_columns(np)
            shared = {"block": sketch[np.argsort(places)].astype(np.float32), "device": device}
            total = np.zeros((SKETCH, columns))
            for _, product in workers.as_completed(products, held, shared):
                total += product
            return svd_of_sketch(sketch, np.ascontiguousarray(total.T[places]))

        yield Timed(decompose, answer=judge.answer)


def packed_band(row: int, stop: int, columns: int, device: Device) -> Genotypes:
    """Return some rows of x in two bits a genotype, on the device."""
    return packed(device.to_device(band(row, stop, columns)), device)


def sum_of(genotypes: Genotypes, *, device: Device) -> int:
    """Return the sum of all genotypes."""
    return sum(int(slab.sum(dtype=np.float64)) for _, slab in slabs(genotypes, device))


def products(genotypes: Genotypes, *, block: Any, device: Device) -> Floats:
    """Return (X' X block)' of some rows X, float64 (k, columns): float32 in a slab, float64 over them; on the host.

    It is transposed, since BLAS is faster with the long side of a narrow result along its rows.
    """
    xp = device.xp
    placed = device.to_device(block)
    total = xp.zeros(placed.shape[::-1], xp.float64)
    product = xp.empty(placed.shape[::-1], xp.float32)
    for _, slab in slabs(genotypes, device):
        xp.matmul((slab @ placed).T, slab, out=product)
        total += product
    return device.to_host(total)


def orthonormal_sketch(columns: int) -> Floats:
    """Return a random basis, (columns, 20), of uniform direction."""
    return np.asarray(np.linalg.qr(np.random.default_rng(SEED).standard_normal((columns, SKETCH)))[0], np.float64)


def svd_of_sketch(sketch: Floats, image: Floats) -> Svd:
    """Return the SVD of Q' X from a sketch and its image X' X sketch, Q being a basis of X times the sketch."""
    inner = sketch.T @ image
    factor = np.linalg.cholesky((inner + inner.T) / 2)
    vectors, values, _ = np.linalg.svd(np.linalg.solve(factor, image.T).T, full_matrices=False)
    return Svd(values[:COMPONENTS], vectors.T[:COMPONENTS])


# --------------------------------------------------------------------------------------------------------------- peers


@contextmanager
def scikit_learn(work: Work) -> Iterator[Timed]:
    """scikit-learn's `randomized_svd` without power iterations, as published; x is float32, four times the bytes."""
    from sklearn.utils.extmath import randomized_svd

    x = np.empty(shape(work), np.float32)
    for row, stop in bands(work):
        x[row:stop] = band(row, stop, x.shape[1])

    def decompose() -> Svd:
        _, s, v = randomized_svd(x, COMPONENTS, n_oversamples=OVERSAMPLES, n_iter=0, random_state=SEED)
        return Svd(s, v)

    yield Timed(decompose, answer=Judge(work, int(x.sum(dtype=np.float64))).answer)


# -------------------------------------------------------------------------------------------------------------- answer


@dataclass
class Judge:
    """Answers for singular vectors, by one pass over x in float64; equal vectors are judged once.

    ``held`` is the sum of the x that they were computed from.
    """

    work: Work
    held: int
    known: dict[bytes, JsonValue] = field(default_factory=dict)

    def answer(self, found: Svd) -> JsonValue:
        """Return what is compared; see the head of this module."""
        values, vectors = (
            np.asarray(self.work.device.to_host(each), np.float64) for each in (found.values, found.vectors)
        )
        key = values.tobytes() + vectors.tobytes()
        if key not in self.known:
            self.known[key] = self._judged(values, vectors)
        return self.known[key]

    def _judged(self, values: Floats, vectors: Floats) -> JsonValue:
        rows, columns = shape(self.work)
        along, total = captured(self.work, vectors)
        at_random = (total - along[0]) / (columns - 1)
        others = sqrt((values[1:] ** 2).sum() / along[1:].sum())
        return {
            "rows": rows,
            "columns": columns,
            "sum": self.held,
            "length along the first vector": sqrt(along[0]),
            "orthonormal": bool(np.abs(vectors @ vectors.T - np.eye(COMPONENTS)).max() < ROUNDING),
            "others hold more than at random": bool(along[1:].mean() > at_random),
            "first singular value": LOWEST_FIRST < float(values[0]) / sqrt(along[0]) < 1 + ROUNDING,
            "other singular values": LOWEST_OTHERS < others < 1 + ROUNDING,
        }


def captured(work: Work, vectors: Floats) -> tuple[Floats, float]:
    """Return the squared length of X along each vector, (k,), and that of X in all, by NumPy in float64."""

    def of_band(bounds: tuple[int, int]) -> tuple[Floats, float]:
        along, squares = np.zeros(len(vectors)), 0
        values = band(*bounds, vectors.shape[1])
        for start in range(0, len(values), 1000):
            part = values[start : start + 1000].astype(np.float64)
            along += ((part @ vectors.T) ** 2).sum(axis=0)
            squares += (part**2).sum()
        return along, float(squares)

    with ThreadPoolExecutor(work.threads) as pool:
        parts = list(pool.map(of_band, bands(work)))
    return np.sum([along for along, _ in parts], axis=0), sum(squares for _, squares in parts)


PUBLISHED = (Published("16 GPUs of a DGX-2, at least", 10.0), Published("16 GPUs of a DGX-2, at most", 15.0))
AS_PUBLISHED = Variant("as_published", as_published, devices=BOTH, environment=ONE_BLAS_THREAD, memory=2.0)
OURS = Variant("tuned", in_two_bits, devices=BOTH, environment=ONE_BLAS_THREAD, memory=0.4)


def size(work: Work) -> Size:
    """Return rows and bytes of x."""
    return Size(rows=shape(work)[0], bytes=cells(work), basis="memory")


def operations(work: Work) -> float:
    """Return the operations of two products of x with the sketch's columns."""
    return 4.0 * cells(work) * SKETCH


ROW = Row(
    id="R10",
    name="svd_genotypes",
    title="`svd_compressed(k=10)` of 1e7 x 2e4 random genotypes, uint8, held in memory",
    cases=(
        CallCase(
            name="",
            variants=(OURS, AS_PUBLISHED, Variant("scikit_learn", scikit_learn, memory=4.5)),
            oracle="as_published",
            size=size,
            operations=operations,
            tolerance=1e-4,
            published=PUBLISHED,
        ),
        CallCase(
            name="limited",
            # On a GPU cuDF's frames are spilled, CuPy's arrays are not: there Dask has no such case.
            variants=(OURS, Variant("as_published", limited, environment=ONE_BLAS_THREAD, memory=HELD, disk=1.0)),
            oracle="as_published",
            size=size,
            operations=operations,
            tolerance=1e-4,
        ),
    ),
)
