"""Step `search`: answer queries from the index, and evaluate those with known answers.

Sources: E. M. Voorhees, "The TREC-8 Question Answering Track Report" (1999): reciprocal rank. K. Järvelin,
J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002): discounted cumulated gain.
"""

import csv
import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from whitewater.errors import InputError
from whitewater.io.store import write_json
from whitewater.io.terminal_text import CUT, printable
from whitewater.script import main
from whitewater.step import Inputs, Output, Run
from whitewater.text.config import Search
from whitewater.text.index_folder import IndexFolder, open_index
from whitewater.text.ranking import rank
from whitewater.text.tokens import Terms, words
from whitewater.web.urls import normalize

logger = logging.getLogger(__name__)
# Results that count for the discounted cumulated gain.
CUTOFF = 10
# Words of a snippet, and of these at most before the first term of the query.
WINDOW, LEAD = 30, 5
# Characters searched for a snippet, so that long texts do not slow the answer.
SCANNED = 20_000


def search(run: Run[Search], *, index: Path, judgments: Inputs, queries: Output) -> None:
    """Answer the queries of the settings and the judgments, and evaluate the latter with and without the prior.

    Raises InputError if there is no index, a query is empty, or the judgments cannot be read.
    """
    folder = open_index(index)
    judged = {query: urls for path in judgments.values() for query, urls in read_judgments(path).items()}
    unique_queries = list(dict.fromkeys([*run.settings.queries, *judged]))
    answers = [answer(folder, query, run.settings) for query in unique_queries]
    evaluation = evaluate(folder, judged, run.settings) if judged else None
    write_json(queries, {"queries": answers, "evaluation": evaluation})
    run.note(queries=len(unique_queries), judged=len(judged))
    if evaluation:
        logger.info("mean reciprocal rank %(mrr).3f, %(mrr_without_prior).3f without PageRank", evaluation)


def answer(index: IndexFolder, query: str, settings: Search) -> dict[str, Any]:
    """Return the query, its unknown words, the number of matching documents, and the best of them."""
    ranking = rank(index, query, settings)
    best = ranking.best(settings.limit)
    rows = index.read(ranking.numbers[best].tolist(), ["url", "title", "text"])
    results = [
        {
            "position": position,
            "url": row["url"],
            "title": printable(row["title"] or ""),
            "score": float(ranking.scores[place]),
            "bm25": float(ranking.text_scores[place]),
            "prior": float(ranking.priors[place]),
            "rank": float(ranking.ranks[place]),
            "snippet": snippet(row["text"] or "", ranking.terms, index.terms),
        }
        for position, (place, row) in enumerate(zip(best, rows, strict=True), start=1)
    ]
    return {"query": query, "unknown": list(ranking.unknown), "found": len(ranking.numbers), "results": results}


def snippet(text: str, query_terms: Collection[str], terms: Terms) -> str:
    """Return the first `WINDOW` words with the most different query terms, which are marked."""
    tokens = list(words(text[:SCANNED]))
    if not tokens:
        return ""
    # The last word may be cut off.
    tokens = tokens[:-1] if len(text) > SCANNED and len(tokens) > 1 else tokens
    hits = [term if (term := terms.of(token.text)) in query_terms else None for token in tokens]
    start = _best_window(hits)
    stop = min(start + WINDOW, len(tokens))
    marked, offset = "", tokens[start].start
    for token, hit in zip(tokens[start:stop], hits[start:stop], strict=True):
        mark = "**" if hit else ""
        marked += f"{text[offset : token.start]}{mark}{text[token.start : token.stop]}{mark}"
        offset = token.stop
    before = f"{CUT} " if start else ""
    after = f" {CUT}" if stop < len(tokens) or len(text) > SCANNED else ""
    return before + printable(marked) + after


def _best_window(hits: Sequence[str | None]) -> int:
    """Return the start of the first window with the most different hits, with up to `LEAD` words before them."""
    starts = [index for index, hit in enumerate(hits) if hit] or [0]
    best_start = max(starts, key=lambda start: len({hit for hit in hits[start : start + WINDOW] if hit}))
    last = max((index for index in range(best_start, min(best_start + WINDOW, len(hits))) if hits[index]), default=0)
    room = WINDOW - 1 - (last - best_start)
    return max(0, min(best_start - min(LEAD, room), len(hits) - WINDOW))


def evaluate(index: IndexFolder, judged: Mapping[str, Sequence[str]], settings: Search) -> dict[str, Any]:
    """Evaluate the answers to judged queries; a right URL that is not in the index counts as not found."""
    right = [url for urls in judged.values() for url in urls]
    numbers = index.numbers(right)
    positions = {
        suffix: [
            [ranking.position(numbers[url]) if url in numbers else None for url in urls]
            for query, urls in judged.items()
            for ranking in [rank(index, query, options)]
        ]
        for suffix, options in (("", settings), ("_without_prior", settings.model_copy(update={"prior": 0.0})))
    }
    pairs = zip(*positions.values(), strict=True)
    return {
        "judged": len(judged),
        "judged_urls": len(right),
        "judged_urls_not_in_index": sum(url not in numbers for url in right),
        "first_right_without_prior_only": sum(1 in without and 1 not in with_prior for with_prior, without in pairs),
        **{f"{name}{suffix}": mean for suffix in positions for name, mean in measures(positions[suffix]).items()},
    }


def read_judgments(path: Path) -> dict[str, list[str]]:
    """Return the unique right URLs of each query, in normal form, from a CSV table of query and url."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns, rows = reader.fieldnames or [], list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a readable table (CSV, UTF-8): {error}. "
                         "Correct pagerank.search.judgments.") from error  # fmt: skip
    if columns.count("query") != 1 or columns.count("url") != 1:
        raise InputError(f"{path} has the columns {', '.join(columns)}. Name one query and url in its first line.")
    judged: dict[str, dict[str, None]] = {}
    for line, row in enumerate(rows, start=2):
        if any(row.get(None, ())):
            raise InputError(f"{path}: row {line} has more fields than line 1. Put texts with commas in quotes.")
        if not row["query"] or not row["url"]:
            raise InputError(f"{path}: row {line} has no query or no url. Complete it, or leave it out.")
        # Other names, such as titles of wiki pages, are compared as they are.
        judged.setdefault(row["query"], {})[normalize(row["url"]) or row["url"]] = None
    if not judged:
        raise InputError(f"{path} has no rows. Add some, or leave pagerank.search.judgments empty.")
    return {query: list(urls) for query, urls in judged.items()}


def measures(positions: Sequence[Sequence[int | None]]) -> dict[str, float]:
    """Return the means over queries of reciprocal rank, nDCG at 10, and success at 1.

    ``positions`` are those of the right answers to each query, counted from 1; None if not found. Each right answer has
    gain 1.
    """
    firsts = [min(filter(None, query), default=None) for query in positions]
    return {
        "mrr": fmean([1 / first if first else 0.0 for first in firsts]),
        "ndcg_10": fmean([
            _gain(place for place in query if place and place <= CUTOFF) / _gain(range(1, min(len(query), CUTOFF) + 1))
            for query in positions
        ]),
        "success_1": fmean([float(first == 1) for first in firsts]),
    }  # fmt: skip


def _gain(positions: Iterable[int]) -> float:
    return math.fsum(1 / math.log2(position + 1) for position in positions)


if __name__ == "__main__":
    main(search)
