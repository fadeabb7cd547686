"""Texts of English stop words and invented words, Zipf-distributed, each topic with words of its own.

Ranks are drawn by the law of Zipf as Mandelbrot extended it: the word of rank r with a probability proportional to
1 / (r + 2.7) (B. Mandelbrot 1953, "An informational theory of the statistical structure of language").
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Words = npt.NDArray[np.object_]

# In the order of their frequency in English, about.
STOP_WORDS = (
    "the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not",
    "he", "this", "are", "or", "his", "from", "at", "which", "but", "have", "an", "had", "they", "you", "were",
    "there", "been", "their", "we", "who", "will", "more", "no",
)  # fmt: skip
# No stop word is spelled with these: each syllable is consonants and a vowel, so that no two numbers give one word.
ONSETS = [*"bcdfghlmnprstvz", "br", "cr", "dr", "fl", "gr", "pl", "st", "tr"]
SYLLABLES = np.array([onset + vowel for onset in ONSETS for vowel in "aeiou"], dtype=object)
ACCENTS = str.maketrans("aeiou", "áèîöü")
GREEK = str.maketrans("abcdefghilmnoprstuvz", "αβκδεφγχιλμνοπρστυωζ")
ACCENTED_SHARE, GREEK_SHARE = 0.06, 0.03  # of the invented words

OF_TOPIC, OF_ALL = 400, 300  # words of each topic, and those that all topics share
STOP_WORDS_SHARE, OF_ALL_SHARE = 0.42, 0.08  # of the texts; the rest are words of the topic
OFFSET = 2.7
WORDS_OF_A_SENTENCE, WORDS_OF_A_PARAGRAPH, LEAST_WORDS = 12, 60, 5
LENGTH_DEVIATION = 0.5  # of the logarithm of a page's number of words


@dataclass(frozen=True)
class Vocabulary:
    """All words: stop words, those that topics share, then `OF_TOPIC` of each topic, the frequent ones first.

    ``rare`` (topics,) and ``subjects`` (topics, 2) are words that the texts do not use; every other rare one has an
    accent.
    """

    words: Words
    rare: Words
    subjects: Words


def invent_words(count: int, *, random: np.random.Generator) -> Words:
    """Return invented words of three syllables, all different, of which there are 115**3; some are Greek."""
    syllables = len(SYLLABLES)
    numbers = random.choice(syllables**3, count, replace=False)
    first, second, third = np.unravel_index(numbers, (syllables, syllables, syllables), order="F")
    words = SYLLABLES[first] + SYLLABLES[second] + SYLLABLES[third]
    kind = random.random(count)
    for place in np.flatnonzero(kind < ACCENTED_SHARE + GREEK_SHARE):
        words[place] = _accented(words[place]) if kind[place] < ACCENTED_SHARE else words[place].translate(GREEK)
    return words


def _accented(word: str) -> str:
    return word[:-1] + word[-1].translate(ACCENTS)


def invent_vocabulary(topics: int, *, random: np.random.Generator) -> Vocabulary:
    """Return the words of so many topics."""
    words = invent_words(OF_ALL + topics * (OF_TOPIC + 3), random=random)
    used, special = words[: -3 * topics], words[-3 * topics :].reshape(topics, 3).copy()
    special[::2, 2] = [_accented(word) for word in special[::2, 2]]
    return Vocabulary(np.concatenate([np.array(STOP_WORDS, dtype=object), used]), special[:, 2], special[:, :2])


def topic_words(topics: Numbers, uniform: npt.NDArray[np.float64]) -> Numbers:
    """Return the number of a word of each topic, by its frequency, for uniform random numbers."""
    return len(STOP_WORDS) + OF_ALL + topics * OF_TOPIC + _rank(uniform, OF_TOPIC)


def _rank(uniform: npt.NDArray[np.float64], words: int) -> Numbers:
    """Turn uniform numbers into ranks from 0."""
    cumulated = np.cumsum(1 / (np.arange(1, words + 1) + OFFSET))
    return np.searchsorted(cumulated[:-1] / cumulated[-1], uniform, side="right")


def draw_lengths(factors: npt.NDArray[np.float64], *, mean: int, random: np.random.Generator) -> Numbers:
    """Return the number of words of each page: its factor times the mean, or log-normal where the factor is 0."""
    drawn = np.exp(random.normal(-(LENGTH_DEVIATION**2) / 2, LENGTH_DEVIATION, len(factors)))
    lengths = np.round(np.where(factors > 0, factors, drawn) * mean)
    return np.maximum(lengths.astype(np.int64), LEAST_WORDS)


def write_paragraphs(
    topics: Numbers, lengths: Numbers, vocabulary: Vocabulary, *, random: np.random.Generator
) -> Iterator[list[str]]:
    """Yield the paragraphs of each page, of a topic and a number of words each."""
    ends = np.cumsum(lengths)
    kind, uniform = random.random(ends[-1]), random.random(ends[-1])
    numbers = np.select(
        [kind < STOP_WORDS_SHARE, kind < STOP_WORDS_SHARE + OF_ALL_SHARE],
        [_rank(uniform, len(STOP_WORDS)), len(STOP_WORDS) + _rank(uniform, OF_ALL)],
        topic_words(np.repeat(topics, lengths), uniform),
    )
    words = vocabulary.words[numbers].tolist()
    stops = random.random(len(words)) < 1 / WORDS_OF_A_SENTENCE
    stops[ends - 1] = True
    # Each page begins a sentence, since the one before it has ended one.
    for place in np.flatnonzero(np.append(True, stops[:-1])).tolist():
        words[place] = words[place].capitalize()
    for place in np.flatnonzero(stops).tolist():
        words[place] += "."
    for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
        step = WORDS_OF_A_PARAGRAPH
        yield [" ".join(words[place : min(place + step, end)]) for place in range(start, end, step)]
