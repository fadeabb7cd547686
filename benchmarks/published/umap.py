"""R16: a map of 439 MB of features by UMAP, with 5 neighbors and a spectral start.

The source says no more of the features than their size; here they are 64 columns of float32, of which 256 bytes are a
row, so that 1.0 is 1.7 million rows. They lie around 20 centers, about a surface of three dimensions of each, so that
neighbors mean something. No two maps are the same, nor are they on two devices: what is compared is whether the
neighbors on a map are neighbors in the features too, by their trustworthiness (Venna and Kaski 2001), on a sample.
Maps that place points at random have about 0.5, and those of UMAP 0.97 to 0.99 at every size tried; the bound is 0.95.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from benchmarks.published.row import BOTH, ONE_BLAS_THREAD, SEED, CallCase, Published, Row, Timed, Variant, Work
from benchmarks.report import Size
from whitewater.learn.estimators import umap

BYTES = 439_000_000
COLUMNS, CENTERS, SURFACE = 64, 20, 3
NOISE = 0.05
NEIGHBORS, MINIMUM_DISTANCE = 5, 0.1
MEASURED_ROWS = 2000
TRUSTED = 0.95

Floats = npt.NDArray[np.float32]


def rows(work: Work) -> int:
    """Return the number of rows, at least as many as scikit-learn's `trustworthiness` asks for."""
    return max(2 * NEIGHBORS + 2, round(BYTES * work.scale / (4 * COLUMNS)))


def draw(work: Work) -> Floats:
    """Return the features, float32 (rows, 64), on the host."""
    generator = np.random.default_rng(SEED)
    centers = generator.normal(size=(CENTERS, COLUMNS))
    surfaces = generator.normal(size=(CENTERS, SURFACE, COLUMNS)) / np.sqrt(SURFACE)
    values = generator.normal(0, NOISE, (rows(work), COLUMNS)).astype(np.float32)
    of_row = generator.integers(0, CENTERS, len(values))
    for center in range(CENTERS):
        members = np.flatnonzero(of_row == center)
        coordinates = generator.uniform(-1, 1, (len(members), SURFACE))
        values[members] += (4 * centers[center] + coordinates @ surfaces[center]).astype(np.float32)
    return values


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """umap-learn, without a seed, so that it uses all threads."""
    from umap import UMAP

    values = draw(work)
    yield _timed(values, lambda: UMAP(n_neighbors=NEIGHBORS, init="spectral").fit_transform(values))


@contextmanager
def whitewater(work: Work) -> Iterator[Timed]:
    """As the step `umap` makes its map: umap-learn or cuML, with a seed, and so on one thread."""
    values = work.device.to_device(draw(work))
    estimator = umap(work.device, neighbors=NEIGHBORS, minimum_distance=MINIMUM_DISTANCE, seed=SEED)
    yield _timed(work.device.to_host(values), lambda: work.device.to_host(estimator.fit_transform(values)))


def _timed(values: Floats, call: Callable[[], Any]) -> Timed:
    """Return the call, whose answer is the rows of the map, and whether it can be trusted."""
    found: dict[str, float] = {}

    def answer(places: Any) -> JsonValue:
        found["trustworthiness"] = trust(values, places)
        return {"rows": len(places), "columns": places.shape[1], "trusted": found["trustworthiness"] > TRUSTED}

    return Timed(call, answer=answer, phases=lambda: found)


def trust(values: Floats, places: Any) -> float:
    """Return the trustworthiness of a map on a sample of its rows; 0 where a place is not a finite number."""
    from sklearn.manifold import trustworthiness

    if len(places) != len(values) or not np.isfinite(places).all():
        return 0.0
    chosen = np.random.default_rng(SEED).permutation(len(values))[:MEASURED_ROWS]
    return float(trustworthiness(values[chosen], places[chosen], n_neighbors=NEIGHBORS))


ROW = Row(
    id="R16",
    name="umap",
    title="UMAP of 439 MB of features, 5 neighbors, spectral start",
    cases=(
        CallCase(
            name="",
            variants=(
                Variant("whitewater", whitewater, devices=BOTH, packages=("umap",), environment=ONE_BLAS_THREAD),
                Variant("as_published", as_published, packages=("umap",)),
            ),
            oracle="as_published",
            size=lambda work: Size(rows=rows(work), bytes=4 * COLUMNS * rows(work), basis="memory"),
            published=(Published("umap-learn", 109.0), Published("cuML", 19.5)),
        ),
    ),
)
