"""Answers to queries: the best documents, with their scores and the piece of text that was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whitewater.pagerank.queries import Query, parse_query
from whitewater.pagerank.ranking import Ranking, rank
from whitewater.pagerank.snippets import snippet
from whitewater.pagerank.terminal_text import printable
from whitewater.pagerank.terms import Terms

if TYPE_CHECKING:
    from whitewater.config.pagerank import Search
    from whitewater.pagerank.index_folder import IndexFolder


class Searcher:
    """Answers queries from an index."""

    def __init__(self, index: IndexFolder) -> None:
        self.index = index
        self._terms = Terms(index.settings)

    def answer(self, text: str, settings: Search) -> dict[str, Any]:
        """Return a query, its words that no document has, the number of documents found and the best of them."""
        query, ranking = self._ranked(text, settings)
        best = ranking.best(settings.limit)
        rows = self.index.read(ranking.numbers[best].tolist(), ["url", "title", "text"])
        results = [
            {
                "position": position,
                "url": row["url"],
                "title": printable(row["title"] or ""),
                "score": float(ranking.scores[place]),
                "bm25": float(ranking.text_scores[place]),
                "prior": float(ranking.priors[place]),
                "rank": float(ranking.ranks[place]),
                "snippet": snippet(row["text"] or "", query.words, self._terms),
            }
            for position, (place, row) in enumerate(zip(best, rows, strict=True), start=1)
        ]
        return {"query": text, "unknown": list(ranking.unknown), "found": len(ranking.numbers), "results": results}

    def ranking(self, text: str, settings: Search) -> Ranking:
        """Return all documents that match a query."""
        return self._ranked(text, settings)[1]

    def _ranked(self, text: str, settings: Search) -> tuple[Query, Ranking]:
        query = parse_query(text, self._terms, positions=self.index.settings.positions)
        return query, rank(self.index, query, settings)
