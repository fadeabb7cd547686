"""R21: futures over a loop whose next tasks depend on the results of the last: adaptive integration.

The source shows the interface, and neither a problem nor a time. Here the integral of `integrand` over 10,000 cells
is wanted. Each task integrates a piece twice by Simpson's rule, once with half of the points. Where the two agree, the
piece is ``accepted``; where they do not, it is ``split``, and its halves become tasks; and a piece that has been split
`DEEPEST` times holds a peak too narrow for that, and is ``resolved`` by a rule of its own, in another variable that
spreads the peak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from pydantic import JsonValue

from benchmarks.published.dask_cluster import dask_client
from benchmarks.published.row import BOTH, ONE_BLAS_THREAD, CallCase, Row, Timed, Variant, Work
from benchmarks.report import Size
from whitewater.engines import Device

CELLS = 10_000
POINTS = 4096
TOLERANCE = 1e-8
DEEPEST = 5
# Irrational steps spread places and widths of the peaks evenly over the cells.
PLACE_STEP, WIDTH_STEP = 0.6180339887498949, 0.4142135623730950
WAVES = 20.0
# Of the slices of a device: an eighth is 4 pieces, which stay in the cache of a core with all that is made of them.
SLICE_PARTS = 8


# Points, weights of all of them, and weights that are 0 at every other one.
Rule = tuple[Any, Any, Any]


@dataclass(frozen=True)
class Piece:
    """A part of a cell: it begins at ``start`` of the way through it, and has been split ``depth`` times."""

    cell: int
    start: float
    depth: int

    def halves(self) -> tuple[Piece, Piece]:
        """Return the two parts of half the length."""
        length = 0.5 ** (self.depth + 1)
        return Piece(self.cell, self.start, self.depth + 1), Piece(self.cell, self.start + length, self.depth + 1)


@dataclass
class Total:
    """The integral so far, and how many pieces have gone each way."""

    integral: float = 0.0
    accepted: int = 0
    split: int = 0
    resolved: int = 0

    def answer(self) -> JsonValue:
        """Return all of it."""
        return dict(vars(self))


def cells(work: Work) -> int:
    """Return the number of cells, each of length 1, that are integrated over."""
    return max(10, round(CELLS * work.scale))


def peak(cell: Any) -> tuple[Any, Any]:
    """Return place and width of the peak of a cell, or of an array of cells; each lies within its cell."""
    place = 0.1 + 0.8 * ((cell * PLACE_STEP) % 1.0)
    return place, 10.0 ** (-1.0 - 6.0 * ((cell * WIDTH_STEP) % 1.0))


def integrand(xp: Any, x: Any, place: Any, width: Any) -> Any:
    """Return a wave, and the peak of the cell: Lorentz's curve, whose area over the line is pi."""
    return xp.sin(WAVES * x) + width / ((x - place) ** 2 + width**2)


