"""Foreign text for a terminal: without control characters, and cut to the width."""

import unicodedata

CUT = "…"
# Embeddings, overrides and isolates: they change the direction of the following text.
_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def printable(text: str) -> str:
    """Return a text as one line, without characters that control the terminal or the direction of writing."""
    kept = (" " if unicodedata.category(letter) == "Cc" or letter in _DIRECTIONS else letter for letter in text)
    return " ".join("".join(kept).split())


def shorten(text: str, *, columns: int) -> str:
    """Return a printable text as one line of at most ``columns``; it ends in `CUT` if it was cut."""
    from rich.cells import cell_len, set_cell_size

    line = printable(text)
    return line if cell_len(line) <= columns else set_cell_size(line, columns - 1).rstrip() + CUT


def fold_text(text: str, *, columns: int, lines: int) -> list[str]:
    """Return a printable text as at most ``lines`` of at most ``columns``; the last ends in `CUT` if it was cut.

    Examples
    --------
    >>> fold_text("to be or not to be", columns=8, lines=2)
    ['to be or', 'not to…']
    """
    from rich.cells import cell_len, set_cell_size

    rest, folded = printable(text), list[str]()
    while len(folded) < lines - 1 and cell_len(rest) > columns:
        fitting = max(1, len(set_cell_size(rest, columns).rstrip()))
        # Break at a blank if the second half of the line has one.
        blank = rest.rfind(" ", fitting // 2, fitting + 1)
        folded.append(rest[: blank if blank > 0 else fitting])
        rest = rest[len(folded[-1]) :].lstrip()
    return [*folded, shorten(rest, columns=columns)] if rest else folded
