"""An inverted index, BM25 and ranking in plain Python, letter by letter, from the written rules."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

ENGLISH = """a an and are as at be but by for if in into is it no not of on or such that the their then there these they
this to was will with"""
STOP_WORDS = set(ENGLISH.split())
GAP = 100
LONGEST = 64


@dataclass(frozen=True)
class Page:
    """A document and its rank."""

    vertex: int
    url: str
    title: str
    text: str
    rank: float


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text."""
    word = ""
    for letter in text + " ":
        if letter.isalnum() or (word and unicodedata.category(letter).startswith("M")):
            word += "i" if letter == "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}" else letter.lower()
        elif word:
            yield word
            word = ""


@dataclass
class Oracle:
    """Scores documents one by one."""

    pages: Sequence[Page]
    vertices: int
    stop_words: bool = True
    title_weight: int = 3
    stem: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.placed = [self.places(page) for page in self.pages]
        self.frequencies = [self.weigh(page) for page in self.pages]
        self.lengths = [sum(each.values()) for each in self.frequencies]

    def term(self, word: str) -> str | None:
        if (self.stop_words and word in STOP_WORDS) or len(word.encode()) > LONGEST:
            return None
        return self.stem.get(word, word)

    def weigh(self, page: Page) -> Counter[str]:
        title = [self.term(word) for word in words_of(page.title)] * self.title_weight
        text = [self.term(word) for word in words_of(page.text)]
        return Counter(term for term in title + text if term is not None)

    def places(self, page: Page) -> dict[str, list[int]]:
        title, text = list(words_of(page.title)), list(words_of(page.text))
        at = list(enumerate(title)) + list(enumerate(text, start=len(title) + GAP))
        found: dict[str, list[int]] = {}
        for place, word in at:
            term = self.term(word)
            if term is not None:
                found.setdefault(term, []).append(place)
        return found

    def postings(self) -> dict[str, list[tuple[int, int, list[int]]]]:
        """Return document number, frequency and positions, by term."""
        found: dict[str, list[tuple[int, int, list[int]]]] = {}
        for number, counted in enumerate(self.frequencies):
            for term, frequency in counted.items():
                found.setdefault(term, []).append((number, frequency, self.placed[number][term]))
        return found

    def search(
        self, query: str, *, k1: float = 1.2, b: float = 0.75, prior: float = 1.0, half: float = 1.0
    ) -> list[tuple[str, float]]:
        """Return the URLs and scores of all documents found, best first."""
        parts = query.split('"')
        asked = [term for word in words_of(query) if (term := self.term(word)) is not None]
        phrases = [list(enumerate(self.term(word) for word in words_of(part))) for part in parts[1::2]]
        found = []
        for number, page in enumerate(self.pages):
            if any(term in self.frequencies[number] for term in asked) and all(
                self.has_phrase(number, phrase) for phrase in phrases
            ):
                score = sum(self.score(term, number, k1, b) for term in asked)
                relative = page.rank * self.vertices
                found.append((-(score + prior * relative / (half + relative)), -page.rank, page.url))
        return [(url, -score) for score, _, url in sorted(found)]

    def score(self, term: str, number: int, k1: float, b: float) -> float:
        holding = sum(term in counted for counted in self.frequencies)
        idf = math.log(1 + (len(self.pages) - holding + 0.5) / (holding + 0.5))
        frequency, mean = self.frequencies[number][term], sum(self.lengths) / len(self.lengths)
        if not frequency:
            return 0.0
        return idf * frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * self.lengths[number] / mean))

    def has_phrase(self, number: int, phrase: Sequence[tuple[int, str | None]]) -> bool:
        named = [(place, term) for place, term in phrase if term is not None]
        if not named:
            return True
        placed = self.placed[number]
        first_place, first = named[0]
        starts = [place - first_place for place in placed.get(first, [])]
        return any(
            start >= 0 and all(start + place in placed.get(term, []) for place, term in named) for start in starts
        )
