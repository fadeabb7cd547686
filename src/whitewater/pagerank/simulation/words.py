"""Words: invented ones, a vocabulary for each topic, and texts whose words are Zipf-distributed.

Ranks are drawn by the law of Zipf as Mandelbrot extended it: the word of rank r with a probability proportional to
1 / (r + 2.7) (B. Mandelbrot 1953, "An informational theory of the statistical structure of language").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# In the order of their frequency in English, about.
STOP_WORDS = (
    "the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not",
    "he", "this", "are", "or", "his", "from", "at", "which", "but", "have", "an", "had", "they", "you", "were",
    "there", "been", "their", "we", "who", "will", "more", "no",
)  # fmt: skip
# No stop word is spelt with these: each syllable is consonants and a vowel, so that no two numbers give one word.
_ONSETS = [*"bcdfghlmnprstvz", "br", "cr", "dr", "fl", "gr", "pl", "st", "tr"]
_SYLLABLES = np.array([onset + vowel for onset in _ONSETS for vowel in "aeiou"], dtype=object)
_SHORTEST = 3
_ACCENTS = str.maketrans("aeiou", "áèîöü")
_GREEK = str.maketrans("abcdefghilmnoprstuvz", "αβκδεφγχιλμνοπρστυωζ")

OF_TOPIC = 400
OF_ALL = 300
_OFFSET = 2.7
_SENTENCE = 12


@dataclass(frozen=True)
class Mixture:
    """What texts are made of, as shares."""

    stop_words: float = 0.42
    of_all: float = 0.08  # words that all topics share; the rest are the topic's
    accented: float = 0.06  # of the invented words
    greek: float = 0.03


MIXTURE = Mixture()


@dataclass(frozen=True)
class Vocabulary:
    """All words: stop words, those that topics share, then `OF_TOPIC` of each topic, the frequent ones first.

    Attributes
    ----------
    words
        Text (words,).
    rare
        Text (topics,): a word of each topic that the texts do not use, with an accent in every other topic.
    subjects
        Text (topics, 2): two more.
    """

    words: npt.NDArray[np.object_]
    rare: npt.NDArray[np.object_]
    subjects: npt.NDArray[np.object_]


def invent_words(count: int, *, random: np.random.Generator) -> npt.NDArray[np.object_]:
    """Return invented words, all different; some have an accent, some are Greek."""
    syllables, base = _SHORTEST, len(_SYLLABLES)
    while base**syllables < 2 * count:
        syllables += 1
    numbers = random.choice(base**syllables, count, replace=False)
    words = np.full(count, "", dtype=object)
    for _ in range(syllables):
        numbers, digit = np.divmod(numbers, base)
        words = words + _SYLLABLES[digit]
    kind = random.random(count)
    accented, greek = MIXTURE.accented, MIXTURE.accented + MIXTURE.greek
    for place in np.flatnonzero(kind < greek):
        words[place] = _accented(words[place]) if kind[place] < accented else words[place].translate(_GREEK)
    return words


def _accented(word: str) -> str:
    return word[:-1] + word[-1].translate(_ACCENTS)


def invent_vocabulary(topics: int, *, random: np.random.Generator) -> Vocabulary:
    """Return the words of so many topics."""
    words = invent_words(OF_ALL + topics * (OF_TOPIC + 3), random=random)
    used, special = words[: -3 * topics], words[-3 * topics :].reshape(topics, 3).copy()
    special[::2, 2] = [_accented(word) for word in special[::2, 2]]
    return Vocabulary(
        words=np.concatenate([np.array(STOP_WORDS, dtype=object), used]), rare=special[:, 2], subjects=special[:, :2]
    )


def draw_tokens(topics: npt.NDArray[np.int64], *, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the number of a word of the vocabulary for each place of a text, by the topic of the place.

    Parameters
    ----------
    topics
        int64 (tokens,).
    random
        Equal states give equal words.
    """
    kind, place = random.random(len(topics)), random.random(len(topics))
    stop, shared = kind < MIXTURE.stop_words, kind < MIXTURE.stop_words + MIXTURE.of_all
    own = len(STOP_WORDS) + OF_ALL + topics * OF_TOPIC + _rank(place, OF_TOPIC)
    return np.where(
        stop,
        _rank(place, len(STOP_WORDS)),
        np.where(shared, len(STOP_WORDS) + _rank(place, OF_ALL), own),
    )


def draw_topic_words(topics: npt.NDArray[np.int64], *, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the number of a word of each topic, by its frequency."""
    return len(STOP_WORDS) + OF_ALL + topics * OF_TOPIC + _rank(random.random(topics.shape), OF_TOPIC)


def _rank(uniform: npt.NDArray[np.float64], words: int) -> npt.NDArray[np.int64]:
    """Turn uniform numbers into ranks from 0."""
    weights = 1 / (np.arange(1, words + 1) + _OFFSET)
    cumulated = np.cumsum(weights) / weights.sum()
    cumulated[-1] = 1.0
    return np.searchsorted(cumulated, uniform, side="right")


def write_sentences(
    words: npt.NDArray[np.object_], *, last: npt.NDArray[np.int64], random: np.random.Generator
) -> list[str]:
    """Return words as parts of sentences: the ``last`` ones and others end with a full stop; capitals follow."""
    ends = random.random(len(words)) < 1 / _SENTENCE
    ends[last] = True
    text: list[str] = words.tolist()
    for place in np.flatnonzero(ends).tolist():
        text[place] += "."
        if place + 1 < len(text):
            text[place + 1] = text[place + 1].capitalize()
    if text:
        text[0] = text[0].capitalize()
    return text


def capitalised(words: Sequence[str]) -> str:
    """Return the words as a title."""
    return " ".join(words).capitalize()
