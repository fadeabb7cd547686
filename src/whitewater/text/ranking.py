"""Ranks all documents that match a query, with exact scores: BM25 of the text, and PageRank as a prior.

Sources: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the inverse
document frequency of Apache Lucene, which is above 0 for every term. S. Robertson, H. Zaragoza, M. Taylor, "Simple BM25
Extension to Multiple Weighted Fields" (2004): title words count several times. N. Craswell, S. Robertson,
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

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
# The terms of a phrase, each with its position.
Phrase = tuple[tuple[int, str], ...]
# A document and a position below 2**32 are packed into one integer.
_POSITION_BITS = 32


@dataclass(frozen=True)
class Ranking:
    """The documents with a term of the query and all its phrases; arrays (documents,), ascending by number.

    Documents are ordered by score, then rank, then URL. ``unknown`` are words of the query that no document has.
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
        """The sum of text score and prior."""
        return self.text_scores + self.priors

    def best(self, limit: int) -> list[int]:
        """Return the indices in the arrays of the best documents, best first."""
        scores = self.scores
        order = np.lexsort((-self.ranks, -scores))
        if len(order) > limit:
            is_better, is_tied = self._compare(order[limit - 1])
            order = np.flatnonzero(is_better | is_tied)
        urls = self._read_urls(order)
        return sorted(order.tolist(), key=lambda index: (-scores[index], -self.ranks[index], urls[index]))[:limit]

    def position(self, number: int) -> int | None:
        """Return the position of a document, counted from 1, or None if it does not match."""
        index = int(np.searchsorted(self.numbers, number))
        if index == len(self.numbers) or self.numbers[index] != number:
            return None
        is_better, is_tied = self._compare(index)
        urls = self._read_urls(np.flatnonzero(is_tied))
        return 1 + int(is_better.sum()) + sum(url < urls[index] for url in urls.values())

    def _compare(self, index: int) -> tuple[Mask, Mask]:
        """Return masks of the documents that are better than one by score and rank, and that are equal to it."""
        scores, ranks = self.scores, self.ranks
        is_equal = scores == scores[index]
        return (scores > scores[index]) | (is_equal & (ranks > ranks[index])), is_equal & (ranks == ranks[index])

    def _read_urls(self, indices: npt.NDArray[np.int64]) -> dict[int, str]:
        rows = self.index.read(self.numbers[indices].tolist(), ["url"])
        return {index: row["url"] for index, row in zip(indices.tolist(), rows, strict=True)}


def rank(index: IndexFolder, text: str, settings: Search) -> Ranking:
    """Score every document that has a term of the query and all its phrases, which are in quotes.

    Raises InputError if the query has no terms or an open quote, or has phrases and the index no positions.
    """
    query_words, phrases = _parse_query(text, index)
    # A repeated word counts repeatedly.
    times = Counter(term for _, term in query_words)
    tables = {term: index.postings(term, positions=bool(phrases)) for term in times}
    postings = {term: table for term, table in tables.items() if table is not None}
    documents, mean_length = index.summary.documents, index.summary.mean_length
    k1, b = settings.k1, settings.b
    scores, is_match = np.zeros(documents), np.zeros(documents, bool)
    for term, table in postings.items():
        numbers, frequencies = to_numpy(table["document"]), to_numpy(table["frequency"]).astype(np.float64)
        idf = math.log1p((documents - len(table) + 0.5) / (len(table) + 0.5))
        damping = k1 * (1 - b + b * index.lengths[numbers] / mean_length)
        saturation = frequencies * (k1 + 1) / (frequencies + damping)
        scores[numbers] += times[term] * idf * saturation
        is_match[numbers] = True
    for phrase in phrases:
        is_match &= _match_phrase(phrase, postings, documents)
    numbers = np.flatnonzero(is_match)
    ranks = index.ranks[numbers]
    relative_ranks = ranks * index.summary.vertices  # multiples of the mean rank
    priors = settings.prior * relative_ranks / (settings.half + relative_ranks)
    first_words = {term: word for word, term in reversed(query_words)}
    unknown = tuple(first_words[term] for term in times if term not in postings)
    return Ranking(index, frozenset(times), numbers, scores[numbers], priors, ranks, unknown)


def _parse_query(text: str, index: IndexFolder) -> tuple[list[tuple[str, str]], list[Phrase]]:
    """Return the words of a query with their terms, and its phrases, where a stop word stands for any word."""
    # Positions, words and terms of the parts outside and inside quotes, in turn.
    parts = [
        [
            (position, word.text, term)
            for position, word in enumerate(words(part))
            if (term := index.terms.of(word.text))
        ]
        for part in text.split('"')
    ]
    if len(parts) % 2 == 0:
        raise InputError(f"the query {text!r} has a quote that is not closed. Close it, or leave it out.")
    phrases = [tuple((position, term) for position, _, term in part) for part in parts[1::2] if part]
    if phrases and not index.summary.settings.positions:
        raise InputError(f"the query {text!r} has a phrase in quotes, but the index has no positions. Leave out the "
                         "quotes, or set pagerank.index.positions to true and run the step index again.")  # fmt: skip
    if any(phrase[-1][0] - phrase[0][0] >= GAP for phrase in phrases):
        raise InputError(f"the query {text!r} has a phrase of more than {GAP} words. Quote less of it.")
    query_words = [(word, term) for part in parts for _, word, term in part]
    if not query_words:
        raise InputError(f"the query {text!r} asks for nothing: it has no words, or only stop words. "
                         "Name another word.")  # fmt: skip
    return query_words, phrases


def _match_phrase(phrase: Phrase, postings: Mapping[str, pa.Table], documents: int) -> Mask:
    """Return a mask of the documents that have the terms of a phrase at its positions."""
    is_match = np.zeros(documents, bool)
    if all(term in postings for _, term in phrase):
        starts = [_find_starts(postings[term], position) for position, term in phrase]
        common = reduce(lambda one, other: np.intersect1d(one, other, assume_unique=True), starts)
        is_match[common >> _POSITION_BITS] = True
    return is_match


def _find_starts(postings: pa.Table, position: int) -> npt.NDArray[np.int64]:
    """Return the possible starts of a phrase with the term at a position: document and position in one integer."""
    lists = one_array(postings["positions"])
    positions = to_numpy(lists.flatten()).astype(np.int64) - position
    documents = np.repeat(to_numpy(postings["document"]).astype(np.int64), np.diff(to_numpy(lists.offsets)))
    is_possible = positions >= 0
    starts: npt.NDArray[np.int64] = (documents[is_possible] << _POSITION_BITS) | positions[is_possible]
    return starts
