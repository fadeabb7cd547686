"""Words of a text: maximal runs of letters and digits of Unicode, in lower case.

A word begins with a letter or digit, which is what `str.isalnum` says is one, and goes on with those and with combining
marks (general categories M). Lower case is Unicode's simple mapping, a code point to a code point, without context and
locale: that of `str.lower`, except that U+0130 (capital I with dot above) becomes i. There is no normalization: one
accented letter and a letter with a combining accent are different words.

The terms of an index are the words without stop words and too long ones, stemmed where that is set.

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
# Letters and digits are in planes 0 to 3, letters with two cases in planes 0 and 1; marks in planes 0, 1 and 14.
_LETTERS_END, _CASES_END = 0x40000, 0x20000
_MARK_RANGES = (range(0x20000), range(0xE0000, 0xE1000))
_DOTTED_I = "\u0130"

# Longer words are encoded data or text without spaces, and count as the empty word. Bytes of UTF-8.
LONGEST = 64
# Positions of the text begin so many behind those of the title, so that no phrase goes from one into the other.
GAP = 100
# Source: Apache Lucene, EnglishAnalyzer, its default set.
_ENGLISH = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
_STOP_WORDS = {"none": frozenset[str](), "english": frozenset(_ENGLISH.split())}


class Word(NamedTuple):
    """A word in lower case, and where it stands in the text."""

    text: str
    start: int
    stop: int


def words(text: str) -> Iterator[Word]:
    """Find the words of a text, in its order."""
    start: int | None = None
    for place, letter in enumerate(f"{text}\n"):
        if letter.isalnum():
            start = place if start is None else start
        elif start is not None and not _is_mark(letter):
            yield Word(lower(text[start:place]), start, place)
            start = None


def lower(word: str) -> str:
    """Return a word in lower case, code point by code point."""
    if word.isascii():
        return word.lower()
    return "".join("i" if letter == _DOTTED_I else letter.lower() for letter in word)


@cache
def characters() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
    """Return what each code point is, (code points,): 0, `LETTER` or `MARK`; and its lower case. It takes 50 ms."""
    kinds = np.zeros(CODE_POINTS, np.uint8)
    kinds[:_LETTERS_END] = np.strings.isalnum(np.arange(_LETTERS_END, dtype=np.uint32).view("U1"))
    kinds[[code for codes in _MARK_RANGES for code in codes if not kinds[code] and _is_mark(chr(code))]] = MARK
    lowered = np.arange(CODE_POINTS, dtype=np.uint32)
    lowered[:_CASES_END] = [ord(chr(code).lower()[0]) for code in range(_CASES_END)]  # i of U+0130, without its dot
    return kinds, lowered


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter)[0] == "M"


class Terms:
    """What an index makes of words; each distinct word is stemmed once."""

    def __init__(self, settings: Index) -> None:
        self.stop_words = _STOP_WORDS[settings.stop_words]
        self.are_words = settings.stemmer == "none"  # a word and its term are the same
        if not self.are_words:
            import snowballstemmer

            self._stem = cache(snowballstemmer.stemmer(settings.stemmer).stemWord)

    def of(self, word: str) -> str | None:
        """Return the term of a word in lower case, or None for a stop word, and for one that was too long: ``""``."""
        if not word or word in self.stop_words:
            return None
        return word if self.are_words else self._stem(word) or word
