"""R7: a sum over a matrix of random numbers that is larger than memory.

500000 x 500000 float64, 2 TB: ``x = normal(10, 1)`` in chunks of 10000 x 10000, ``(x + 1)[::2, ::2].sum()``. ``scale``
is that of the bytes. Chunks are as published, but at least 8 to an edge, so that there is something to share out.

Every number is drawn, and none is kept. What is drawn depends on the variant and the device, so the answer is the
number of cells that were summed, and whether their mean is within 5 standard errors of 11: that of right numbers is
further off once in 1.7 million times.

The published code never holds the matrix: Dask draws a chunk, adds it up, and drops it. So in the case ``limited`` x is
kept, as it must be by whoever needs the same x again: at most a sixteenth of it in memory, and the rest on disk, at
every scale. That is the set-up; the call is ``(x + 1)[::2, ::2].sum()`` of what was kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import ceil, isqrt, sqrt
from typing import Any, NamedTuple

import numpy as np
from pydantic import JsonValue

from benchmarks.published.dask_spill import limited_client, spilled
from benchmarks.published.kept_rows import KeptRows, keep
from benchmarks.published.random_streams import stream
from benchmarks.published.row import BOTH, SEED, CallCase, Published, Row, Timed, Variant, Work
from benchmarks.report import Size
from whitewater.devices import Device

EDGE, CHUNK, FEWEST_CHUNKS = 500_000, 10_000, 8
MEAN, DEVIATION = 10.0, 1.0
STANDARD_ERRORS = 5.0
# The share of the matrix that all workers may hold together in the case `limited`: 4 of 64 chunks at least.
LIMIT = 1 / 16


class Total(NamedTuple):
    """The sum of the cells that were chosen, and how many those are."""

    sum: float
    cells: int


@dataclass(frozen=True)
class Chunk:
    """Rows and columns of the matrix that one task draws; ``first`` is the number of its first random number."""

    rows: range
    columns: range
    first: int


def edge(work: Work) -> int:
    """Return rows and columns of the matrix."""
    return max(1, isqrt(round(EDGE * EDGE * work.scale)))


def chunk_edge(work: Work) -> int:
    """Return rows and columns of a chunk."""
    return min(CHUNK, ceil(edge(work) / FEWEST_CHUNKS))


def size(work: Work) -> Size:
    """Return the rows, and the bytes of the numbers that are drawn."""
    return Size(rows=edge(work), bytes=8 * edge(work) ** 2, basis="memory")


def answer(total: Total) -> JsonValue:
    """Return the number of cells, exactly, and whether their mean can be that of x + 1."""
    off = abs(float(total.sum) / total.cells - (MEAN + 1))
    return {
        "cells": total.cells,
        "mean_within_5_standard_errors": off <= STANDARD_ERRORS * DEVIATION / sqrt(total.cells),
    }


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Dask, as it was written."""
    with work.device.dask_client(work.cluster, threads=work.threads):
        yield Timed(lambda: sum_of_even(lazily_drawn(work)), answer=answer)


def lazily_drawn(work: Work) -> Any:
    """Return the matrix as an array of Dask, not yet computed."""
    import dask.array as da

    n, chunk = edge(work), chunk_edge(work)
    return da.random.normal(10, 1, size=(n, n), chunks=(chunk, chunk))


def sum_of_even(x: Any) -> Total:
    """Add up x + 1 of every other row and column, by Dask."""
    y = (x + 1)[::2, ::2]
    return Total(y.sum().compute(), y.size)


@contextmanager
def as_published_limited(work: Work) -> Iterator[Timed]:
    """Dask of persisted chunks, which workers write to disk above the limit, and read again."""
    from distributed import wait

    with limited_client(work, limit(work)) as client:
        x = lazily_drawn(work).persist()
        wait(x)
        yield Timed(partial(sum_of_even, x), answer=answer, phases=partial(spilled, client))


def size_of_kept(work: Work) -> Size:
    """Return the size of x where it is kept, nearly all of it in files."""
    return size(work).model_copy(update={"basis": "file"})


def limit(work: Work) -> int:
    """Return the bytes of the matrix that may be in memory in the case `limited`."""
    return int(LIMIT * size(work).bytes)


@contextmanager
def numpy_at_once(work: Work) -> Iterator[Timed]:
    """NumPy, the whole matrix at once, as far as it fits into memory."""
    n, generator = edge(work), np.random.default_rng(SEED)

    def call() -> Total:
        y = (generator.normal(10, 1, size=(n, n)) + 1)[::2, ::2]
        return Total(y.sum(), y.size)

    yield Timed(call, answer=answer)


