"""R13: ridge regression on the diabetes data, and on them repeated to 2.8 GB.

``Ridge(alpha=1).fit(X, y)``, the data in the device's memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from pydantic import JsonValue

from benchmarks.published import diabetes
from benchmarks.published.row import BOTH, GPU, CallCase, Published, Row, Timed, Variant, Work
from whitewater.engines import Device
from whitewater.learn.estimators import ridge

ALPHA = 1.0
LARGE_REPEATS = 100_000

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
    device.to_device(np.zeros(1))
    device.synchronize()
    start = time.perf_counter()
    x, y = (device.to_device(part) for part in data)
    device.synchronize()
    return x, y, time.perf_counter() - start


@contextmanager
def as_published(work: Work, *, repeats: Repeats) -> Iterator[Timed]:
    """scikit-learn, as it was written."""
    from sklearn.linear_model import Ridge

    yield timed(work, lambda x, y: Ridge(alpha=ALPHA).fit(x, y), repeats=repeats)


@contextmanager
def whitewater(work: Work, *, repeats: Repeats) -> Iterator[Timed]:
    """`ridge`, which taxi's step `model` fits; it overwrites its columns, so it is given a copy."""
    yield timed(work, lambda x, y: ridge(work.device, alpha=ALPHA).fit(x.copy(), y), repeats=repeats)


def timed(work: Work, fit: Callable[[Any, Any], Any], *, repeats: Repeats) -> Timed:
    """Return the fit of data on the device; the phase `move` is their way there."""
    device = work.device
    x, y, seconds = moved(device, diabetes.training_part(repeats(work)))
    return Timed(
        lambda: fit(x, y),
        answer=lambda model: fitted(device.to_host(model.coef_), model.intercept_),
        phases=lambda: {"move": seconds},
    )


@contextmanager
def numpy_least_squares(work: Work, *, repeats: Repeats) -> Iterator[Timed]:
    """Least squares by singular values of the centered columns, below which each has a row of the root of alpha."""
    x, y = diabetes.training_part(repeats(work))
    penalty = np.sqrt(ALPHA) * np.eye(x.shape[1])

    def call() -> tuple[Any, float]:
        mean, middle = x.mean(axis=0), y.mean()
        rows = np.concatenate([x - mean, penalty])
        coefficients = np.linalg.lstsq(rows, np.concatenate([y - middle, np.zeros(len(penalty))]))[0]
        return coefficients, middle - mean @ coefficients

    yield Timed(call, answer=lambda line: fitted(*line))


def case(name: str, repeats: Repeats, published: tuple[Published, ...]) -> CallCase:
    """Return the case of one size."""
    return CallCase(
        name=name,
        variants=(
            Variant("whitewater", partial(whitewater, repeats=repeats), devices=BOTH, memory=2.2),
            Variant("as_published", partial(as_published, repeats=repeats), memory=2.2),
            # cuML's Ridge as it was written: there `ridge` is the same call.
            Variant("as_published", partial(whitewater, repeats=repeats), devices=GPU),
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
