"""Names of vertices as pictures write them: without what all have in common, and no longer than there is room."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

# Stands for a letter that the font lacks.
NO_LETTER = "▯"
_FONT = "DejaVu Sans"
_MANY = 400
# How much wider a line may be where its letters are fitted to pixels.
_ROUNDED = 1.07
_WEB = re.compile(r"https?://", re.IGNORECASE)


def shown_names(names: Sequence[str], *, points: float, size: float) -> list[str]:
    """Return names of at most ``points`` in width at a font size, cut in the middle where they are longer.

    Of URLs the scheme is left out, and the host, too, where it is the same for all; letters are not percent-encoded.
    Letters that the font lacks are `NO_LETTER`.

    Parameters
    ----------
    names
        Names, URLs or any others.
    points, size
        Width and size of the font in points.
    """
    short = _without_hosts(names) if names and all(map(_WEB.match, names)) else list(names)
    return [_cut(_drawable(name), points=points, size=size) for name in short]


def _without_hosts(urls: Sequence[str]) -> list[str]:
    parts = [urlsplit(url) for url in urls]
    one_host = len({each.netloc for each in parts}) == 1 and len(urls) > 1
    queries = [f"?{each.query}" if each.query else "" for each in parts]
    return [
        unquote(f"{'' if one_host else each.netloc}{each.path}{query}")
        for each, query in zip(parts, queries, strict=True)
    ]


def _drawable(name: str) -> str:
    """Return a name as one line of letters that the font has."""
    line = " ".join(name[: 2 * _MANY].split())
    return "".join(letter if _has(letter) else NO_LETTER for letter in line)


def _cut(name: str, *, points: float, size: float) -> str:
    if len(name) <= _MANY and _width(name, size) <= points:
        return name
    kept = min(len(name), _MANY)
    while True:
        kept -= max(1, kept // 20)
        # More of the end, where pages of a site differ.
        first = kept // 3
        shorter = f"{name[:first]}…{name[len(name) - (kept - first) :]}"
        if _width(shorter, size) <= points or kept <= 2:
            return shorter


@cache
def _font() -> FT2Font:
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    return FT2Font(findfont(_FONT))


@cache
def _has(letter: str) -> bool:
    return letter.isprintable() and _font().get_char_index(ord(letter)) != 0


def _width(text: str, size: float) -> float:
    """Return the width of a line in points."""
    from matplotlib.ft2font import LoadFlags

    font = _font()
    font.set_size(size, 72)
    # Without hints, which fit letters to pixels of one size of them.
    font.set_text(text, 0.0, flags=LoadFlags.NO_HINTING)
    return _ROUNDED * font.get_width_height()[0] / 64
