"""Principal components: samples on pairs of them, and how many of them mean something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater import style
from whitewater.devices import Array
from whitewater.genomics.figures.labels import draw_legend, draw_samples, looks, sample_counts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SCREE = "Which components are more than noise"
# Smallest p-value that has a place of its own on the axis; the others would leave the interesting ones no room.
_LEAST_P = 1e-60
# Components whose share of the variance is written beside them.
_MOST_SHARES = 5
# Height of a line of text as a share of the axis.
_LINE = 0.045


@style.styled
def component_pair(
    pcs: pd.DataFrame, projected: pd.DataFrame, *, eigenvalues: Mapping[str, Any], pair: tuple[int, int]
) -> Figure:
    """Draw the samples on two components, coloured by label; those that were projected are hollow.

    Parameters
    ----------
    pcs
        `pcs.parquet`: ``sample``, ``label`` (null where there is none), ``PC1`` ... of the samples used.
    projected
        `projected.parquet`: the same columns of the samples that the components were not computed from; NaN where too
        few genotypes are called.
    eigenvalues
        The content of `eigenvalues.json`.
    pair
        Numbers of the components across and up, from 1.
    """
    x, y = (f"PC{number}" for number in pair)
    title = f"Samples on {x} and {y}"
    if y not in pcs or x not in pcs:
        return style.explained(title, f"There are {_components(pcs)} components only: the data have no {y}.")
    placed = projected.dropna(subset=[x, y])
    shown = looks(pcs["label"], projected["label"])
    subtitle = f"{style.count(len(pcs))} samples, {style.count(eigenvalues['variants'])} variants."
    if len(placed):
        subtitle += f" Hollow: {style.count(len(placed))} samples that the components were not computed from."
    figure, body = style.titled(
        9, 5.4, title=title, subtitle=subtitle, notes=_without_scores(len(projected) - len(placed))
    )
    axes = body.subplots()
    for at in (axes.axhline, axes.axvline):
        at(0, color=style.GREY, linewidth=0.6, zorder=1)
    draw_samples(axes, pcs, shown, x=x, y=y)
    draw_samples(axes, placed, shown, x=x, y=y, hollow=True)
    shares = eigenvalues["explained_variance_ratio"]
    axes.set(xlabel=_axis(x, shares[pair[0] - 1]), ylabel=_axis(y, shares[pair[1] - 1]))
    draw_legend(body, shown, sample_counts(shown, pcs, placed), hollow="projected" if len(placed) else "")
    return figure


def _without_scores(samples: int) -> list[str]:
    what = "samples without scores: column `reason` of projected.parquet tells why"
    return [f"Not shown: {style.count(samples)} {what}."] if samples else []


def _components(pcs: pd.DataFrame) -> int:
    return sum(name.startswith("PC") and name[2:].isdigit() for name in pcs.columns)


def _axis(name: str, share: float) -> str:
    return f"{name} ({style.percent(share)} of the variance)"


@style.styled
def scree(eigenvalues: Mapping[str, Any]) -> Figure:
    """Draw the eigenvalues with those that would be significant, and the p-values of the test of Tracy and Widom.

    Parameters
    ----------
    eigenvalues
        The content of `eigenvalues.json`.
    """
    values = np.asarray(eigenvalues["eigenvalues"], dtype=float)
    significant = int(eigenvalues["significant_components"])
    subtitle = (
        f"{significant} of the first {len(values)} components are significant. Percentages: share of the variance. "
        f"{style.count(eigenvalues['samples'])} samples, {style.count(eigenvalues['variants'])} variants."
    )
    smaller = any(test["p_value"] < _LEAST_P for test in eigenvalues["tracy_widom"])
    notes = [f"Smaller p-values are drawn at {_LEAST_P:g}."] if smaller else []
    figure, body = style.titled(9, 3.9, title=_SCREE, subtitle=subtitle, notes=notes)
    left, right = body.subplots(1, 2)
    thresholds = np.array([test["threshold"] for test in eigenvalues["tracy_widom"]])
    _draw_eigenvalues(left, values, eigenvalues["explained_variance_ratio"], significant)
    left.plot(
        np.arange(1, len(thresholds) + 1), thresholds, color=style.VERMILION, linestyle="--", linewidth=1.2,
        label="least that would be significant",
    )  # fmt: skip
    left.set_ylim(0, 1.3 * float(max(values.max(), *thresholds)))
    left.legend(loc="upper right")
    _draw_p_values(right, eigenvalues["tracy_widom"], significant)
    for axes in (left, right):
        axes.set(xlim=(0.3, len(values) + 0.7), xlabel="Component", xticks=_ticks(len(values)))
        axes.grid(visible=False, axis="x")
    return figure


def _draw_eigenvalues(axes: Axes, values: Array, shares: Sequence[float], significant: int) -> None:
    components = np.arange(1, len(values) + 1)
    axes.plot(components, values, color=style.GREY, linewidth=1)
    _draw_marks(axes, components, values, significant)
    top = 1.3 * float(values.max())
    for component in _labelled(values[:significant], apart=_LINE * top):
        axes.annotate(
            style.percent(shares[component]), (component + 1, values[component]), xytext=(7, 3),
            textcoords="offset points", size=8, color=style.TEXT_GREY,
        )  # fmt: skip
    axes.set(ylabel="Eigenvalue", ylim=(0, top))


def _labelled(values: Array, *, apart: float) -> list[int]:
    """Return the leading values, from the first on, that are so far below the one before that text fits beside each."""
    close = np.flatnonzero(np.diff(values) > -apart)
    return list(range(min(len(values), _MOST_SHARES, int(close[0]) + 1 if len(close) else len(values))))


def _draw_p_values(axes: Axes, tests: Sequence[Mapping[str, Any]], significant: int) -> None:
    if not tests:
        style.explain(axes, "No component was tested.")
        return
    components = np.array([test["component"] for test in tests])
    p_values = np.maximum([test["p_value"] for test in tests], _LEAST_P)
    _draw_marks(axes, components, p_values, significant)
    axes.set_yscale("log")
    axes.set(ylabel="p-value (Tracy-Widom)", ylim=(min(float(p_values.min()), 1e-3) / 10, 10))


def _draw_marks(axes: Axes, components: Array, values: Array, significant: int) -> None:
    for mine, face, name in (
        (components <= significant, style.BLUE, "significant"),
        (components > significant, "white", "not significant"),
    ):
        axes.plot(
            components[mine], values[mine], "o", markersize=7, markerfacecolor=face, markeredgecolor=style.BLUE,
            label=name,
        )  # fmt: skip


def _ticks(components: int) -> list[int]:
    step = 1 if components <= 12 else 2 if components <= 24 else 5 * -(-components // 60)
    return list(range(1, components + 1)) if step == 1 else list(range(step, components + 1, step))
