"""Text of others for a terminal: without what controls it, and no longer than there is room."""

from __future__ import annotations

import re
import unicodedata
from itertools import accumulate

CUT = "…"
# Embeddings, overrides and isolates, which change the direction of what comes after them.
_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_BLANKS = re.compile(r"\s+")


def printable(text: str) -> str:
    """Return a text in one line, without what controls a terminal or the direction of writing."""
    kept = (" " if unicodedata.category(letter) == "Cc" or letter in _DIRECTIONS else letter for letter in text)
    return _BLANKS.sub(" ", "".join(kept)).strip()


def shortened(text: str, *, columns: int) -> str:
    """Return a text, made printable, as one line of at most so many columns; see `folded`."""
    return "".join(folded(text, columns=columns, lines=1))


def folded(text: str, *, columns: int, lines: int) -> list[str]:
    """Return a text, made printable, as at most so many lines of at most so many columns; the last tells if it is cut.

    Lines end at a blank where there is one in their second half.

    Examples
    --------
    >>> folded("to be or not to be", columns=8, lines=2)
    ['to be or', 'not to…']
    """
    rest, found = printable(text), list[str]()
    while rest and len(found) < lines:
        fitting = _fitting(rest, columns)
        if fitting < len(rest):
            is_last = len(found) == lines - 1
            fitting = max(1, _fitting(rest, columns - is_last))
            blank = rest.rfind(" ", fitting // 2, fitting + 1)
            fitting = blank if blank > 0 else fitting
            found.append(rest[:fitting] + CUT * is_last)
        else:
            found.append(rest)
        rest = rest[fitting:].lstrip()
    return found


def _fitting(text: str, columns: int) -> int:
    """Return how many letters from the beginning take at most so many columns."""
    return sum(taken <= columns for taken in accumulate(map(_columns, text[: max(0, 2 * columns)])))


def _columns(letter: str) -> int:
    """Return the columns that a letter takes: two where it is wide, none where it is a mark on another."""
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
