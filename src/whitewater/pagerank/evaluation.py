"""How good a search is, by judged queries.

Sources: E. M. Voorhees, "The TREC-8 Question Answering Track Report" (1999): reciprocal rank. K. Järvelin,
J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002): discounted cumulated gain.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from whitewater.errors import InputError
from whitewater.pagerank.urls import normalise

CUTOFF = 10


def read_judgments(path: Path) -> dict[str, list[str]]:
    """Read a table (CSV) of query and url: the right URLs of each query, in normal form, each once.

    Raises
    ------
    InputError
        If it cannot be read, has not these columns or no rows, or a row lacks one.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns, rows = reader.fieldnames or [], list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path} is not a readable table (CSV, UTF-8): {error}. Correct pagerank.search.judgments."
        ) from error
    if not {"query", "url"} <= set(columns):
        raise InputError(
            f"{path} has the columns {', '.join(columns)}. Name the columns query and url in its first line."
        )
    if columns.count("query") + columns.count("url") > 2:
        raise InputError(f"{path} has the columns {', '.join(columns)}. Keep one query and one url.")
    judged: dict[str, dict[str, None]] = {}
    for line, row in enumerate(rows, start=2):
        if not row["query"] or not row["url"]:
            raise InputError(f"{path}: row {line} has no query or no url. Complete it, or leave it out.")
        # What is no URL, such as the title of a page of a wiki, is compared as it is.
        judged.setdefault(row["query"], {})[normalise(row["url"]) or row["url"]] = None
    if not judged:
        raise InputError(f"{path} has no rows. Add some, or leave pagerank.search.judgments empty.")
    return {query: list(urls) for query, urls in judged.items()}


def measures(positions: Sequence[Sequence[int | None]]) -> dict[str, float]:
    """Return the means over queries of their measures.

    Parameters
    ----------
    positions
        For each query the positions of its right answers, counted from 1; None for one that was not found.

    Returns
    -------
    dict
        ``mrr``: 1 / position of the first right answer; ``ndcg_10``: discounted cumulated gain of the first ten, each
        right one gains 1, as a share of the most possible; ``success_1``: whether the first one is right.
    """
    firsts = [min((place for place in each if place), default=None) for each in positions]
    return {
        "mrr": _mean([1 / first if first else 0.0 for first in firsts]),
        "ndcg_10": _mean([_normalised_gain(each) for each in positions]),
        "success_1": _mean([float(first == 1) for first in firsts]),
    }


def _normalised_gain(positions: Sequence[int | None]) -> float:
    gained = sum(_gain(place) for place in positions if place and place <= CUTOFF)
    return gained / sum(_gain(place) for place in range(1, min(len(positions), CUTOFF) + 1))


def _gain(position: int) -> float:
    return 1 / math.log2(position + 1)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
