"""All documents that match a query, with exact scores: BM25 of the text, and PageRank as a prior.

Sources: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the inverse
document frequency of Apache Lucene, which is above 0 for every term. S. Robertson, H. Zaragoza, M. Taylor, "Simple BM25
Extension to Multiple Weighted Fields" (2004): words of the title count several times. N. Craswell, S. Robertson,
H. Zaragoza, M. Taylor, "Relevance Weighting for Query Independent Evidence" (2005): the prior saturates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError
from whitewater.text.config import Search
from whitewater.text.index_folder import IndexFolder, TermPostings
from whitewater.text.tokens import GAP, Terms, words

QUOTE = '"'
Floats = npt.NDArray[np.float64]
# A document and a position in one integer: positions are below 2**32.
_POSITION_BITS = 32


@dataclass(frozen=True)
class Query:
    """What is asked for: terms, each as often as it is asked for, and phrases in quotes.

    ``words`` are the first word of each term. A phrase is its terms with their places in it: where a stop word stands,
    any word may.
    """

    terms: tuple[str, ...]
    words: dict[str, str]
    phrases: tuple[tuple[tuple[int, str], ...], ...]


@dataclass(frozen=True)
class Ranking:
    """Documents with a term of the query, and with all its phrases; arrays (documents,), by ascending number.

    Better ones have a higher score; if equal, a higher rank; if equal, the URL that comes first. ``unknown`` are the
    words that no document has.
    """

    index: IndexFolder
    query: Query
    numbers: npt.NDArray[np.int64]
    text_scores: Floats
    priors: Floats
    ranks: Floats
    unknown: tuple[str, ...]

    @property
    def scores(self) -> Floats:
        """The sum of the score of the text and the prior."""
        return self.text_scores + self.priors

    def best(self, limit: int) -> list[int]:
        """Return the places in the arrays of the best documents, best first."""
        scores = self.scores
        order = np.lexsort((-self.ranks, -scores))
        if len(order) > limit:
            last = order[limit - 1]
            tied = (scores == scores[last]) & (self.ranks == self.ranks[last])
            better = (scores > scores[last]) | ((scores == scores[last]) & (self.ranks > self.ranks[last]))
            order = np.flatnonzero(better | tied)
        urls = self._urls(order)
        return sorted(order.tolist(), key=lambda place: (-scores[place], -self.ranks[place], urls[place]))[:limit]

    def position(self, number: int) -> int | None:
        """Return the position of a document, counted from 1, or None if it is not among these."""
        place = int(np.searchsorted(self.numbers, number))
        if place == len(self.numbers) or self.numbers[place] != number:
            return None
        scores = self.scores
        equal = scores == scores[place]
        better = (scores > scores[place]) | (equal & (self.ranks > self.ranks[place]))
        urls = self._urls(np.flatnonzero(equal & (self.ranks == self.ranks[place])))
        return 1 + int(better.sum()) + sum(url < urls[place] for url in urls.values())

    def _urls(self, places: npt.NDArray[np.int64]) -> dict[int, str]:
        rows = self.index.read(self.numbers[places].tolist(), ["url"])
        return {place: row["url"] for place, row in zip(places.tolist(), rows, strict=True)}


def parse_query(text: str, terms: Terms, *, positions: bool) -> Query:
    """Cut a query into terms, as the index was.

    Raises InputError if nothing is asked for, a quote is not closed, or phrases are asked of an index without
    positions.
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
    asked = list(chain.from_iterable(parts))
    if not asked:
        raise InputError(f"the query {text!r} asks for nothing: it has no words, or only stop words. "
                         "Name another word.")  # fmt: skip
    first: dict[str, str] = {}
    for _, word, term in asked:
        first.setdefault(term, word)
    return Query(tuple(term for _, _, term in asked), first, tuple(phrases))


def _placed(text: str, terms: Terms) -> Sequence[tuple[int, str, str]]:
    """Return place, word and term of the words of a text that have one."""
    placed = ((place, word.text, terms.of(word.text)) for place, word in enumerate(words(text)))
    return [(place, word, term) for place, word, term in placed if term is not None]


def rank(index: IndexFolder, query: Query, settings: Search) -> Ranking:
    """Score every document that has a term of the query."""
    times = Counter(query.terms)
    terms = index.find(times)
    postings = {term: index.postings(place, positions=bool(query.phrases)) for term, place in terms.items()}
    scores, matched = np.zeros(index.documents), np.zeros(index.documents, bool)
    for term, entries in postings.items():
        idf = inverse_document_frequency(terms[term].document_frequency, index.documents)
        lengths = index.lengths[entries.documents]
        saturated = saturated_frequency(
            entries.frequencies, lengths, mean_length=index.described.mean_length, k1=settings.k1, b=settings.b
        )
        scores[entries.documents] += times[term] * idf * saturated
        matched[entries.documents] = True
    for phrase in query.phrases:
        matched &= _with_phrase(phrase, postings, index.documents)
    numbers = np.flatnonzero(matched)
    ranks = index.ranks[numbers]
    priors = prior(ranks, vertices=index.described.vertices, most=settings.prior, half=settings.half)
    unknown = tuple(word for term, word in query.words.items() if term not in terms)
    return Ranking(index, query, numbers, scores[numbers], priors, ranks, unknown)


def _with_phrase(
    phrase: tuple[tuple[int, str], ...], postings: dict[str, TermPostings], documents: int
) -> npt.NDArray[np.bool_]:
    """Return which documents have the terms of a phrase at their places."""
    marked = np.zeros(documents, bool)
    if all(term in postings for _, term in phrase):
        begins = [_begins(postings[term], place) for place, term in phrase]
        common = reduce(lambda one, other: np.intersect1d(one, other, assume_unique=True), begins)
        marked[common >> _POSITION_BITS] = True
    return marked


def _begins(postings: TermPostings, place: int) -> npt.NDArray[np.int64]:
    """Return where a phrase would begin that has the term at this place: document and position in one."""
    positions = postings.positions.astype(np.int64) - place
    documents = np.repeat(postings.documents.astype(np.int64), postings.counts)
    possible = positions >= 0
    begins: npt.NDArray[np.int64] = (documents[possible] << _POSITION_BITS) | positions[possible]
    return begins


def inverse_document_frequency(document_frequency: int, documents: int) -> float:
    """Return ln(1 + (N - df + 0.5) / (df + 0.5))."""
    return math.log1p((documents - document_frequency + 0.5) / (document_frequency + 0.5))


def saturated_frequency(
    frequencies: npt.NDArray[Any], lengths: npt.NDArray[Any], *, mean_length: float, k1: float, b: float
) -> Floats:
    """Return f (k1 + 1) / (f + k1 (1 - b + b length / mean length)), float64 (documents,)."""
    counted = frequencies.astype(np.float64)
    saturated: Floats = counted * (k1 + 1) / (counted + k1 * (1 - b + b * lengths / mean_length))
    return saturated


def prior(ranks: Floats, *, vertices: int, most: float, half: float) -> Floats:
    """Return most r / (half + r), float64 (documents,), where r is the rank as a multiple of the mean rank."""
    relative = ranks * vertices
    added: Floats = most * relative / (half + relative)
    return added
