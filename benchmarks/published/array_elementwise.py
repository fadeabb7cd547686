"""R1: an expression over the elements of a matrix, of which only one truth value is left.

float64, 10000 x 10000: ``(sin(x)**2 + cos(x)**2 == 1).all()``. As published it makes seven arrays of the size of x.
It is False, since sin and cos are rounded, which a wrong computation would mostly say too: so the answer also has what
the same code says of two small matrices, of zeros, and of zeros but for the last value, which is not a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import isqrt
from typing import Any

from pydantic import JsonValue

from benchmarks.published.row import BOTH, SEED, CallCase, Published, Row, Timed, Variant, Work
from benchmarks.report import Size
from whitewater.engines import Device
from whitewater.engines.workers import thread_workers

EDGE = 10_000
# Functions of each element: two of trigonometry, two squares, a sum and a comparison.
OPERATIONS = 6
PROBE_EDGE = 301


def edge(work: Work) -> int:
    """Return rows and columns of the matrix, at least 1."""
    return max(1, isqrt(round(EDGE * EDGE * work.scale)))


def draw(work: Work) -> Any:
    """Return the matrix, float64 uniform in [0, 1), on the device."""
    xp = work.device.xp
    return xp.random.default_rng(SEED).random((edge(work), edge(work)))


def answer(identity: Any, *, of: Callable[[Any], Any], device: Device) -> JsonValue:
    """Return the truth value, and what the function ``of`` that gave it says where the identity holds, and just not."""
    zeros = device.xp.zeros((PROBE_EDGE, PROBE_EDGE))
    holds = bool(of(zeros))
    zeros[-1, -1] = device.xp.nan
    return {"identity": bool(identity), "zeros": holds, "last_off": bool(of(zeros))}


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Evaluate it with NumPy or CuPy as it was written."""
    xp, x = work.device.xp, draw(work)

    def whole(x: Any) -> Any:
        return (xp.sin(x) ** 2 + xp.cos(x) ** 2 == 1).all()

    yield Timed(partial(whole, x), answer=partial(answer, of=whole, device=work.device))


@contextmanager
def blocked(work: Work) -> Iterator[Timed]:
    """Have the library's workers call the same functions in slices that its device asks for, and leave none out."""
    xp, x = work.device.xp, draw(work)
    with thread_workers(work.threads) as workers:

        def whole(x: Any) -> bool:
            # No part is empty; and none is left out, although one may tell the answer.
            parts = xp.array_split(x.reshape(-1), min(work.threads, x.size))
            identities = [bool(each) for _, each in workers.as_completed(all_one, parts, {"device": work.device})]
            return all(identities)

        yield Timed(partial(whole, x), answer=partial(answer, of=whole, device=work.device))


def all_one(x: Any, *, device: Device) -> Any:
    """Return whether sin(x)**2 + cos(x)**2 is 1 everywhere; what is in between is in two buffers."""
    xp, rows = device.xp, min(device.slice_rows, len(x))
    sines, cosines = xp.empty(rows), xp.empty(rows)
    identity = True
    for start in range(0, len(x), rows):
        values = x[start : start + rows]
        sine, cosine = sines[: len(values)], cosines[: len(values)]
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
                Variant("whitewater", blocked, devices=BOTH, memory=1.0),
                Variant("as_published", as_published, devices=BOTH, memory=3.0),
            ),
            oracle="as_published",
            size=lambda work: Size(rows=edge(work), bytes=8 * edge(work) ** 2, basis="memory"),
            operations=lambda work: float(OPERATIONS * edge(work) ** 2),
            published=(Published("NumPy", 0.402), Published("CuPy", 0.00075)),
        ),
    ),
)
