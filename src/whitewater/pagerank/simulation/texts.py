"""The texts of the pages, and how each one is written; block of pages by block, so that any number fits in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whitewater.pagerank.simulation.dirt import DIRT, choose
from whitewater.pagerank.simulation.html import ENCODINGS, FAULTS
from whitewater.pagerank.simulation.linking import Numbers
from whitewater.pagerank.simulation.words import Vocabulary, draw_tokens, write_sentences

# Standard deviation of the logarithm of a page's number of words.
_SPREAD = 0.5
_LEAST_WORDS = 5
LARGE = 50
_PARAGRAPH = 60

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Features:
    """What is special about each page: arrays (pages,), ``encoding`` by place in `ENCODINGS`, ``fault`` in `FAULTS`.

    A ``fault`` of -1 is none.
    """

    encoding: Numbers
    fault: Numbers
    base: Flags
    traps: Flags
    mailto: Flags
    nofollow: Flags
    self_link: Flags
    repeated: Flags

    def counts(self) -> dict[str, object]:
        """Return how many pages there are of each kind."""
        names = [ENCODINGS[each].name for each in self.encoding.tolist()]
        return {
            "encodings": dict(sorted(Counter(names).items())),
            "malformed_pages": int((self.fault >= 0).sum()),
            "base_pages": int(self.base.sum()),
            "trap_pages": int(self.traps.sum()),
            "mailto": int(self.mailto.sum()),
            "nofollow_pages": int(self.nofollow.sum()),
            "self_links": int(self.self_link.sum()),
            "repeated_links": int(self.repeated.sum()),
        }


def draw_features(out_degrees: Numbers, *, random: np.random.Generator) -> Features:
    """Choose what is special about each page; only pages with links have more of them."""
    pages = len(out_degrees)
    shares = np.array([each.share for each in ENCODINGS])
    linking = out_degrees > 0
    base = choose(pages, share=DIRT.base, random=random)
    malformed = choose(pages, share=DIRT.malformed, random=random)
    return Features(
        encoding=random.choice(len(ENCODINGS), pages, p=shares / shares.sum()),
        fault=np.where(malformed, random.integers(len(FAULTS), size=pages), -1),
        base=base,
        traps=choose(pages, share=DIRT.traps, random=random),
        mailto=choose(pages, share=DIRT.mailto, random=random),
        nofollow=choose(pages, share=DIRT.nofollow_pages, random=random) & linking,
        # On a page with a base URL #top leads elsewhere.
        self_link=choose(pages, share=DIRT.self_links, random=random) & linking & ~base,
        repeated=choose(pages, share=DIRT.repeated, random=random) & linking,
    )


def draw_lengths(pages: int, *, mean: int, even: Numbers, large: Numbers, random: np.random.Generator) -> Numbers:
    """Return the number of words of each page, log-normal; ``even`` pages have the mean, ``large`` many times that."""
    factor = np.exp(random.normal(-(_SPREAD**2) / 2, _SPREAD, pages))
    factor[large] = LARGE
    factor[even] = 1
    return np.maximum(np.round(factor * mean).astype(np.int64), _LEAST_WORDS)


def write_paragraphs(
    topics: Numbers, lengths: Numbers, vocabulary: Vocabulary, *, random: np.random.Generator
) -> Iterator[list[str]]:
    """Yield the paragraphs of each page, of a topic and a number of words each."""
    tokens = draw_tokens(np.repeat(topics, lengths), random=random)
    ends = np.cumsum(lengths)
    words = write_sentences(vocabulary.words[tokens], last=ends - 1, random=random)
    for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
        yield [" ".join(words[place : min(place + _PARAGRAPH, end)]) for place in range(start, end, _PARAGRAPH)]


def with_sentences(paragraphs: list[str], page: int, sentences: Mapping[int, Sequence[str]]) -> list[str]:
    """Return the paragraphs of a page with what it says because of the queries, before the last one."""
    return [*paragraphs[:-1], *sentences.get(page, ()), *paragraphs[-1:]]
