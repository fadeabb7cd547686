"""Step `plot`: the pictures, each drawn once and written in every format."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from whitewater import style
from whitewater.errors import InputError
from whitewater.genomics import figures
from whitewater.store import read_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from whitewater.config.genomics import Plot
    from whitewater.step import Outputs, Run

_PAIR = re.compile(r"pcs_(\d+)_(\d+)")


def plot(
    run: Run[Plot],
    *,
    pcs: Path,
    projected: Path,
    eigenvalues: Path,
    loadings: Path,
    variants: Path,
    samples: Path,
    kinship: Path,
    relatedness: Path,
    umap: Path,
    umap_quality: Path,
    plots: Outputs,
) -> None:
    """Draw pairs of components, scree, loadings, call rates, rejected variants, kinship and the map of the samples.

    The name of a file says which picture it is, and in which format: ``pcs_1_2.png``.
    """
    import pandas as pd

    read = pd.read_parquet

    def pair(x: int, y: int) -> Figure:
        return figures.component_pair(read(pcs), read(projected), eigenvalues=read_json(eigenvalues), pair=(x, y))

    draw: dict[str, Callable[[], Figure]] = {
        "scree": lambda: figures.scree(read_json(eigenvalues)),
        "loadings_by_position": lambda: _loadings(loadings, components=run.settings.components),
        "missingness": lambda: figures.missingness(
            read(samples, columns=["call_rate", "reason"]), read(variants, columns=["call_rate", "reasons"])
        ),
        "variant_quality": lambda: figures.variant_quality(
            read(variants, columns=["allele_frequency", "kept", "reasons"])
        ),
        "kinship": lambda: figures.kinship(read(kinship), relatedness=read_json(relatedness)),
        "umap": lambda: figures.umap(read(umap), read(projected, columns=["label"]), quality=read_json(umap_quality)),
    }
    files = _by_picture(plots)
    for name in files:
        if numbers := _PAIR.fullmatch(name):
            draw[name] = partial(pair, int(numbers[1]), int(numbers[2]))
    unknown = sorted(set(files) - set(draw))
    if unknown:
        raise InputError(f"No picture is named {', '.join(unknown)}. There are pcs_1_2 and such, {', '.join(draw)}.")
    for name, paths in files.items():
        figure = draw[name]()
        for path in paths:
            style.save(figure, path)
    run.note(pictures=sorted(files))


def _loadings(path: Path, *, components: int) -> Figure:
    from whitewater.genomics.loadings import read_loadings

    found = read_loadings(path)
    return figures.loadings_by_position(
        found.values, contigs=list(found.contig), positions=found.position, components=components
    )


def _by_picture(plots: Mapping[str, Path]) -> dict[str, list[Path]]:
    """Return where each picture goes, in each of its formats."""
    pictures: dict[str, list[Path]] = defaultdict(list)
    for file, path in plots.items():
        pictures[Path(file).stem].append(path)
    return pictures
