"""The piece of a text that shows why it was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from whitewater.pagerank.terminal_text import CUT, printable
from whitewater.pagerank.terms import Terms
from whitewater.pagerank.tokens import Word, words

WINDOW = 30
# Words before the first that was asked for, where there is room.
LEAD = 5
# A snippet is looked for in so many characters from the beginning, so that a long text does not hold up the answer.
SCANNED = 20_000
MARK = "**"


def snippet(text: str, asked: Collection[str], terms: Terms) -> str:
    """Return the `WINDOW` words, the first of equals, with the most different terms that were asked for, marked."""
    scanned = text[:SCANNED]
    found = list(words(scanned))
    if not found:
        return ""
    # The last word may be cut off: it is not shown.
    found = found[:-1] if len(text) > SCANNED and len(found) > 1 else found
    matches = [terms.of(word.text) for word in found]
    hits = [term if term in asked else None for term in matches]
    start = _best_window(hits)
    stop = min(start + WINDOW, len(found))
    shown = _marked(scanned, found[start:stop], [term is not None for term in hits[start:stop]])
    before = f"{CUT} " if start else ""
    after = f" {CUT}" if stop < len(found) or len(text) > SCANNED else ""
    return before + printable(shown) + after


def _best_window(hits: Sequence[str | None]) -> int:
    """Return the first word of the best window: the earliest with the most different hits, after some lead."""
    within: Counter[str] = Counter()
    best, best_start, stop = 0, 0, 0
    for start, term in enumerate(hits):
        for entering in hits[stop : start + WINDOW]:
            if entering is not None:
                within[entering] += 1
        stop = max(stop, min(start + WINDOW, len(hits)))
        if term is not None:
            if len(within) > best:
                best, best_start = len(within), start
            within[term] -= 1
            within += Counter()
    last = max((place for place in range(best_start, min(best_start + WINDOW, len(hits))) if hits[place]), default=0)
    room = WINDOW - 1 - (last - best_start)
    return max(0, min(best_start - min(LEAD, room), len(hits) - WINDOW))


def _marked(text: str, found: Sequence[Word], hits: Sequence[bool]) -> str:
    """Return the text from the first word to the last, the hits marked."""
    pieces, place = [], found[0].start
    for word, hit in zip(found, hits, strict=True):
        shown = text[word.start : word.stop]
        pieces += [text[place : word.start], f"{MARK}{shown}{MARK}" if hit else shown]
        place = word.stop
    return "".join(pieces)
