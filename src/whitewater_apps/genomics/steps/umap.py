"""Step `umap`: a map of the samples in two dimensions, made from their principal components.

`umap.parquet` has the samples in the order of `pcs.parquet`: sample, label, UMAP1, UMAP2 (float64; NaN where there are
too few samples for a map). `umap.json` says how far the map can be trusted. The map is not the same on every device,
nor need it be with another version of a library; the trustworthiness is about the same.
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

# Samples that the trustworthiness is measured on at most: it ranks all pairs of them.
MEASURED_SAMPLES = 5000
# Components that a map is made from where the configuration does not say.
MOST_COMPONENTS = 10
NO_MAP: dict[str, Any] = {"trustworthiness": None, "measured_samples": 0, "measured_neighbors": 0}


def umap(run: Run[Umap], *, pcs: Path, embedding: Output, quality: Output) -> None:
    """Lay the samples out by UMAP (McInnes, Healy and Melville 2018, arXiv:1802.03426), and measure how well.

    Of too few samples to have so many neighbors no map is made: a warning says so, and the places are NaN.

    Raises ConfigError if more components are asked for than were computed; InputError if the table cannot be read; and
    IntegrityError if a place on the map is not a finite number.
    """
    table, settings = Files(remedy="Run the step pca again.").table(pcs).to_pandas(), run.settings
    scores = leading_scores(table, components=settings.components)
    places, measured = np.full((len(table), 2), np.nan), NO_MAP
    if len(table) > settings.neighbors:
        with run.workers(small=True) as workers:
            places = next(workers.map(partial(embed, settings=settings, device=run.device), [scores], label="umap"))
        measured = measure(scores, places, neighbors=settings.neighbors, seed=settings.seed)
        logger.info("map of %d samples, trustworthiness %.3f", len(table), measured["trustworthiness"])
    else:
        logger.warning("no map is made: %d samples are not more than genomics.umap.neighbors, %d", len(table),
                       settings.neighbors)  # fmt: skip
    table[["sample", "label"]].assign(UMAP1=places[:, 0], UMAP2=places[:, 1]).to_parquet(embedding, index=False)
    described = {**settings.model_dump(mode="json"), "components": scores.shape[1], "samples": len(table), **measured}
    write_json(quality, described)
    run.note(samples=len(table), **measured)


def leading_scores(table: "pd.DataFrame", *, components: int | None) -> npt.NDArray[np.float32]:
    """Return the scores of the samples on the leading components, float32 (samples, components).

    Without a number of components they are the first 10, or all where they are fewer. They keep their scales, so that
    a component of a larger eigenvalue counts more.
    """
    computed = [name for name in table.columns if name.startswith("PC")]
    components = components or min(MOST_COMPONENTS, len(computed))
    if len(computed) < components:
        raise ConfigError(
            f"genomics.umap.components is {components}, but only {len(computed)} components were computed. "
            "Lower it, or raise genomics.pca.components."
        )
    return np.ascontiguousarray(table[[f"PC{number}" for number in range(1, components + 1)]], dtype=np.float32)


def embed(scores: npt.NDArray[np.float32], *, settings: Umap, device: Device) -> npt.NDArray[np.float64]:
    """Return the places of the samples on the map, float64 (samples, 2)."""
    estimator = estimators.umap(
        device, neighbors=settings.neighbors, minimum_distance=settings.minimum_distance, seed=settings.seed
    )
    places = device.to_host(estimator.fit_transform(device.to_device(scores))).astype(np.float64)
    if not np.isfinite(places).all():
        raise IntegrityError(
            "genomics.umap: a place on the map is not a finite number. Set genomics.umap.neighbors to another value."
        )
    return places


def measure(
    scores: npt.NDArray[np.float32], places: npt.NDArray[np.float64], *, neighbors: int, seed: int
) -> dict[str, Any]:
    """Return the trustworthiness of a map (Venna and Kaski 2001): 1 where neighbors on it are so in the scores.

    It is measured on a sample of at most 5,000, and with fewer neighbors where it is not defined for so many: they
    must be fewer than half of the samples.
    """
    from sklearn.manifold import trustworthiness

    count = min(len(scores), MEASURED_SAMPLES)
    rows = np.sort(np.random.default_rng(seed).choice(len(scores), count, replace=False))
    ranked = min(neighbors, (count - 1) // 2)
    return {
        "trustworthiness": float(trustworthiness(scores[rows], places[rows], n_neighbors=ranked)),
        "measured_samples": count,
        "measured_neighbors": ranked,
    }


if __name__ == "__main__":
    main(umap)
