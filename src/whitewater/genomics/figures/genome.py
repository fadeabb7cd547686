"""Loadings along the genome: which variants make a component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from whitewater import style
from whitewater.devices import Array
from whitewater.lettering import fitted, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "Where on the genome the components come from"
# Share of the length of all contigs that separates two of them, and all of them together at most.
_GAP, _GAPS = 0.008, 0.2
# In points: the width of an axis, that of the longest name, the room between two names, and the size of their letters.
_WIDTH, _LONGEST_NAME, _ROOM, _SIZE = 580, 120, 3, 9


@style.styled
def loadings_by_position(loadings: Array, *, contigs: Sequence[str], positions: Array, components: int) -> Figure:
    """Draw the squared loadings of the first components along the genome, relative to their mean.

    Parameters
    ----------
    loadings
        Floating point, (variants, components); each column a unit vector.
    contigs, positions
        Of each variant; contigs stay together and in the order of their first variants.
    components
        How many are drawn, from the first on.
    """
    drawn = min(components, loadings.shape[1])
    places, spans = along_genome(contigs, positions)
    subtitle = (
        f"Squared loadings of {style.count(len(places))} variants; 1 where all have the same share. Towers: variants "
        "that are inherited together, as in inversions or regions of long-range LD."
    )
    figure, body = style.titled(9, 0.6 + 1.35 * drawn, title=_TITLE, subtitle=subtitle)
    panels = body.subplots(drawn, sharex=True, squeeze=False)[:, 0]
    numbers = {name: number for number, name in enumerate(spans)}
    odd = np.array([numbers[name] % 2 for name in contigs], dtype=bool)
    for number, axes in enumerate(panels):
        _draw_component(axes, places, loadings[:, number].astype(float) ** 2 * len(places), odd)
        axes.set_ylabel(f"PC{number + 1}")
    _name_contigs(panels[-1], spans)
    return figure


def along_genome(contigs: Sequence[str], positions: Array) -> tuple[Array, dict[str, tuple[float, float]]]:
    """Lay the contigs end to end: the place of each variant, and where each contig begins and ends, from 0 to about 1.

    A contig is as long as the span of its variants.
    """
    names = np.asarray(contigs, dtype=object)
    positions = np.asarray(positions, dtype=float)
    own = {name: names == name for name in dict.fromkeys(contigs)}
    bounds = {name: (positions[mine].min(), positions[mine].max()) for name, mine in own.items()}
    total = sum(last - first for first, last in bounds.values()) or 1.0
    gap = min(_GAP, _GAPS / len(own)) if own else _GAP
    places, spans, start = np.empty(len(positions)), {}, 0.0
    for name, mine in own.items():
        first, last = bounds[name]
        places[mine] = start + (positions[mine] - first) / total
        spans[name] = (start, start + (last - first) / total)
        start = spans[name][1] + gap
    return places, spans


def _draw_component(axes: Axes, places: Array, shares: Array, odd: Array) -> None:
    for mine, colour in ((~odd, style.BLUE), (odd, style.SKY_BLUE)):
        axes.plot(places[mine], shares[mine], ".", markersize=2.5, color=colour, rasterized=True)
    axes.set_ylim(0, 1.08 * max(float(shares.max()), 1.0))
    axes.set_xlim(-_GAP, float(places.max()) + _GAP)
    axes.grid(visible=False, axis="x")
    axes.locator_params(axis="y", nbins=4)


def _name_contigs(axes: Axes, spans: Mapping[str, tuple[float, float]]) -> None:
    """Write the names of the contigs under their middles, as many as have room, those of the longest contigs first."""
    axes.tick_params(axis="x", length=0)
    left, right = axes.get_xlim()
    shown: dict[float, str] = {}
    taken: list[tuple[float, float]] = []
    for contig, (start, stop) in sorted(spans.items(), key=lambda span: span[1][0] - span[1][1]):
        name = fitted(contig, points=_LONGEST_NAME, size=_SIZE)
        half, middle = (width(name, _SIZE) + _ROOM) / 2 / _WIDTH * (right - left), (start + stop) / 2
        first, last = middle - half, middle + half
        if left <= first and last <= right and all(last <= begin or end <= first for begin, end in taken):
            shown[middle] = name
            taken.append((first, last))
    axes.set_xlabel("Contig" if len(shown) == len(spans) else f"Contig ({len(shown)} of {len(spans)} named)")
    axes.set_xticks(sorted(shown), [shown[middle] for middle in sorted(shown)])
