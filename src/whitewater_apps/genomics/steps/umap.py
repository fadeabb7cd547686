"""Step `umap`: a two-dimensional map of the samples, from their principal components.

`umap.parquet` has a row per row of `pcs.parquet`: sample, label, UMAP1, UMAP2 (float64; NaN without a map). `umap.json`
has the trustworthiness of the map. Devices and library versions give other maps, of about the same trustworthiness.
"""

import logging
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater import lazy_pandas as pd
from whitewater.engines import Device
from whitewater.errors import ConfigError, IntegrityError
from whitewater.io.folder import Files
from whitewater.io.store import write_json
from whitewater.learn import estimators
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import Umap

logger = logging.getLogger(__name__)

# Trustworthiness ranks all pairs of samples, so it is measured on at most this many.
MEASURED_SAMPLES = 5000
NO_MAP: dict[str, Any] = {"trustworthiness": None, "measured_samples": 0, "measured_neighbors": 0}


def umap(run: Run[Umap], *, pcs: Path, embedding: Output, quality: Output) -> None:
    """Map the samples by UMAP (McInnes, Healy and Melville 2018, arXiv:1802.03426), and measure trustworthiness.

    If there are no more samples than neighbors, it logs a warning, and the coordinates are NaN.

    Raises ConfigError if more components are asked for than were computed; InputError if the table cannot be read; and
    IntegrityError if a coordinate is not finite.
    """
    table, settings = Files(remedy="Run the step pca again.").table(pcs).to_pandas(), run.settings
    scores = leading_scores(table, components=settings.components)
    coordinates, measures = np.full((len(table), 2), np.nan), NO_MAP
    if len(table) > settings.neighbors:
        work = partial(embed, settings=settings, device=run.device)
        with run.workers(small=True) as workers:
            coordinates = next(workers.map(work, [scores], label="umap"))
        measures = measure_trustworthiness(scores, coordinates, neighbors=settings.neighbors, seed=settings.seed)
        logger.info("map of %d samples, trustworthiness %.3f", len(table), measures["trustworthiness"])
    else:
        logger.warning("no map is made: %d samples are not more than genomics.umap.neighbors, %d", len(table),
                       settings.neighbors)  # fmt: skip
    x, y = coordinates.T
    table[["sample", "label"]].assign(UMAP1=x, UMAP2=y).to_parquet(embedding, index=False)
    measures = {"samples": len(table), **measures}
    write_json(quality, {**settings.model_dump(mode="json"), "components": scores.shape[1], **measures})
    run.note(**measures)


def leading_scores(table: "pd.DataFrame", *, components: int | None) -> npt.NDArray[np.float32]:
    """Return the scores on the leading components, by default on 10 or all, float32 (samples, components).

    They are not standardized, so that components of larger eigenvalues count more.
    """
    computed = [name for name in table.columns if name.startswith("PC")]
    components = components or min(10, len(computed))
    if len(computed) < components:
        raise ConfigError(
            f"genomics.umap.components is {components}, but only {len(computed)} components were computed. "
            "Lower it, or raise genomics.pca.components."
        )
    return np.ascontiguousarray(table[[f"PC{number}" for number in range(1, components + 1)]], dtype=np.float32)


def embed(scores: npt.NDArray[np.float32], *, settings: Umap, device: Device) -> npt.NDArray[np.float64]:
    """Return the coordinates of the samples on the map, float64 (samples, 2)."""
    estimator = estimators.umap(
        device, neighbors=settings.neighbors, minimum_distance=settings.minimum_distance, seed=settings.seed
    )
    coordinates = device.to_host(estimator.fit_transform(device.to_device(scores))).astype(np.float64)
    if not np.isfinite(coordinates).all():
        raise IntegrityError("genomics.umap: a coordinate of the map is not finite. Set genomics.umap.neighbors to "
                             "another value.")  # fmt: skip
    return coordinates


def measure_trustworthiness(
    scores: npt.NDArray[np.float32], coordinates: npt.NDArray[np.float64], *, neighbors: int, seed: int
) -> dict[str, Any]:
    """Return the trustworthiness of a map (Venna and Kaski 2001): 1 if neighbors on it are neighbors in the scores.

    It is measured on at most `MEASURED_SAMPLES`, and with neighbors fewer than half of them, as it demands.
    """
    from sklearn.manifold import trustworthiness

    count = min(len(scores), MEASURED_SAMPLES)
    rows = np.sort(np.random.default_rng(seed).choice(len(scores), count, replace=False))
    neighbors = min(neighbors, (count - 1) // 2)
    return {
        "trustworthiness": float(trustworthiness(scores[rows], coordinates[rows], n_neighbors=neighbors)),
        "measured_samples": count,
        "measured_neighbors": neighbors,
    }


if __name__ == "__main__":
    main(umap)