@cache
def weights(device: Device) -> Rule:
    """Return the points of Simpson's rule in [0, 1], its weights, and those of the rule with half of the points."""
    fine, coarse = (np.array([1.0] + [4.0, 2.0] * (count // 2 - 1) + [4.0, 1.0]) for count in (POINTS, POINTS // 2))
    spread = np.zeros(POINTS + 1)
    spread[::2] = coarse / coarse.sum()
    points, fine, coarse = (
        device.to_device(each) for each in (np.linspace(0.0, 1.0, POINTS + 1), fine / fine.sum(), spread)
    )
    return points, fine, coarse


def simpson(device: Device, pieces: Sequence[Piece]) -> tuple[Any, Any]:
    """Return the integral over each piece, and by how much the rule with half of the points differs; on the host."""
    xp = device.xp
    points, fine, coarse = weights(device)
    cell, start, depth = (np.array([getattr(piece, name) for piece in pieces]) for name in ("cell", "start", "depth"))
    lengths = 0.5**depth
    begin, step, place, width = (device.to_device(each)[:, None] for each in (start, lengths, *peak(cell)))
    values = integrand(xp, begin + step * points, place, width)
    integrals, differing = (device.to_host(values @ rule) * lengths for rule in (fine, fine - coarse))
    return integrals, np.abs(differing)


def resolve(device: Device, piece: Piece) -> float:
    """Return the integral over a piece with its peak: there x = place + width * tan(angle), which makes it flat."""
    xp = device.xp
    points, fine, _ = weights(device)
    place, width = peak(piece.cell)
    length = 0.5**piece.depth
    first, last = (float(np.arctan((x - place) / width)) for x in (piece.start, piece.start + length))
    wave = float((xp.sin(WAVES * (piece.start + length * points)) * fine).sum()) * length
    # With dx = width / cos(angle)**2 the peak is 1 everywhere; the wave keeps to x.
    return (last - first) + wave


def decide(total: Total, piece: Piece, integral: float, differing: float, resolved: Callable[[Piece], float]) -> bool:
    """Add a piece to the total, by the branch that it takes; return whether it is split instead."""
    if differing <= TOLERANCE:
        total.accepted += 1
        total.integral += integral
    elif piece.depth < DEEPEST:
        total.split += 1
        return True
    else:
        total.resolved += 1
        total.integral += resolved(piece)
    return False


def integrate_one(device: Device, piece: Piece) -> tuple[Piece, float, float]:
    """Return a piece with its integral and by how much the two rules differ."""
    ((integral,), (differing,)) = simpson(device, [piece])
    return piece, float(integral), float(differing)


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Dask: a task for each piece, and as each completes its halves, or that which resolves it, are submitted."""
    from distributed import as_completed

    device = work.device
    with dask_client(device, work.cluster, threads=work.threads) as client:
        integrate = partial(integrate_one, device)

        def call() -> Total:
            total = Total()
            begun = client.map(integrate, [Piece(cell, 0.0, 0) for cell in range(cells(work))], pure=False)
            waiting = as_completed(begun, with_results=True)
            for _, result in waiting:
                if isinstance(result, float):
                    total.integral += result
                    continue
                piece, integral, differing = result
                later = partial(_submit_resolving, client, waiting, device)
                if decide(total, piece, integral, differing, later):
                    for half in piece.halves():
                        waiting.add(client.submit(integrate, half, pure=False))
            return total

        yield Timed(call, answer=Total.answer)


def _submit_resolving(client: Any, waiting: Any, device: Device, piece: Piece) -> float:
    """Submit the task that resolves a piece; its result is added when it comes, and until then nothing."""
    waiting.add(client.submit(resolve, device, piece, pure=False))
    return 0.0


@contextmanager
def futures_of_threads(work: Work) -> Iterator[Timed]:
    """concurrent.futures: the same tasks as Dask's, on threads."""
    device = work.device
    with ThreadPoolExecutor(work.threads) as pool:

        def call() -> Total:
            total = Total()
            running = {pool.submit(integrate_one, device, Piece(cell, 0.0, 0)) for cell in range(cells(work))}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    piece, integral, differing = future.result()
                    if decide(total, piece, integral, differing, partial(resolve, device)):
                        running |= {pool.submit(integrate_one, device, half) for half in piece.halves()}
            return total

        yield Timed(call, answer=Total.answer)


@contextmanager
def serial(work: Work) -> Iterator[Timed]:
    """NumPy: one piece after another, off a stack."""
    device = work.device

    def call() -> Total:
        total = Total()
        stack = [Piece(cell, 0.0, 0) for cell in range(cells(work))]
        while stack:
            piece, integral, differing = integrate_one(device, stack.pop())
            if decide(total, piece, integral, differing, partial(resolve, device)):
                stack.extend(piece.halves())
        return total

    yield Timed(call, answer=Total.answer)


@contextmanager
def by_level(work: Work) -> Iterator[Timed]:
    """All pieces of a depth at once, on threads, in batches whose points stay in the cache or fill a GPU."""
    device = work.device
    batch = max(1, device.slice_rows // (SLICE_PARTS * POINTS))
    with ThreadPoolExecutor(work.threads) as pool:
        integrate = partial(pool.map, partial(simpson, device))

        def call() -> Total:
            total = Total()
            level = [Piece(cell, 0.0, 0) for cell in range(cells(work))]
            while level:
                batches = [level[start : start + batch] for start in range(0, len(level), batch)]
                results = np.concatenate(list(integrate(batches)), axis=1).T.tolist()
                split = [
                    piece
                    for piece, (integral, differing) in zip(level, results, strict=True)
                    if decide(total, piece, integral, differing, partial(resolve, device))
                ]
                level = [half for piece in split for half in piece.halves()]
            return total

        yield Timed(call, answer=Total.answer)


def exact(count: int) -> float:
    """Return the integral over the first cells, by its antiderivative."""
    place, width = peak(np.arange(count))
    peaks = np.arctan((1.0 - place) / width) + np.arctan(place / width)
    return float(peaks.sum() + count * (1.0 - np.cos(WAVES)) / WAVES)


ROW = Row(
    id="R21",
    name="futures",
    title="Futures over a loop with branches that depend on the data: adaptive integration over 10,000 cells",
    cases=(
        CallCase(
            name="",
            variants=(
                Variant("tuned", by_level, devices=BOTH, environment=ONE_BLAS_THREAD),
                Variant("as_published", as_published, devices=BOTH, environment=ONE_BLAS_THREAD),
                Variant("concurrent_futures", futures_of_threads, environment=ONE_BLAS_THREAD),
                Variant("numpy", serial),
            ),
            oracle="numpy",
            # What is made of nothing is as large as the points of the first tasks.
            size=lambda work: Size(rows=cells(work), bytes=8 * cells(work) * (POINTS + 1), basis="memory"),
        ),
    ),
)
