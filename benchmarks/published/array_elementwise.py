"""R1: an expression over the elements of a matrix, of which only one truth value is left.

float64, 10000 x 10000: ``(sin(x)**2 + cos(x)**2 == 1).all()``. As published it makes seven arrays of the size of x.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import isqrt
from typing import Any

from pydantic import JsonValue

from benchmarks.published.row import BOTH, SEED, CallCase, Published, Row, Timed, Variant, Work
from benchmarks.report import Size
from whitewater.devices import Device

EDGE = 10_000
# Functions of each element: two of trigonometry, two squares, a sum and a comparison.
OPERATIONS = 6


def edge(work: Work) -> int:
    """Return rows and columns of the matrix."""
    return isqrt(round(EDGE * EDGE * work.scale))


def draw(work: Work) -> Any:
    """Return the matrix, float64 uniform in [0, 1), on the device."""
    xp = work.device.xp
    return xp.random.default_rng(SEED).random((edge(work), edge(work)))


def answer(identity: Any) -> JsonValue:
    """Return the truth value: False, since sin and cos are rounded."""
    return bool(identity)


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Evaluate it with NumPy or CuPy as it was written."""
    xp, x = work.device.xp, draw(work)

    def whole() -> Any:
        return (xp.sin(x) ** 2 + xp.cos(x) ** 2 == 1).all()

    yield Timed(whole, answer=answer)


@contextmanager
def blocked(work: Work) -> Iterator[Timed]:
    """Call the same functions in the same order, on threads, in slices that stay in the cache, and leave none out."""
    xp, x = work.device.xp, draw(work).reshape(-1)
    parts = xp.array_split(x, work.threads)
    with ThreadPoolExecutor(work.threads) as pool:
        of_part = partial(all_one, work.device)
        yield Timed(lambda: [bool(part) for part in pool.map(of_part, parts)], answer=all)


def all_one(device: Device, x: Any) -> Any:
    """Return whether sin(x)**2 + cos(x)**2 is 1 everywhere; what is in between is in two buffers."""
    xp, rows = device.xp, min(device.slice_rows, len(x))
    buffers = xp.empty((2, rows))
    identity = True
    for start in range(0, len(x), rows):
        values = x[start : start + rows]
        sine, cosine = buffers[:, : len(values)]
        xp.square(xp.sin(values, out=sine), out=sine)
        xp.square(xp.cos(values, out=cosine), out=cosine)
        identity = (xp.add(sine, cosine, out=sine) == 1).all() & identity
    return identity


ROW = Row(
    id="R1",
    name="array_elementwise",
    title="`(sin(x)**2 + cos(x)**2 == 1).all()` of a 10000 x 10000 matrix",
    cases=(
        CallCase(
            name="",
            variants=(
                Variant("whitewater", blocked, devices=BOTH),
                Variant("as_published", as_published, devices=BOTH),
            ),
            oracle="as_published",
            size=lambda work: Size(rows=edge(work), bytes=8 * edge(work) ** 2, basis="memory"),
            operations=lambda work: float(OPERATIONS * edge(work) ** 2),
            published=(Published("NumPy", 0.402), Published("CuPy", 0.00075)),
        ),
    ),
)
