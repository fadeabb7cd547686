"""Step `plot`: draw each picture once and write it in every format."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from whitewater import lazy_pandas as pd
from whitewater.io.store import read_json
from whitewater.script import main
from whitewater.step import Outputs, Run
from whitewater_apps.genomics.config import Plot


def plot(
    run: Run[Plot], *, pcs: Path, projected: Path, eigenvalues: Path, loadings: Path, variants: Path, samples: Path,
    kinship: Path, relatedness: Path, umap: Path, umap_quality: Path, plots: Outputs,
) -> None:  # fmt: skip
    """Draw pairs of components, scree, loadings, call rates, rejected variants, kinship and the map of the samples.

    The name of a file gives the picture and its format: ``pcs_1_2.png``.
    """
    from matplotlib.figure import Figure

    from whitewater.figures import style
    from whitewater.genotypes.pca.loadings import read_loadings
    from whitewater_apps.genomics import figures

    read = pd.read_parquet
    quality = partial(read, variants, columns=["call_rate", "allele_frequency", "kept", "reasons"])

    def pair(x: int, y: int) -> Figure:
        return figures.component_pair(read(pcs), read(projected), eigenvalues=read_json(eigenvalues), pair=(x, y))

    def along_genome() -> Figure:
        table = read_loadings(loadings)
        return figures.loadings_by_position(table.weights, table.variants, components=run.settings.components)

    draw: dict[str, Callable[[], Figure]] = {
        "pcs_1_2": partial(pair, 1, 2),
        "scree": lambda: figures.scree(read_json(eigenvalues)),
        "loadings_by_position": along_genome,
        "missingness": lambda: figures.missingness(read(samples), quality()),
        "variant_quality": lambda: figures.variant_quality(quality()),
        "kinship": lambda: figures.kinship(read(kinship), relatedness=read_json(relatedness)),
        "umap": lambda: figures.umap(read(umap), read(projected, columns=["label"]), quality=read_json(umap_quality)),
    }
    for name in plots:
        if numbers := re.fullmatch(r"pcs_(\d+)_(\d+)", Path(name).stem):
            draw[numbers[0]] = partial(pair, int(numbers[1]), int(numbers[2]))
    run.note(pictures=style.draw_all(draw, plots))


if __name__ == "__main__":
    main(plot)
