"""Sizes of components and of communities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "Components and communities"
# So many have a bar each; of more, the distribution of the sizes is drawn.
_MOST_BARS = 24


@style.styled
def communities(found: Mapping[str, Any], *, vertices: int) -> Figure:
    """Draw the sizes of the weakly connected components and of the communities: bars, or points where there are many.

    Parameters
    ----------
    found
        The content of `communities.json`.
    vertices
        Their number.
    """
    if not vertices:
        return style.explained(_TITLE, "The graph has no vertex.")
    components, groups = found["components"], found["communities"]
    has_groups = groups["method"] != "none"
    figure, body = style.titled(9, 3.7, title=_TITLE, subtitle=_told(found, vertices=vertices, has_groups=has_groups))
    left, right = body.subplots(1, 2)
    left.set_title(_counted(components["count"], "component"))
    _draw_sizes(left, components, vertices=vertices, what="component", colour=style.SKY_BLUE)
    if has_groups:
        right.set_title(_counted(groups["count"], "community"))
        _draw_sizes(right, groups, vertices=vertices, what="community", colour=style.GREEN)
    else:
        style.explain(right, "No communities were sought:", "pagerank.communities.method is none.")
    return figure


def _told(found: Mapping[str, Any], *, vertices: int, has_groups: bool) -> str:
    largest = found["components"]["largest"]
    told = (
        f"{style.count(vertices)} vertices; the largest weakly connected component has {style.count(largest)} of them "
        f"({style.percent(largest / vertices)})."
    )
    groups = found["communities"]
    if has_groups and groups["modularity"] is not None:
        told += f" Communities by {groups['method'].capitalize()}, modularity {groups['modularity']:.3f}."
    return told


def _counted(number: int, what: str) -> str:
    several = what.removesuffix("y") + "ies" if what.endswith("y") else f"{what}s"
    return f"{style.count(number)} {what if number == 1 else several}"


def _draw_sizes(axes: Axes, found: Mapping[str, Any], *, vertices: int, what: str, colour: str) -> None:
    if found["count"] <= _MOST_BARS:
        _draw_bars(axes, found["sizes"], what=what, colour=colour)
    else:
        _draw_distribution(axes, found["size_counts"], vertices=vertices, what=what, colour=colour)


def _draw_bars(axes: Axes, sizes: Sequence[int], *, what: str, colour: str) -> None:
    from matplotlib.ticker import MaxNLocator

    numbers = np.arange(len(sizes))
    axes.bar(numbers, sizes, 0.75, color=colour)
    for number, size in zip(numbers, sizes, strict=True):
        axes.annotate(
            style.short_count(size), (number, size), xytext=(0, 2), textcoords="offset points", ha="center",
            va="bottom", size=7.5, rotation=90 if len(sizes) > 12 else 0,
        )  # fmt: skip
    shown = numbers if len(sizes) <= 12 else numbers[::3]
    axes.set_xticks(shown, [str(number) for number in shown])
    axes.set(xlabel=what.capitalize(), ylabel="Vertices", xlim=(-1, max(4, len(sizes))))
    axes.set_ylim(0, max(sizes) * 1.18)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    axes.grid(visible=False, axis="x")


def _draw_distribution(
    axes: Axes, size_counts: Sequence[Sequence[int]], *, vertices: int, what: str, colour: str
) -> None:
    sizes, counts = np.array(sorted(map(tuple, size_counts)), dtype=float).reshape(-1, 2).T
    axes.plot(sizes, counts, "o", color=colour, markeredgecolor="white", markeredgewidth=0.4, markersize=6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    several = _counted(2, what).split()[1].capitalize()
    axes.set(
        xlabel=f"Vertices of a {what}", ylabel=f"{several} of that size", xlim=(0.7, vertices * 1.4),
        ylim=(0.7, counts.max() * 1.6),
    )  # fmt: skip
