"""Step `outliers`: remove samples far from all others and compute the components again, as smartpca does."""

import logging
from pathlib import Path

import numpy as np
import numpy.typing as npt

from whitewater.genotypes.config import Pca
from whitewater.genotypes.genotypes import open_genotypes
from whitewater.genotypes.pca.components import principal_components
from whitewater.genotypes.pca.passes import RawGenotypes
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import Outliers
from whitewater_apps.genomics.decisions import read_samples

logger = logging.getLogger(__name__)


def outliers(run: Run[Outliers], *, packed: Path, samples: Path, selected: Output) -> None:
    """Remove, in rounds, samples too far from the mean of any component (Patterson, Price and Reich 2006).

    Raises InputError if the remaining samples have fewer components than are asked for.
    """
    folder, settings = open_genotypes(packed), Pca(components=run.settings.components)
    table = read_samples(samples, folder)
    with run.workers() as workers:
        genotypes = RawGenotypes(folder, run.device, run.local_device, workers)
        for number in range(1, run.settings.iterations + 1):
            components = principal_components(genotypes, table["used"].to_numpy(bool), settings=settings)
            component, distance = farthest(components.scores)
            used, far = np.flatnonzero(table["used"]), np.flatnonzero(distance > run.settings.standard_deviations)
            reasons = [f"outlier on PC{component[row] + 1} ({distance[row]:.1f} sd, round {number})" for row in far]
            table.loc[used[far], "used"] = False
            table.loc[used[far], "reason"] = reasons
            logger.info("round %d: %d outliers among %d samples", number, len(far), len(used))
            if not len(far):
                break
    table.to_parquet(selected, index=False)
    run.note(outliers=int(table["reason"].str.startswith("outlier").sum()))


def farthest(scores: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
    """Return the component on which each sample is farthest from the mean, and the distance in standard deviations."""
    distances = np.abs(scores - scores.mean(axis=0)) / scores.std(axis=0, ddof=1)
    return distances.argmax(axis=1), distances.max(axis=1)


if __name__ == "__main__":
    main(outliers)
