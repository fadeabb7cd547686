"""The style of all pictures, and picture files whose bytes depend on the data only.

Colors are safe for any color vision: the eight of M. Okabe and K. Ito, "Color Universal Design", 2008, and for
differences the map PuOr of C. Brewer's ColorBrewer.
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
NO_LETTER = "▯"  # replaces letters that the font lacks
_FONT = "DejaVu Sans"
_PIXEL_ROUNDING = 1.07  # a line may become that much wider when its letters are aligned to pixels
_MOST_LETTERS = 400  # of a name
_LETTERS_AN_INCH = 14.5  # at the size of subtitles
_TITLE, _LINE, _MARGIN = 0.30, 0.19, 0.08  # inches
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
    # Letters as shapes: a picture looks the same on machines without the font.
    "svg.fonttype": "path",
    "svg.hashsalt": "whitewater",
    "xtick.color": TEXT_GRAY,
    "xtick.labelsize": 9,
    "ytick.color": TEXT_GRAY,
    "ytick.labelsize": 9,
}
# Without these, Matplotlib writes metadata that differ between runs.
_METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


def with_style(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw with this style, regardless of the machine's `matplotlibrc`."""

    @wraps(draw)
    def draw_styled(*arguments: P.args, **options: P.kwargs) -> Figure:
        with matplotlib.style.context(_LOOK, after_reset=True):
            figure = draw(*arguments, **options)
            _disable_formulas(figure)
            _lay_out(figure)
            return figure

    return draw_styled


def _disable_formulas(figure: Figure) -> None:
    """Write dollar signs literally and mark letters that the font lacks; an axis's own numbers may stay formulas."""
    numbers: set[Text] = set()
    for axis in figure.findobj(Axis):
        numbers |= {axis.get_offset_text(), *axis.get_minorticklabels()}
        if not isinstance(axis.get_major_formatter(), FixedFormatter | FuncFormatter):
            numbers.update(axis.get_majorticklabels())
    for text in figure.findobj(Text):
        if text not in numbers:
            text.set_parse_math(False)
            text.set_text(replace_missing_letters(text.get_text()))


def _lay_out(figure: Figure) -> None:
    """Compute the layout, once for all formats."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)
        figure.set_layout_engine("none")
    for axes in figure.axes:
        # The last bits of the solver's result, and with them the ids in an SVG, vary with memory addresses.
        axes.set_position(Bbox(axes.get_position(original=True).get_points().round(9)))


def new_figure(
    width: float, height: float, *, title: str, subtitle: str = "", notes: Sequence[str] = ()
) -> tuple[Figure, SubFigure]:
    """Return a figure with a title, subtitle and notes, and its empty part, whose size in inches is given."""
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


@with_style
def text_figure(title: str, *reasons: str) -> Figure:
    """Return a picture that explains why there is nothing to draw."""
    figure, body = new_figure(9, 3, title=title)
    write_text(body.subplots(), *reasons)
    return figure


def write_text(axes: Axes, *reasons: str) -> None:
    """Explain in empty axes why there is nothing to draw."""
    text = "\n".join(textwrap.fill(reason, 80) for reason in reasons)
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", size=11, color=TEXT_GRAY)


def fit_text(text: str, *, points: float = 120, size: float = 9) -> str:
    """Shorten text in the middle to one line of at most ``points`` width; `NO_LETTER` replaces unknown letters."""
    name = replace_missing_letters(" ".join(text[: 2 * _MOST_LETTERS].split()))
    shorter, length = name, min(len(name), _MOST_LETTERS)
    while length > 2 and (len(shorter) > _MOST_LETTERS or text_width(shorter, size) > points):
        length -= max(1, length // 20)
        # More of the end, where names that begin alike differ.
        first = length // 3
        shorter = f"{name[:first]}…{name[len(name) - (length - first) :]}"
    return shorter


def replace_missing_letters(text: str) -> str:
    """Return text, of one or several lines, with `NO_LETTER` for each letter that the font lacks."""
    return "".join(letter if letter == "\n" or _has_glyph(letter) else NO_LETTER for letter in text)


def escape_missing_letters(name: str) -> str:
    r"""Return a short name as one line, with code points such as ``\u6c49`` for letters that the font lacks."""
    return "".join(letter if _has_glyph(letter) else f"\\u{ord(letter):04x}" for letter in " ".join(name.split()))


@cache
def _has_glyph(letter: str) -> bool:
    return letter.isprintable() and get_font(findfont(_FONT)).get_char_index(ord(letter)) != 0


def text_width(text: str, size: float) -> float:
    """Return the width of a line in points."""
    font = FontProperties(family=_FONT, size=size)
    return _PIXEL_ROUNDING * float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def save(figure: Figure, path: Path) -> None:
    """Write a PNG or SVG file, by its suffix; others raise InputError. Equal figures give equal bytes."""
    form = path.suffix.removeprefix(".")
    if form not in _METADATA:
        raise InputError(f"{path}: a picture is a .png or .svg file. Name it so.")
    with matplotlib.style.context(_LOOK, after_reset=True):
        figure.savefig(path, format=form, metadata=_METADATA[form])


def draw_all(figures: Mapping[str, Callable[[], Figure]], plots: Mapping[str, Path]) -> list[str]:
    """Draw each picture once, write it to its files, and return the names of the pictures.

    ``plots`` maps names of files such as ``ranks.png`` to the paths to write. Raises InputError for an unknown picture.
    """
    files: dict[str, list[Path]] = defaultdict(list)
    for file, path in plots.items():
        files[Path(file).stem].append(path)
    if unknown := sorted(set(files) - set(figures)):
        raise InputError(f"No picture is named {', '.join(unknown)}. There are {', '.join(figures)}.")
    without_letters = []
    for name, paths in files.items():
        figure = figures[name]()
        if any(NO_LETTER in text.get_text() for text in figure.findobj(Text)):
            without_letters.append(name)
        for path in paths:
            save(figure, path)
    if names := ", ".join(without_letters):
        logger.warning("The font of the pictures lacks letters of names in %s: they are drawn as %s", names, NO_LETTER)
    return sorted(files)
