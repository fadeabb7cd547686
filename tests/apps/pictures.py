"""What tests of pictures ask of a figure."""

from __future__ import annotations

from itertools import pairwise

from matplotlib.figure import Figure
from matplotlib.text import Text


def written(figure: Figure) -> str:
    """Return all texts of a figure that are seen, a line each."""
    found = figure.findobj(lambda artist: artist.get_visible())
    return "\n".join(text.get_text() for text in found if isinstance(text, Text))


def legend(figure: Figure) -> list[str]:
    """Return the entries of the legend beside the axes."""
    return [text.get_text() for each in figure.subfigs[0].legends for text in each.get_texts()]


def no_text_is_cut(figure: Figure) -> bool:
    """Say whether all of a figure is within its edges."""
    width, height = figure.get_size_inches()
    drawn = figure.get_tightbbox()
    return bool(min(drawn.x0, width - drawn.x1, drawn.y0, height - drawn.y1) >= 0)


def labels_overlap(figure: Figure) -> bool:
    """Say whether some labels of ticks side by side overlap."""
    for axes in figure.axes:
        for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
            boxes = [label.get_window_extent() for label in ticks if label.get_visible() and label.get_text()]
            if any(a.overlaps(b) for a, b in pairwise(box.padded(-1) for box in boxes)):
                return True
    return False