@contextmanager
def streamed(work: Work) -> Iterator[Timed]:
    """Chunks on threads; each draws into a buffer of the size of the cache, again and again, and adds up from there."""
    grid = chunks(edge(work), chunk_edge(work))
    with ThreadPoolExecutor(work.threads) as pool:
        of_chunk = partial(sum_of_chunk, work.device)

        def call() -> Total:
            totals = list(pool.map(of_chunk, grid))
            return Total(sum(float(total.sum) for total in totals), sum(total.cells for total in totals))

        yield Timed(call, answer=answer)


@contextmanager
def kept(work: Work) -> Iterator[Timed]:
    """Rows in memory up to the limit, the others in a file, read on threads into buffers of the size of the cache."""
    device, n = work.device, edge(work)
    numbers, file = stream(device, seed=SEED, first=0), work.folder / "kept"

    def fill(_: int, rows: int) -> Any:
        block = device.xp.empty((rows, n))
        numbers.normal(block)
        return device.to_host(block * DEVIATION + MEAN)

    matrix = keep(fill, (n, n), limit=limit(work), threads=work.threads, block_cells=device.slice_rows // 4, file=file)
    tasks = [range(start, min(start + chunk_edge(work), n)) for start in range(0, n, chunk_edge(work))]
    with ThreadPoolExecutor(work.threads) as pool:

        def call() -> Total:
            totals = list(pool.map(partial(sum_of_kept, device, matrix), tasks))
            return Total(sum(total.sum for total in totals), sum(total.cells for total in totals))

        yield Timed(call, answer=answer, phases=lambda: {"spilled_bytes": float(matrix.file_bytes)})
    file.unlink()


def sum_of_kept(device: Device, matrix: KeptRows, rows: range) -> Total:
    """Add up x + 1 of kept rows, where row and column of the matrix are even."""
    total, cells = 0.0, 0
    for start, block in matrix.blocks(rows):
        chosen = device.from_host(block)[start % 2 :: 2, ::2] + 1
        total, cells = total + float(chosen.sum()), cells + chosen.size
    return Total(total, cells)


def chunks(n: int, chunk: int) -> list[Chunk]:
    """Return the chunks of an n x n matrix, each with random numbers of its own."""
    starts = range(0, n, chunk)
    return [
        Chunk(
            rows=range(top, min(top + chunk, n)),
            columns=range(left, min(left + chunk, n)),
            # Twice as far apart as they have cells: a buffer of an odd number of cells takes one number more.
            first=2 * (place * chunk * chunk),
        )
        for place, (top, left) in enumerate((top, left) for top in starts for left in starts)
    ]


def sum_of_chunk(device: Device, chunk: Chunk) -> Total:
    """Draw a chunk, and add up x + 1 where row and column of the matrix are even."""
    xp, width = device.xp, len(chunk.columns)
    numbers = stream(device, seed=SEED, first=chunk.first)
    buffer = xp.empty((max(1, device.slice_rows // 4 // width), width))
    total, cells = xp.zeros(()), 0
    for top in range(chunk.rows.start, chunk.rows.stop, len(buffer)):
        x = buffer[: chunk.rows.stop - top]
        numbers.normal(x)
        chosen = x[top % 2 :: 2, chunk.columns.start % 2 :: 2] * DEVIATION + MEAN + 1
        total, cells = total + chosen.sum(), cells + chosen.size
    return Total(total, cells)


ROW = Row(
    id="R7",
    name="array_random",
    title="`(x + 1)[::2, ::2].sum()` of a matrix of 500000 x 500000 random numbers, which are not kept",
    cases=(
        CallCase(
            name="",
            variants=(
                Variant("whitewater", streamed, devices=BOTH),
                Variant("as_published", as_published, devices=BOTH),
                Variant("numpy", numpy_at_once, memory=2.2),
            ),
            oracle="as_published",
            size=size,
            published=(
                Published("Dask, 1 core", 9540.0),
                Published("Dask, 40 cores", 690.0),
                Published("Dask and CuPy, 1 GPU", 97.0),
                Published("Dask and CuPy, 8 GPUs", 19.0),
            ),
        ),
        CallCase(
            name="limited",
            variants=(
                Variant("whitewater", kept, devices=BOTH, disk=1.0),
                # On a GPU cuDF's frames are spilled, CuPy's arrays are not: there Dask has no such case.
                Variant("as_published", as_published_limited, disk=1.0),
            ),
            oracle="as_published",
            size=size_of_kept,
        ),
    ),
)
