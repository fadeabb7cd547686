"""R13: ridge regression on the diabetes data, and on them repeated to 2.8 GB.

``Ridge(alpha=1).fit(X, y)``, the data in the device's memory. As published the library copies the columns, centres the
copy and then multiplies it; ours reads them once, see `least_squares`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import JsonValue

from benchmarks.published import diabetes
from benchmarks.published.least_squares import Line, merged, moments, ridge
from benchmarks.published.row import BOTH, ONE_BLAS_THREAD, CallCase, Published, Row, Timed, Variant, Work
from whitewater.devices import Device

ALPHA = 1.0
LARGE_REPEATS = 100_000
# One thread does this many rows sooner than another one starts.
LEAST_ROWS = 4096

Repeats = Callable[[Work], int]


def once(_: Work) -> int:
    """Return how often the rows of the small case are repeated, whatever the scale."""
    return 1


def many(work: Work) -> int:
    """Return how often the rows of the large case are repeated."""
    return max(1, round(LARGE_REPEATS * work.scale))


def fitted(coefficients: Any, intercept: Any) -> JsonValue:
    """Return a linear model as JSON."""
    return {"coefficients": [float(each) for each in coefficients], "intercept": float(intercept)}


def moved(device: Device, data: tuple[Any, Any]) -> tuple[Any, Any, float]:
    """Return columns and target on the device, and the seconds that moving them took."""
    device.from_host(np.zeros(1))
    device.synchronize()
    start = time.perf_counter()
    x, y = (device.from_host(part) for part in data)
    device.synchronize()
    return x, y, time.perf_counter() - start


@contextmanager
def as_published(work: Work, *, repeats: Repeats) -> Iterator[Timed]:
    """scikit-learn or cuML; it overwrites its columns, so it is given the copy that the library makes by default."""
    device = work.device
    x, y, seconds = moved(device, diabetes.training_part(repeats(work)))
    yield Timed(
        lambda: device.ridge(alpha=ALPHA).fit(x.copy(), y),
        answer=lambda model: fitted(device.to_host(model.coef_), model.intercept_),
        phases=lambda: {"move": seconds},
    )


@contextmanager
def one_pass(work: Work, *, repeats: Repeats) -> Iterator[Timed]:
    """Solve the normal equations of centred products, which threads add up block by block."""
    device = work.device
    x, y, seconds = moved(device, diabetes.training_part(repeats(work)))
    parts = min(work.threads, -(-len(y) // LEAST_ROWS))
    edges = np.linspace(0, len(y), parts + 1).astype(int).tolist()
    slices = [(x[start:stop], y[start:stop]) for start, stop in pairwise(edges)]
    with ThreadPoolExecutor(work.threads) as pool:
        of_slice = partial(moments, device)

        def call() -> Line:
            over = map if parts == 1 else pool.map
            return ridge(merged(over(of_slice, *zip(*slices, strict=True))), alpha=ALPHA)

        yield Timed(
            call, answer=lambda line: fitted(line.coefficients, line.intercept), phases=lambda: {"move": seconds}
        )


@contextmanager
def numpy_least_squares(work: Work, *, repeats: Repeats) -> Iterator[Timed]:
    """Least squares by singular values of the centred columns, below which each has a row of the root of alpha."""
    x, y = diabetes.training_part(repeats(work))
    penalty = np.sqrt(ALPHA) * np.eye(x.shape[1])

    def call() -> Line:
        mean, middle = x.mean(axis=0), y.mean()
        rows = np.concatenate([x - mean, penalty])
        coefficients = np.linalg.lstsq(rows, np.concatenate([y - middle, np.zeros(len(penalty))]))[0]
        return Line(coefficients, middle - mean @ coefficients)

    yield Timed(call, answer=lambda line: fitted(line.coefficients, line.intercept))


def case(name: str, repeats: Repeats, published: tuple[Published, ...]) -> CallCase:
    """Return the case of one size."""
    return CallCase(
        name=name,
        variants=(
            Variant(
                "whitewater", partial(one_pass, repeats=repeats), devices=BOTH, environment=ONE_BLAS_THREAD, memory=1.2
            ),
            Variant("as_published", partial(as_published, repeats=repeats), devices=BOTH, memory=2.2),
            Variant("numpy", partial(numpy_least_squares, repeats=repeats), memory=3.2),
        ),
        oracle="numpy",
        size=lambda work: diabetes.size(repeats(work)),
        # A product and a sum for each pair of the columns and the target.
        operations=lambda work: float(diabetes.ROWS * repeats(work) * (diabetes.COLUMNS + 1) * (diabetes.COLUMNS + 2)),
        published=published,
    )


ROW = Row(
    id="R13",
    name="ridge_fit",
    title="`Ridge(alpha=1).fit` on the diabetes data, and on them repeated to 2.8 GB",
    cases=(
        case("small", once, (Published("scikit-learn", 0.028), Published("cuML", 1.12))),
        case("large", many, (Published("scikit-learn", 4.82), Published("cuML", 0.450))),
    ),
)
