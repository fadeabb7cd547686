"""Step `pca`: compute the principal components of the samples, their eigenvalues and loadings."""

import logging
from pathlib import Path
from typing import Any

from whitewater import lazy_pandas as pd
from whitewater.genotypes.config import Pca
from whitewater.genotypes.genotypes import open_genotypes
from whitewater.genotypes.pca.components import PrincipalComponents, principal_components
from whitewater.genotypes.pca.loadings import write_loadings
from whitewater.genotypes.pca.passes import RawGenotypes
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics.decisions import read_samples

logger = logging.getLogger(__name__)


def pca(
    run: Run[Pca], *, packed: Path, samples: Path, pcs: Output, eigenvalues: Output, loadings: Output, selected: Output
) -> None:
    """Compute the principal components of the samples used, and their loadings.

    Raises InputError if the data have fewer components than are asked for, and ResourceError if memory is too small.
    """
    folder = open_genotypes(packed)
    table = read_samples(samples, folder)
    with run.workers() as workers:
        genotypes = RawGenotypes(folder, run.device, run.local_device, workers)
        components = principal_components(genotypes, table["used"].to_numpy(bool), settings=run.settings)
        write_loadings(loadings, components, scaling=run.settings.scaling.model_dump())
    summary = _summarize(components, run.settings)
    scores = {f"PC{number}": column for number, column in enumerate(components.scores.T, start=1)}
    used = table.loc[table["used"], ["sample", "label"]].reset_index(drop=True)
    used.assign(**scores).to_parquet(pcs, index=False)
    table.to_parquet(selected, index=False)
    write_json(eigenvalues, summary)
    facts = ("samples", "variants", "solver", "passes", "significant_components")
    run.note(**{name: summary[name] for name in facts})
    logger.info("%d of %d components are significant", summary["significant_components"], run.settings.components)


def _summarize(components: PrincipalComponents, settings: Pca) -> dict[str, Any]:
    spectrum, test, total = components.spectrum, components.significance, components.total
    thresholds = test.thresholds(spectrum.eigenvalues, settings.significance)
    tests = pd.DataFrame({"statistic": test.statistics, "p_value": test.p_values, "threshold": thresholds})
    return {
        "eigenvalues": spectrum.eigenvalues.tolist(),
        "explained_variance_ratio": (spectrum.eigenvalues / total).tolist(),
        "total_variance": total,
        "samples": components.genotypes.samples,
        "variants": components.genotypes.varying,
        "solver": components.solver,
        "passes": spectrum.passes,
        "residuals": None if spectrum.residuals is None else spectrum.residuals.tolist(),
        "converged": spectrum.converged.tolist(),
        "tracy_widom": tests.assign(component=tests.index + 1).to_dict("records"),
        "significant_components": test.significant_components(settings.significance),
        "effective_variants": float(test.effective_variants[0]),
        "scaling": settings.scaling.model_dump(),
    }


if __name__ == "__main__":
    main(pca)
