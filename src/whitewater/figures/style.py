"""One look for the pictures of all applications, and files whose bytes depend on nothing but the data.

Colors: the eight of M. Okabe and K. Ito, "Color Universal Design", 2008, which people tell apart whatever their color
vision, and for differences the map PuOr of C. Brewer's ColorBrewer, which it lists as safe for them.
"""

import logging
import textwrap
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FixedFormatter, FuncFormatter
from matplotlib.transforms import Bbox

from whitewater.errors import InputError

P = ParamSpec("P")
logger = logging.getLogger(__name__)

BLACK, ORANGE, SKY_BLUE, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GRAY, LIGHT_GRAY, TEXT_GRAY = "#999999", "#E4E4E4", "#555555"
DIVERGING = "PuOr_r"
DENSITY = "Greys"
# Stands for a letter that the font lacks.
NO_LETTER = "▯"
_FONT = "DejaVu Sans"
# How much wider a line may be where its letters are fitted to pixels.
_ROUNDED = 1.07
# Of a longer name only as many letters are looked at.
_MOST_LETTERS = 400
# Letters of a line of text, at the size of subtitles, in an inch.
_LETTERS_AN_INCH = 14.5
_TITLE, _LINE, _MARGIN = 0.30, 0.19, 0.08
_LOOK: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": GRAY,
    "axes.formatter.use_mathtext": True,
    "axes.grid": True,
    "axes.labelcolor": "#222222",
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "figure.facecolor": "white",
    "font.family": _FONT,
    "font.size": 9.5,
    "grid.color": LIGHT_GRAY,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "savefig.dpi": 150,
    # Letters as shapes, so that a picture looks the same where the font is missing.
    "svg.fonttype": "path",
    "svg.hashsalt": "whitewater",
    "xtick.color": TEXT_GRAY,
    "xtick.labelsize": 9,
    "ytick.color": TEXT_GRAY,
    "ytick.labelsize": 9,
}
# What Matplotlib would write otherwise differs from run to run.
_METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw with this look, whatever a `matplotlibrc` of the machine says."""

    @wraps(draw)
    def drawn(*arguments: P.args, **options: P.kwargs) -> Figure:
        with matplotlib.style.context(_LOOK, after_reset=True):
            figure = draw(*arguments, **options)
            _write_literally(figure)
            _lay_out(figure)
            return figure

    return drawn


def _write_literally(figure: Figure) -> None:
    """Write all text as it is: a dollar sign in a name begins no formula, and letters that the font lacks are marked.

    Only the numbers that an axis writes itself stay formulas, such as powers of ten.
    """
    numbers: set[Text] = set()
    for axis in figure.findobj(Axis):
        numbers |= {axis.get_offset_text(), *axis.get_minorticklabels()}
        if not isinstance(axis.get_major_formatter(), FixedFormatter | FuncFormatter):
            numbers.update(axis.get_majorticklabels())
    for text in figure.findobj(Text):
        if text not in numbers:
            text.set_parse_math(False)
            text.set_text(drawable(text.get_text()))


def _lay_out(figure: Figure) -> None:
    """Give everything its place, once for all formats."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
    for axes in figure.axes:
        # The last bits of the solver's result vary with addresses in memory, and the ids within an SVG with them.
        axes.set_position(Bbox(axes.get_position(original=True).get_points().round(9)))


def titled(
    width: float, height: float, *, title: str, subtitle: str = "", notes: Sequence[str] = ()
) -> tuple[Figure, SubFigure]:
    """Return a figure with a title and subtitle on top and notes below, and its empty part for axes and legends.

    Width and height are inches, the height that of the empty part, to which the lines of text are added. The subtitle
    and each note are wrapped.
    """
    letters = int(width * _LETTERS_AN_INCH)
    above = textwrap.wrap(subtitle, letters)
    below = [line for note in notes for line in textwrap.wrap(note, int(letters * 1.1))]
    header = _TITLE + _LINE * len(above) + 2 * _MARGIN
    footer = (_LINE * len(below) + _MARGIN) if below else 0.0
    total = header + height + footer
    between = ConstrainedLayoutEngine(rect=(0, footer / total, 1, height / total), w_pad=_MARGIN, h_pad=_MARGIN)
    figure = Figure(figsize=(width, total), layout=between)

    def write(inches: float, text: str, **look: Any) -> None:
        figure.text(_MARGIN / width, inches / total, text, va="top", ha="left", **look)

    write(total - _MARGIN, title, size=13, weight="bold")
    write(total - _MARGIN - _TITLE, "\n".join(above), size=9.5, color=TEXT_GRAY)
    write(footer, "\n".join(below), size=8.5, color=TEXT_GRAY)
    return figure, figure.add_subfigure(figure.add_gridspec()[0])


