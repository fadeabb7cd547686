"""Text in pictures that is data: of letters that the font has, and no longer than there is room."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

# Stands for a letter that the font lacks.
NO_LETTER = "▯"
_FONT = "DejaVu Sans"
_MANY = 400
# How much wider a line may be where its letters are fitted to pixels.
_ROUNDED = 1.07


def fitted(text: str, *, points: float, size: float) -> str:
    """Return one line of at most ``points`` in width at a font size, cut in the middle where it is longer.

    Letters that the font lacks are `NO_LETTER`.

    Parameters
    ----------
    text
        Any text.
    points, size
        Width and size of the font in points.
    """
    line = " ".join(text[: 2 * _MANY].split())
    return _cut(drawable(line), points=points, size=size)


def drawable(text: str) -> str:
    """Return text, of one or several lines, with `NO_LETTER` for each letter that the font lacks."""
    return "".join(letter if letter == "\n" or _has(letter) else NO_LETTER for letter in text)


def spelled(name: str) -> str:
    r"""Return a name as one line, letters that the font lacks by their code points: ``\u6c49``.

    For few short names that must be told apart, as in a legend.
    """
    return "".join(letter if _has(letter) else f"\\u{ord(letter):04x}" for letter in " ".join(name.split()))


def _cut(name: str, *, points: float, size: float) -> str:
    if len(name) <= _MANY and width(name, size) <= points:
        return name
    kept = min(len(name), _MANY)
    while True:
        kept -= max(1, kept // 20)
        # More of the end, where names that begin alike differ.
        first = kept // 3
        shorter = f"{name[:first]}…{name[len(name) - (kept - first) :]}"
        if width(shorter, size) <= points or kept <= 2:
            return shorter


@cache
def _font() -> FT2Font:
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    return FT2Font(findfont(_FONT))


@cache
def _has(letter: str) -> bool:
    return letter.isprintable() and _font().get_char_index(ord(letter)) != 0


def width(text: str, size: float) -> float:
    """Return the width of a line in points."""
    from matplotlib.ft2font import LoadFlags

    font = _font()
    font.set_size(size, 72)
    # Without hints, which fit letters to pixels of one size of them.
    font.set_text(text, 0.0, flags=LoadFlags.NO_HINTING)
    return _ROUNDED * font.get_width_height()[0] / 64
