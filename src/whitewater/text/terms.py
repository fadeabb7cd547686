"""From words to the terms of an index: without stop words and too long ones, stemmed where that is set.

Source of the stemmers: M. F. Porter, "Snowball: a language for stemming algorithms" (2001).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whitewater.text.config import Index

# Longer words are encoded data or text without spaces. Bytes of UTF-8.
LONGEST = 64
# Positions of the text begin so many behind those of the title, so that no phrase goes from one into the other.
GAP = 100
# Source: Apache Lucene, EnglishAnalyzer, its default set.
_ENGLISH = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
_STOP_WORDS = {"none": frozenset[str](), "english": frozenset(_ENGLISH.split())}


class Terms:
    """What an index makes of words; each distinct word is stemmed once."""

    def __init__(self, settings: Index) -> None:
        self.stop_words = _STOP_WORDS[settings.stop_words]
        self.are_words = settings.stemmer == "none"  # a word and its term are the same
        if not self.are_words:
            import snowballstemmer

            self._stem = cache(snowballstemmer.stemmer(settings.stemmer).stemWord)

    def of(self, word: str) -> str | None:
        """Return the term of a word in lower case, or None for a stop word."""
        if word in self.stop_words:
            return None
        return word if self.are_words else self._stem(word) or word
