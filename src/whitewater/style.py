"""One look for the pictures of all applications, and files whose bytes depend on nothing but the data.

Colours: the eight of M. Okabe and K. Ito, "Color Universal Design", 2008, which people with any colour vision tell apart,
and the colour maps cividis (J. Nuñez, C. Anderton, R. Renslow, 2018) and PuOr (ColorBrewer).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")

BLACK, ORANGE, SKY_BLUE, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY, LIGHT_GREY, TEXT_GREY = "#999999", "#E4E4E4", "#555555"
DIVERGING = "PuOr_r"
DENSITY = "Greys"
# Letters of a line of text, at the size of subtitles, in an inch.
_LETTERS_AN_INCH = 14.5
_TITLE, _LINE, _MARGIN = 0.30, 0.19, 0.08
_LOOK: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.formatter.use_mathtext": True,
    "axes.grid": True,
    "axes.labelcolor": "#222222",
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "grid.color": LIGHT_GREY,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "savefig.dpi": 150,
    # Letters as shapes, so that a picture looks the same where the font is missing.
    "svg.fonttype": "path",
    "svg.hashsalt": "whitewater",
    "xtick.color": TEXT_GREY,
    "xtick.labelsize": 9,
    "ytick.color": TEXT_GREY,
    "ytick.labelsize": 9,
}
# What Matplotlib would write otherwise differs from run to run.
_METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw with this look, whatever a `matplotlibrc` of the machine says."""

    @wraps(draw)
    def drawn(*arguments: P.args, **options: P.kwargs) -> Figure:
        import matplotlib.style

        with matplotlib.style.context(_LOOK, after_reset=True):
            return draw(*arguments, **options)

    return drawn


def titled(width: float, height: float, *, title: str, subtitle: str = "", notes: Sequence[str] = ()) -> Figure:
    """Return an empty figure with a title and subtitle above its axes, and notes below.

    Parameters
    ----------
    width, height
        Inches; the height is that of the axes with their labels, to which the lines of text are added.
    title
        One line.
    subtitle
        What is shown and of how many; wrapped.
    notes
        What the reader should know besides, each on lines of its own.
    """
    from matplotlib.figure import Figure

    letters = int(width * _LETTERS_AN_INCH)
    above = textwrap.wrap(subtitle, letters)
    below = [line for note in notes for line in textwrap.wrap(note, int(letters * 1.1))]
    header = _TITLE + _LINE * len(above) + 2 * _MARGIN
    footer = (_LINE * len(below) + _MARGIN) if below else 0.0
    total = header + height + footer
    figure = Figure(figsize=(width, total), layout="constrained")
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0, footer / total, 1, height / total), w_pad=_MARGIN, h_pad=_MARGIN)  # type: ignore[call-arg]
    left, place = _MARGIN / width, {"va": "top", "ha": "left"}
    figure.text(left, 1 - _MARGIN / total, title, size=13, weight="bold", **place)
    figure.text(left, 1 - (_MARGIN + _TITLE) / total, "\n".join(above), size=9.5, color=TEXT_GREY, **place)
    figure.text(left, footer / total, "\n".join(below), size=8.5, color=TEXT_GREY, **place)
    return figure


@styled
def explained(title: str, reason: str) -> Figure:
    """Return a picture that says why there is nothing to draw."""
    figure = titled(9, 3, title=title)
    axes = figure.subplots()
    axes.set(xticks=[], yticks=[])
    axes.text(0.5, 0.5, textwrap.fill(reason, 80), ha="center", va="center", size=11, color=TEXT_GREY)
    return figure


def in_percent(axes: Axes, *, x: bool = False, y: bool = False) -> None:
    """Label an axis of fractions in percent."""
    from matplotlib.ticker import PercentFormatter

    for wanted, axis in ((x, axes.xaxis), (y, axes.yaxis)):
        if wanted:
            axis.set_major_formatter(PercentFormatter(xmax=1, symbol=" %"))


def count(number: int) -> str:
    """Return a count as people read it: ``12,345``, ``12.3 million``, ``1.23 billion``."""
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if number >= 10 * size or (number >= size and name == "billion"):
            return f"{number / size:.3g} {name}"
    return f"{number:,}"


def save(figure: Figure, path: Path) -> None:
    """Write a picture; its suffix, ``.png`` or ``.svg``, is the format. Equal figures give equal bytes."""
    import matplotlib.style

    form = path.suffix.removeprefix(".")
    with matplotlib.style.context(_LOOK, after_reset=True):
        figure.savefig(path, format=form, metadata=_METADATA[form])
