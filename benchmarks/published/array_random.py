"""R7: a sum over a matrix of random numbers that is larger than memory.

500000 x 500000 float64, 2 TB: ``x = normal(10, 1)`` in chunks of 10000 x 10000, ``(x + 1)[::2, ::2].sum()``. ``scale``
is that of the bytes. Chunks are as published, but at least 8 to an edge, so that there is something to share out.

Every number is drawn, and none is kept. What is drawn depends on the variant and the device, so the answer is the
number of cells that were summed, and whether their mean is within 5 standard errors of 11: that of right numbers is
further off once in 1.7 million times. In the case ``limited`` a worker may hold no more than a sixteenth of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import ceil, isqrt, sqrt
from typing import NamedTuple

import numpy as np
from pydantic import JsonValue

from benchmarks.published.dask_spill import spilled_since_last
from benchmarks.published.random_streams import stream
from benchmarks.published.row import BOTH, SEED, CallCase, Published, Row, Timed, Variant, Work
from benchmarks.report import Size
from whitewater.devices import Device
from whitewater.memory import forecast

EDGE, CHUNK, FEWEST_CHUNKS = 500_000, 10_000, 8
MEAN, DEVIATION = 10.0, 1.0
STANDARD_ERRORS = 5.0
# The share of the matrix that one worker may hold in the case `limited`: 4 of 64 chunks at least.
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
    return isqrt(round(EDGE * EDGE * work.scale))


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
def as_published(work: Work, *, memory_limit: int | None = None) -> Iterator[Timed]:
    """Dask, as it was written."""
    import dask.array as da

    n, chunk = edge(work), chunk_edge(work)

    def call() -> Total:
        x = da.random.normal(10, 1, size=(n, n), chunks=(chunk, chunk))
        y = (x + 1)[::2, ::2]
        return Total(y.sum().compute(), y.size)

    with work.device.dask_client(work.cluster, threads=work.threads, memory_limit=memory_limit) as client:
        phases = dict if memory_limit is None else spilled_since_last(client)
        yield Timed(call, answer=answer, phases=phases)


@contextmanager
def as_published_limited(work: Work) -> Iterator[Timed]:
    """Dask, whose workers spill what they hold above the limit."""
    with as_published(work, memory_limit=int(LIMIT * size(work).bytes)) as timed:
        yield timed


@contextmanager
def numpy_at_once(work: Work) -> Iterator[Timed]:
    """NumPy, the whole matrix at once, as far as it fits into memory."""
    n, generator = edge(work), np.random.default_rng(SEED)
    forecast(2 * size(work).bytes, what="NumPy's matrix", remedy="Set a smaller scale.")

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
                Variant("numpy", numpy_at_once),
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
                Variant("whitewater", streamed, devices=BOTH),
                Variant("as_published", as_published_limited, devices=BOTH),
            ),
            oracle="as_published",
            size=size,
        ),
    ),
)
