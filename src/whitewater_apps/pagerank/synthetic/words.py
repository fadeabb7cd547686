"""Write texts of English stop words and invented words, by topic.

Words follow the Zipf-Mandelbrot law: the probability of rank r is proportional to 1 / (r + 2.7) (B. Mandelbrot 1953,
"An informational theory of the statistical structure of language").
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Words = npt.NDArray[np.object_]

# Roughly by frequency in English.
STOP_WORDS = (
    "the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not",
    "he", "this", "are", "or", "his", "from", "at", "which", "but", "have", "an", "had", "they", "you", "were",
    "there", "been", "their", "we", "who", "will", "more", "no",
)  # fmt: skip
# A syllable is consonants and a vowel, so that words of different numbers differ. They do not form stop words.
ONSETS = [*"bcdfghlmnprstvz", "br", "cr", "dr", "fl", "gr", "pl", "st", "tr"]
SYLLABLES = np.array([onset + vowel for onset in ONSETS for vowel in "aeiou"], dtype=object)
ACCENTS = str.maketrans("aeiou", "áèîöü")
GREEK = str.maketrans("abcdefghilmnoprstuvz", "αβκδεφγχιλμνοπρστυωζ")
ACCENTED_SHARE, GREEK_SHARE = 0.06, 0.03  # of the invented words

TOPIC_WORDS, SHARED_WORDS = 400, 300  # words of each topic, and words that all topics share
STOP_WORDS_SHARE, SHARED_WORDS_SHARE = 0.42, 0.08  # of a text; the rest are words of its topic
WORDS_OF_A_SENTENCE, WORDS_OF_A_PARAGRAPH, MINIMUM_WORDS = 12, 60, 5
LENGTH_DEVIATION = 0.5  # of the logarithm of a page's number of words


@dataclass(frozen=True)
class Vocabulary:
    """Stop words, `SHARED_WORDS`, then `TOPIC_WORDS` of each topic, each by descending frequency.

    ``rare`` (topics,) and ``subjects`` (topics, 2) are words that texts do not use.
    """

    words: Words
    rare: Words
    subjects: Words


def invent_words(count: int, *, random: np.random.Generator) -> Words:
    """Return different words of three syllables, of 115**3 possible ones; some have accents or Greek letters."""
    syllables = len(SYLLABLES)
    numbers = random.choice(syllables**3, count, replace=False)
    first, second, third = np.unravel_index(numbers, (syllables, syllables, syllables), order="F")
    words = SYLLABLES[first] + SYLLABLES[second] + SYLLABLES[third]
    kind = random.random(count)
    for place in np.flatnonzero(kind < ACCENTED_SHARE + GREEK_SHARE):
        words[place] = _add_accent(words[place]) if kind[place] < ACCENTED_SHARE else words[place].translate(GREEK)
    return words


def _add_accent(word: str) -> str:
    return word[:-1] + word[-1].translate(ACCENTS)


def invent_vocabulary(topics: int, *, random: np.random.Generator) -> Vocabulary:
    """Return the words of a number of topics; half of the rare words have an accent."""
    words = invent_words(SHARED_WORDS + topics * (TOPIC_WORDS + 3), random=random)
    used, special = words[: -3 * topics], words[-3 * topics :].reshape(topics, 3).copy()
    special[::2, 2] = [_add_accent(word) for word in special[::2, 2]]
    return Vocabulary(np.concatenate([np.array(STOP_WORDS, dtype=object), used]), special[:, 2], special[:, :2])


def draw_topic_words(topics: Numbers, uniform: npt.NDArray[np.float64]) -> Numbers:
    """Draw the index of a word of each topic, by frequency, from uniform random numbers."""
    return len(STOP_WORDS) + SHARED_WORDS + topics * TOPIC_WORDS + _draw_ranks(uniform, TOPIC_WORDS)


def _draw_ranks(uniform: npt.NDArray[np.float64], words: int) -> Numbers:
    """Turn uniform random numbers into ranks, from 0."""
    cumulative = np.cumsum(1 / (np.arange(1, words + 1) + 2.7))
    return np.searchsorted(cumulative[:-1] / cumulative[-1], uniform, side="right")


def draw_lengths(factors: npt.NDArray[np.float64], *, mean: int, random: np.random.Generator) -> Numbers:
    """Return the number of words of each page: its factor times the mean, or log-normal if the factor is 0."""
    random_factors = np.exp(random.normal(-(LENGTH_DEVIATION**2) / 2, LENGTH_DEVIATION, len(factors)))
    lengths = np.round(np.where(factors > 0, factors, random_factors) * mean)
    return np.maximum(lengths.astype(np.int64), MINIMUM_WORDS)


def write_paragraphs(
    topics: Numbers, lengths: Numbers, vocabulary: Vocabulary, *, random: np.random.Generator
) -> Iterator[list[str]]:
    """Yield the paragraphs of each page, by its topic and its number of words."""
    ends = np.cumsum(lengths)
    kind, uniform = random.random(ends[-1]), random.random(ends[-1])
    numbers = np.select(
        [kind < STOP_WORDS_SHARE, kind < STOP_WORDS_SHARE + SHARED_WORDS_SHARE],
        [_draw_ranks(uniform, len(STOP_WORDS)), len(STOP_WORDS) + _draw_ranks(uniform, SHARED_WORDS)],
        draw_topic_words(np.repeat(topics, lengths), uniform),
    )
    words = vocabulary.words[numbers].tolist()
    stops = random.random(len(words)) < 1 / WORDS_OF_A_SENTENCE
    stops[ends - 1] = True
    # The word after a full stop, or at the beginning of a page, starts a sentence.
    for place in np.flatnonzero(np.append(True, stops[:-1])).tolist():
        words[place] = words[place].capitalize()
    for place in np.flatnonzero(stops).tolist():
        words[place] += "."
    for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
        step = WORDS_OF_A_PARAGRAPH
        yield [" ".join(words[place : min(place + step, end)]) for place in range(start, end, step)]
