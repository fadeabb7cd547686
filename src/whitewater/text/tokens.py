"""Splits text into words: maximal runs of Unicode letters and digits, in lower case.

A word begins with a letter or digit by `str.isalnum`, and continues with letters, digits and combining marks (general
categories M). Lower case is Unicode's simple mapping of single code points, without context and locale: that of
`str.lower`, except that U+0130 (capital I with dot above) becomes i. Text is not normalized, so a precomposed letter
and a letter with a combining accent differ. The terms of an index are the words, stemmed if that is set, without stop
words and words that are too long.

Sources: The Unicode Standard, chapter 4, sections 4.2 (case) and 4.5 (general category), in the version of Python's
module `unicodedata`, which an index records. M. F. Porter, "Snowball: a language for stemming algorithms" (2001).
"""

import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whitewater.text.config import Index

UNICODE = unicodedata.unidata_version
LETTER, MARK = 1, 2
CODE_POINTS = 0x110000
# Letters and digits are in planes 0 to 3, cased letters in planes 0 and 1, marks in planes 0, 1 and 14.
_LETTERS_END, _CASES_END = 0x40000, 0x20000
_MARK_RANGES = (range(0x20000), range(0xE0000, 0xE1000))
# Bytes of UTF-8. Longer words are encoded data or text without spaces, and become the empty word.
LONGEST = 64
# Gap between the positions of title and text, so that no phrase spans both.
GAP = 100
# Source: the default set of Apache Lucene's EnglishAnalyzer.
_ENGLISH = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)


class Word(NamedTuple):
    """A word in lower case, and its position in the text."""

    text: str
    start: int
    stop: int


def words(text: str) -> Iterator[Word]:
    """Yield the words of a text."""
    start: int | None = None
    for position, letter in enumerate(f"{text}\n"):
        if letter.isalnum():
            start = position if start is None else start
        elif start is not None and not _is_mark(letter):
            yield Word(lower(text[start:position]), start, position)
            start = None


def lower(word: str) -> str:
    """Return a word in lower case, code point by code point."""
    if word.isascii():
        return word.lower()
    return "".join("i" if letter == "\u0130" else letter.lower() for letter in word)


@cache
def characters() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
    """Return the kind of each code point, (code points,): 0, `LETTER` or `MARK`; and its lower case. Takes 50 ms."""
    kinds = np.zeros(CODE_POINTS, np.uint8)
    kinds[:_LETTERS_END] = np.strings.isalnum(np.arange(_LETTERS_END, dtype=np.uint32).view("U1"))
    kinds[[code for codes in _MARK_RANGES for code in codes if not kinds[code] and _is_mark(chr(code))]] = MARK
    lowered = np.arange(CODE_POINTS, dtype=np.uint32)
    lowered[:_CASES_END] = [ord(chr(code).lower()[0]) for code in range(_CASES_END)]  # U+0130 gets a plain i
    return kinds, lowered


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter)[0] == "M"


class Terms:
    """Maps words to the terms of an index; each distinct word is stemmed once."""

    def __init__(self, settings: Index) -> None:
        self.stop_words = frozenset(_ENGLISH.split() if settings.stop_words == "english" else ())
        self.are_words = settings.stemmer == "none"  # a word and its term are the same
        if not self.are_words:
            import snowballstemmer

            self._stem = cache(snowballstemmer.stemmer(settings.stemmer).stemWord)

    def of(self, word: str) -> str | None:
        """Return the term of a lower-case word; None for a stop word, and for ``""``, a word that was too long."""
        if not word or word in self.stop_words:
            return None
        return word if self.are_words else self._stem(word) or word
