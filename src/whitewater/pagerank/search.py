"""Step `search`: queries are answered from the index, and measured where right answers are known."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whitewater.pagerank.evaluation import measures, read_judgments
from whitewater.pagerank.index_folder import open_index
from whitewater.pagerank.searcher import Searcher
from whitewater.store import write_json

if TYPE_CHECKING:
    from whitewater.config.pagerank import Search
    from whitewater.step import Inputs, Output, Run

logger = logging.getLogger(__name__)


def search(run: Run[Search], *, index: Path, judgments: Inputs, queries: Output) -> None:
    """Answer the queries of the settings and of the judgments, which are measured with and without the prior.

    Raises
    ------
    InputError
        If there is no index, a query asks for nothing, or the table of judgments cannot be read.
    """
    folder = open_index(index)
    searcher = Searcher(folder)
    judged = {query: urls for path in judgments.values() for query, urls in read_judgments(path).items()}
    asked = list(dict.fromkeys([*run.settings.queries, *judged]))
    answers = [searcher.answer(query, run.settings) for query in asked]
    evaluation = evaluate(searcher, judged, run.settings) if judged else None
    write_json(queries, {"queries": answers, "evaluation": evaluation})
    run.note(queries=len(asked), judged=len(judged))
    if evaluation:
        logger.info("mean reciprocal rank %(mrr).3f, %(mrr_without_prior).3f without PageRank", evaluation)


def evaluate(searcher: Searcher, judged: Mapping[str, Sequence[str]], settings: Search) -> dict[str, Any]:
    """Measure the answers to judged queries; a right URL that the index has not counts as not found."""
    numbers = searcher.index.numbers(url for urls in judged.values() for url in urls)
    without = settings.model_copy(update={"prior": 0.0})
    found: dict[str, float] = {}
    for suffix, chosen in (("", settings), ("_without_prior", without)):
        positions = []
        for query, urls in judged.items():
            ranking = searcher.ranking(query, chosen)
            positions.append([ranking.position(numbers[url]) if url in numbers else None for url in urls])
        found |= {f"{name}{suffix}": value for name, value in measures(positions).items()}
    urls = [url for each in judged.values() for url in each]
    return {
        "judged": len(judged),
        "judged_urls": len(urls),
        "judged_urls_not_in_index": sum(url not in numbers for url in urls),
        **found,
    }