@styled
def explained(title: str, *reasons: str) -> Figure:
    """Return a picture that says why there is nothing to draw."""
    figure, body = titled(9, 3, title=title)
    explain(body.subplots(), *reasons)
    return figure


def explain(axes: Axes, *reasons: str) -> None:
    """Say in empty axes why there is nothing in them."""
    text = "\n".join(textwrap.fill(reason, 80) for reason in reasons)
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", size=11, color=TEXT_GRAY)


def fitted(text: str, *, points: float = 120, size: float = 9) -> str:
    """Return text that is data as one line of at most ``points`` in width at a font size, cut in the middle.

    Letters that the font lacks are `NO_LETTER`.
    """
    name = drawable(" ".join(text[: 2 * _MOST_LETTERS].split()))
    shorter, kept = name, min(len(name), _MOST_LETTERS)
    while kept > 2 and (len(shorter) > _MOST_LETTERS or text_width(shorter, size) > points):
        kept -= max(1, kept // 20)
        # More of the end, where names that begin alike differ.
        first = kept // 3
        shorter = f"{name[:first]}…{name[len(name) - (kept - first) :]}"
    return shorter


def drawable(text: str) -> str:
    """Return text, of one or several lines, with `NO_LETTER` for each letter that the font lacks."""
    return "".join(letter if letter == "\n" or _has(letter) else NO_LETTER for letter in text)


def spelled(name: str) -> str:
    r"""Return a name as one line, letters that the font lacks by their code points: ``\u6c49``.

    For few short names that must be told apart, as in a legend.
    """
    return "".join(letter if _has(letter) else f"\\u{ord(letter):04x}" for letter in " ".join(name.split()))


@cache
def _has(letter: str) -> bool:
    return letter.isprintable() and get_font(findfont(_FONT)).get_char_index(ord(letter)) != 0


def text_width(text: str, size: float) -> float:
    """Return the width of a line in points."""
    font = FontProperties(family=_FONT, size=size)
    return _ROUNDED * float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def save(figure: Figure, path: Path) -> None:
    """Write a picture, in the format that its suffix names, or raise `InputError`. Equal figures give equal bytes."""
    form = path.suffix.removeprefix(".")
    if form not in _METADATA:
        raise InputError(f"{path}: a picture is a .png or .svg file. Name it so.")
    with matplotlib.style.context(_LOOK, after_reset=True):
        figure.savefig(path, format=form, metadata=_METADATA[form])


def draw_all(figures: Mapping[str, Callable[[], Figure]], plots: Mapping[str, Path]) -> list[str]:
    """Draw each picture once, write it to its files, and return the names of the pictures.

    ``plots`` has the path to write for each name of a file, which says which picture it is and in which format:
    ``ranks.png``. Raises `InputError` if there is no picture of a name.
    """
    files: dict[str, list[Path]] = defaultdict(list)
    for file, path in plots.items():
        files[Path(file).stem].append(path)
    unknown = sorted(set(files) - set(figures))
    if unknown:
        raise InputError(f"No picture is named {', '.join(unknown)}. There are {', '.join(figures)}.")
    lacking = []
    for name, paths in files.items():
        figure = figures[name]()
        if any(NO_LETTER in text.get_text() for text in figure.findobj(Text)):
            lacking.append(name)
        for path in paths:
            save(figure, path)
    if lacking:
        logger.warning("The font of the pictures lacks letters of names in %s: they are drawn as %s",
                       ", ".join(lacking), NO_LETTER)  # fmt: skip
    return sorted(files)
