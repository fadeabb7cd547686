"""All documents that match a query, with exact scores: BM25 of the text, and PageRank as a prior.

Sources: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the inverse
document frequency of Apache Lucene, which is above 0 for every term. S. Robertson, H. Zaragoza, M. Taylor, "Simple BM25
Extension to Multiple Weighted Fields" (2004): words of the title count several times. N. Craswell, S. Robertson,
H. Zaragoza, M. Taylor, "Relevance Weighting for Query Independent Evidence" (2005): the prior saturates.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.errors import InputError
from whitewater.tables.arrow_arrays import one_array, to_numpy
from whitewater.text.config import Search
from whitewater.text.index_folder import IndexFolder
from whitewater.text.tokens import GAP, words

QUOTE = '"'
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
# The terms of a phrase, each with its place.
Phrase = tuple[tuple[int, str], ...]
# A document and a position in one integer: positions are below 2**32.
_POSITION_BITS = 32


@dataclass(frozen=True)
class Ranking:
    """Documents with a term of the query, and with all its phrases; arrays (documents,), by ascending number.

    Better ones have a higher score; if equal, a higher rank; if equal, the URL that comes first. ``terms`` are those of
    the query, ``unknown`` its words that no document has.
    """

    index: IndexFolder
    terms: frozenset[str]
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
            better, tied = self._compared(order[limit - 1])
            order = np.flatnonzero(better | tied)
        urls = self._urls(order)
        return sorted(order.tolist(), key=lambda place: (-scores[place], -self.ranks[place], urls[place]))[:limit]

    def position(self, number: int) -> int | None:
        """Return the position of a document, counted from 1, or None if it is not among these."""
        place = int(np.searchsorted(self.numbers, number))
        if place == len(self.numbers) or self.numbers[place] != number:
            return None
        better, tied = self._compared(place)
        urls = self._urls(np.flatnonzero(tied))
        return 1 + int(better.sum()) + sum(url < urls[place] for url in urls.values())

    def _compared(self, place: int) -> tuple[Mask, Mask]:
        """Return which documents are better than one by score and rank, and which are equal to it."""
        scores, ranks = self.scores, self.ranks
        equal = scores == scores[place]
        return (scores > scores[place]) | (equal & (ranks > ranks[place])), equal & (ranks == ranks[place])

    def _urls(self, places: npt.NDArray[np.int64]) -> dict[int, str]:
        rows = self.index.read(self.numbers[places].tolist(), ["url"])
        return {place: row["url"] for place, row in zip(places.tolist(), rows, strict=True)}


def rank(index: IndexFolder, text: str, settings: Search) -> Ranking:
    """Score every document that has a term of a query, and has its phrases, which are in quotes.

    Raises InputError if nothing is asked for, a quote is not closed, or phrases are asked of an index without
    positions.
    """
    asked, phrases = _parse(text, index)
    # A word that is asked for twice counts twice.
    times = Counter(term for _, term in asked)
    found = {term: index.postings(term, positions=bool(phrases)) for term in times}
    postings = {term: table for term, table in found.items() if table is not None}
    documents, mean_length = index.described.documents, index.described.mean_length
    k1, b = settings.k1, settings.b
    scores, matched = np.zeros(documents), np.zeros(documents, bool)
    for term, table in postings.items():
        numbers, frequencies = to_numpy(table["document"]), to_numpy(table["frequency"]).astype(np.float64)
        idf = math.log1p((documents - len(table) + 0.5) / (len(table) + 0.5))
        damping = k1 * (1 - b + b * index.lengths[numbers] / mean_length)
        saturated = frequencies * (k1 + 1) / (frequencies + damping)
        scores[numbers] += times[term] * idf * saturated
        matched[numbers] = True
    for phrase in phrases:
        matched &= _with_phrase(phrase, postings, documents)
    numbers = np.flatnonzero(matched)
    ranks = index.ranks[numbers]
    # The rank as a multiple of the mean rank.
    relative = ranks * index.described.vertices
    priors = settings.prior * relative / (settings.half + relative)
    first_words = {term: word for word, term in reversed(asked)}
    unknown = tuple(first_words[term] for term in times if term not in postings)
    return Ranking(index, frozenset(times), numbers, scores[numbers], priors, ranks, unknown)


def _parse(text: str, index: IndexFolder) -> tuple[list[tuple[str, str]], list[Phrase]]:
    """Cut a query as the index was: return its words with their terms, and the phrases.

    Where a stop word stands in a phrase, any word may.
    """
    # The places, words and terms of what is not in quotes and what is, in turn.
    parts = [
        [(place, word.text, term) for place, word in enumerate(words(part)) if (term := index.terms.of(word.text))]
        for part in text.split(QUOTE)
    ]
    if len(parts) % 2 == 0:
        raise InputError(f"the query {text!r} has a quote that is not closed. Close it, or leave it out.")
    phrases = [tuple((place, term) for place, _, term in part) for part in parts[1::2] if part]
    if phrases and not index.described.settings.positions:
        raise InputError(f"the query {text!r} has a phrase in quotes, but the index has no positions. Leave out the "
                         "quotes, or set pagerank.index.positions to true and run the step index again.")  # fmt: skip
    if any(phrase[-1][0] - phrase[0][0] >= GAP for phrase in phrases):
        raise InputError(f"the query {text!r} has a phrase of more than {GAP} words. Quote less of it.")
    asked = [(word, term) for part in parts for _, word, term in part]
    if not asked:
        raise InputError(f"the query {text!r} asks for nothing: it has no words, or only stop words. "
                         "Name another word.")  # fmt: skip
    return asked, phrases


def _with_phrase(phrase: Phrase, postings: Mapping[str, pa.Table], documents: int) -> Mask:
    """Return which documents have the terms of a phrase at their places."""
    marked = np.zeros(documents, bool)
    if all(term in postings for _, term in phrase):
        begins = [_begins(postings[term], place) for place, term in phrase]
        common = reduce(lambda one, other: np.intersect1d(one, other, assume_unique=True), begins)
        marked[common >> _POSITION_BITS] = True
    return marked


def _begins(postings: pa.Table, place: int) -> npt.NDArray[np.int64]:
    """Return where a phrase would begin that has the term at this place: document and position in one."""
    lists = one_array(postings["positions"])
    positions = to_numpy(lists.flatten()).astype(np.int64) - place
    documents = np.repeat(to_numpy(postings["document"]).astype(np.int64), np.diff(to_numpy(lists.offsets)))
    possible = positions >= 0
    begins: npt.NDArray[np.int64] = (documents[possible] << _POSITION_BITS) | positions[possible]
    return begins
