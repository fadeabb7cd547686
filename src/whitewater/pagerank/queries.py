"""What a query asks for: terms, and phrases in quotes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from whitewater.errors import InputError
from whitewater.pagerank.terms import GAP, Terms
from whitewater.pagerank.tokens import words

QUOTE = '"'


@dataclass(frozen=True)
class Query:
    """A query.

    Parameters
    ----------
    text
        As it was asked.
    terms
        Its terms; one that is asked for twice is there twice.
    words
        The first word of each term.
    phrases
        The terms of each phrase, and their places in it: where a stop word stands, any word may.
    """

    text: str
    terms: tuple[str, ...]
    words: dict[str, str]
    phrases: tuple[tuple[tuple[int, str], ...], ...]


def parse_query(text: str, terms: Terms, *, positions: bool) -> Query:
    """Cut a query into terms, as the index was.

    Raises
    ------
    InputError
        If nothing is asked for, a quote is not closed, or phrases are asked of an index without positions.
    """
    parts = [_placed(part, terms) for part in text.split(QUOTE)]
    if len(parts) % 2 == 0:
        raise InputError(f"the query {text!r} has a quote that is not closed. Close it, or leave it out.")
    phrases = [tuple((place, term) for place, _, term in part) for part in parts[1::2] if part]
    if phrases and not positions:
        raise InputError(f"the query {text!r} has a phrase in quotes, but the index has no positions. Leave out the "
                         "quotes, or set pagerank.index.positions to true and run the step index again.")  # fmt: skip
    if any(phrase[-1][0] - phrase[0][0] >= GAP for phrase in phrases):
        raise InputError(f"the query {text!r} has a phrase of more than {GAP} words. Quote less of it.")
    found = list(chain.from_iterable(parts))
    if not found:
        raise InputError(
            f"the query {text!r} asks for nothing: it has no words, or only stop words. Name another word."
        )
    first: dict[str, str] = {}
    for _, word, term in found:
        first.setdefault(term, word)
    return Query(text, tuple(term for _, _, term in found), first, tuple(phrases))


def _placed(text: str, terms: Terms) -> Sequence[tuple[int, str, str]]:
    """Return place, word and term of the words of a text that have one."""
    placed = ((place, word.text, terms.of(word.text)) for place, word in enumerate(words(text)))
    return [(place, word, term) for place, word, term in placed if term is not None]
