"""Queries whose right answer is known because the web was made so.

A query by *subject*: a few pages of a topic, all of about the same length, have the same two words equally often, and
one of them has by far the most links. Words cannot tell them apart; links do. A *rare* query: one page has the word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from whitewater.pagerank.simulation.linking import Numbers
from whitewater.pagerank.simulation.sites import Sites
from whitewater.pagerank.simulation.words import Vocabulary

RIVALS = 5
# The answer has at least so many times the links of any rival, and at least so many.
_TIMES_THE_LINKS = 3
_LEAST_LINKS = 3


@dataclass(frozen=True)
class Question:
    """Words, the page that ought to be first, and all pages that have the words."""

    words: tuple[str, ...]
    answer: int
    pages: tuple[int, ...]
    by_subject: bool

    def sentence(self) -> str:
        """Return what each of the pages says."""
        if self.by_subject:
            return "All about {0} and {1}: what {0} is, what {1} was, and {0} with {1}.".format(*self.words)
        return "Here {0} is at home; {0} was here.".format(*self.words)


def ask(sites: Sites, in_degrees: Numbers, vocabulary: Vocabulary, *, random: np.random.Generator) -> list[Question]:
    """Return the queries: by topic the one of a subject, where a page is linked to enough, and a rare one.

    Parameters
    ----------
    sites
        The pages.
    in_degrees
        int64 (pages,): the links to each page that count.
    vocabulary
        The words that the queries are made of.
    random
        Equal states give equal queries.
    """
    found = []
    members = np.split(np.argsort(sites.topic, kind="stable"), np.cumsum(np.bincount(sites.topic))[:-1])
    for topic, pages in enumerate(members):
        # The first one is the home page.
        shuffled = random.permutation(pages[1:])
        found += list(_subject(shuffled, in_degrees, vocabulary.subjects[topic].tolist()))
        taken = {page for question in found for page in question.pages}
        free = next((page for page in shuffled.tolist() if page not in taken), int(shuffled[0]))
        found.append(Question((vocabulary.rare[topic],), free, (free,), by_subject=False))
    return found


def _subject(pages: Numbers, in_degrees: Numbers, words: list[str]) -> Iterator[Question]:
    answer = int(pages[in_degrees[pages].argmax()])
    links = int(in_degrees[answer])
    rivals = pages[in_degrees[pages] * _TIMES_THE_LINKS <= links][:RIVALS]
    if links >= _LEAST_LINKS and len(rivals):
        yield Question(tuple(words), answer, (answer, *rivals.tolist()), by_subject=True)


def write_questions(questions: list[Question], addresses: Mapping[int, str], path: Path) -> None:
    """Write the queries as CSV: query, url."""
    import pandas as pd

    pd.DataFrame(
        {
            "query": [" ".join(question.words) for question in questions],
            "url": [addresses[question.answer] for question in questions],
        }
    ).to_csv(path, index=False, lineterminator="\n")


def sentences(questions: list[Question]) -> dict[int, list[str]]:
    """Return what each page says because of the queries."""
    found: dict[int, list[str]] = {}
    for question in questions:
        for page in question.pages:
            found.setdefault(page, []).append(question.sentence())
    return found


def subject_pages(questions: list[Question]) -> npt.NDArray[np.int64]:
    """Return the pages that a query by subject is about."""
    pages = [page for question in questions if question.by_subject for page in question.pages]
    return np.array(sorted(pages), dtype=np.int64)
