"""Text of others for a terminal: without what controls it, and no longer than there is room."""

import unicodedata

CUT = "…"
# Embeddings, overrides and isolates, which change the direction of what comes after them.
_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def printable(text: str) -> str:
    """Return a text in one line, without what controls a terminal or the direction of writing."""
    kept = (" " if unicodedata.category(letter) == "Cc" or letter in _DIRECTIONS else letter for letter in text)
    return " ".join("".join(kept).split())


def shorten(text: str, *, columns: int) -> str:
    """Return a text, made printable, as one line of at most so many columns; it tells if it is cut."""
    from rich.cells import cell_len, set_cell_size

    line = printable(text)
    return line if cell_len(line) <= columns else set_cell_size(line, columns - 1).rstrip() + CUT


def fold_text(text: str, *, columns: int, lines: int) -> list[str]:
    """Return a text, made printable, as at most so many lines of at most so many columns; the last tells if it is cut.

    Examples
    --------
    >>> fold_text("to be or not to be", columns=8, lines=2)
    ['to be or', 'not to…']
    """
    from rich.cells import cell_len, set_cell_size

    rest, folded = printable(text), list[str]()
    while len(folded) < lines - 1 and cell_len(rest) > columns:
        fitting = max(1, len(set_cell_size(rest, columns).rstrip()))
        # At a blank where there is one in the second half.
        blank = rest.rfind(" ", fitting // 2, fitting + 1)
        folded.append(rest[: blank if blank > 0 else fitting])
        rest = rest[len(folded[-1]) :].lstrip()
    return [*folded, shorten(rest, columns=columns)] if rest else folded
