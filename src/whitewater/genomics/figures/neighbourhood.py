"""UMAP: a map on which samples with similar components are close."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from whitewater import style
from whitewater.genomics.figures.labels import draw_legend, draw_samples, looks, sample_counts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_TITLE = "Samples on a map of their components"


@style.styled
def umap(embedding: pd.DataFrame, projected: pd.DataFrame, *, quality: Mapping[str, Any]) -> Figure:
    """Draw the map of the samples, coloured by label, with its trustworthiness.

    Parameters
    ----------
    embedding
        `umap.parquet`: ``label``, ``UMAP1``, ``UMAP2``.
    projected
        `projected.parquet`: ``label`` of the samples that are not on the map; labels look as in the other pictures.
    quality
        The content of `umap.json`.
    """
    if quality["trustworthiness"] is None:
        reason = f"{style.count(len(embedding))} samples are not more than {quality['neighbors']} neighbors"
        return style.explained(_TITLE, f"No map was made: {reason} (genomics.umap.neighbors).")
    shown = looks(embedding["label"], projected["label"])
    subtitle = (
        f"{style.count(len(embedding))} samples. Trustworthiness {quality['trustworthiness']:.3f}: 1 where neighbours "
        "on the map are neighbours in the components."
    )
    notes = ["Distances between groups, and their sizes, mean nothing."]
    figure, body = style.titled(9, 5.4, title=_TITLE, subtitle=subtitle, notes=notes)
    axes = body.subplots()
    draw_samples(axes, embedding, shown, x="UMAP1", y="UMAP2")
    axes.set(xlabel="UMAP 1", ylabel="UMAP 2", xticks=[], yticks=[])
    draw_legend(body, shown, sample_counts(shown, embedding))
    return figure
