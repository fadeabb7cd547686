"""Step `search`: queries are answered from the index, and measured where right answers are known.

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
# Answers that count for the cumulated gain.
CUTOFF = 10
# Words of a snippet, and those before the first that was asked for, where there is room.
WINDOW, LEAD = 30, 5
# A snippet is looked for in so many characters from the beginning, so that a long text does not hold up the answer.
SCANNED = 20_000
MARK = "**"


def search(run: Run[Search], *, index: Path, judgments: Inputs, queries: Output) -> None:
    """Answer the queries of the settings and of the judgments, which are measured with and without the prior.

    Raises InputError if there is no index, a query asks for nothing, or the table of judgments cannot be read.
    """
    folder = open_index(index)
    judged = {query: urls for path in judgments.values() for query, urls in read_judgments(path).items()}
    asked = list(dict.fromkeys([*run.settings.queries, *judged]))
    answers = [answer(folder, query, run.settings) for query in asked]
    evaluation = evaluate(folder, judged, run.settings) if judged else None
    write_json(queries, {"queries": answers, "evaluation": evaluation})
    run.note(queries=len(asked), judged=len(judged))
    if evaluation:
        logger.info("mean reciprocal rank %(mrr).3f, %(mrr_without_prior).3f without PageRank", evaluation)


def answer(index: IndexFolder, query: str, settings: Search) -> dict[str, Any]:
    """Return a query, its words that no document has, the number of documents found and the best of them."""
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


def snippet(text: str, asked: Collection[str], terms: Terms) -> str:
    """Return the `WINDOW` words, the first of equals, with the most different terms that were asked for, marked."""
    scanned = text[:SCANNED]
    found = list(words(scanned))
    if not found:
        return ""
    # The last word may be cut off: it is not shown.
    found = found[:-1] if len(text) > SCANNED and len(found) > 1 else found
    hits = [term if (term := terms.of(word.text)) in asked else None for word in found]
    start = _best_window(hits)
    stop = min(start + WINDOW, len(found))
    shown, place = "", found[start].start
    for word, hit in zip(found[start:stop], hits[start:stop], strict=True):
        mark = MARK if hit else ""
        shown += f"{text[place : word.start]}{mark}{text[word.start : word.stop]}{mark}"
        place = word.stop
    before = f"{CUT} " if start else ""
    after = f" {CUT}" if stop < len(found) or len(text) > SCANNED else ""
    return before + printable(shown) + after


def _best_window(hits: Sequence[str | None]) -> int:
    """Return the first word of the best window: the earliest with the most different hits, after some lead."""
    starts = [place for place, hit in enumerate(hits) if hit] or [0]
    best_start = max(starts, key=lambda start: len({hit for hit in hits[start : start + WINDOW] if hit}))
    last = max((place for place in range(best_start, min(best_start + WINDOW, len(hits))) if hits[place]), default=0)
    room = WINDOW - 1 - (last - best_start)
    return max(0, min(best_start - min(LEAD, room), len(hits) - WINDOW))


def evaluate(index: IndexFolder, judged: Mapping[str, Sequence[str]], settings: Search) -> dict[str, Any]:
    """Measure the answers to judged queries; a right URL that the index has not counts as not found."""
    right = [url for urls in judged.values() for url in urls]
    numbers = index.numbers(right)
    positions = {
        suffix: [
            [ranking.position(numbers[url]) if url in numbers else None for url in urls]
            for query, urls in judged.items()
            for ranking in [rank(index, query, chosen)]
        ]
        for suffix, chosen in (("", settings), ("_without_prior", settings.model_copy(update={"prior": 0.0})))
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
    """Read a table (CSV) of query and url: the right URLs of each query, in normal form, each once.

    Raises InputError if it cannot be read, has not these columns or no rows, or a row lacks one.
    """
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
        if not row["query"] or not row["url"]:
            raise InputError(f"{path}: row {line} has no query or no url. Complete it, or leave it out.")
        # What is not a URL, such as the title of a page of a wiki, is compared as it is.
        judged.setdefault(row["query"], {})[normalize(row["url"]) or row["url"]] = None
    if not judged:
        raise InputError(f"{path} has no rows. Add some, or leave pagerank.search.judgments empty.")
    return {query: list(urls) for query, urls in judged.items()}


def measures(positions: Sequence[Sequence[int | None]]) -> dict[str, float]:
    """Return the means over queries of their measures.

    ``positions`` are for each query those of its right answers, counted from 1; None for one that was not found.
    ``mrr``: 1 / position of the first right answer; ``ndcg_10``: discounted cumulated gain of the first ten, each right
    one gains 1, as a share of the most possible; ``success_1``: whether the first one is right.
    """
    firsts = [min(filter(None, each), default=None) for each in positions]
    return {
        "mrr": fmean([1 / first if first else 0.0 for first in firsts]),
        "ndcg_10": fmean([
            _gain(place for place in each if place and place <= CUTOFF) / _gain(range(1, min(len(each), CUTOFF) + 1))
            for each in positions
        ]),
        "success_1": fmean([float(first == 1) for first in firsts]),
    }  # fmt: skip


def _gain(positions: Iterable[int]) -> float:
    return math.fsum(1 / math.log2(position + 1) for position in positions)


if __name__ == "__main__":
    main(search)
