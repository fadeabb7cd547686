"""Words are found as the written rule says, letter by letter, by the kernel and by the query's own code."""

import unicodedata
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.helpers.pagerank_search_oracle import words_of
from whitewater.text.config import Index
from whitewater.text.postings import tokenize_block
from whitewater.text.tokens import LETTER, MARK, Terms, characters, lower, words

# Marks without a letter, capitals whose lower case depends on more or is of other length, digits outside ASCII.
DIFFICULT = [
    "", "\u0301a", "a\u0301\u0301-b", "\u2764\ufe0f x", "\u0130Ii\u0131", "\u0391\u03a3 \u03a3\u0391\u03a3",
    "\u212a\u023a\U00010400", "\ufb01 \u00df \u1e9e", "x_y-z", "\u2460\u00bd\u00b2", "\u6c34\uff0c\u6728", "\x00a\x00",
    "a\u200db", "\U000e0100b\U000e0100", "don\u2019t", "\u2177 \u2167", "\ufdd0\U0010ffff",
]  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(DIFFICULT)


def tokens_of(titles: list[str | None], texts: list[str | None]) -> list[tuple[list[str | None], list[str | None]]]:
    """Return the words that the kernel finds in titles and texts, None for those that are too long."""
    block = tokenize_block(pa.chunked_array([titles], pa.string()), pa.chunked_array([texts], pa.string()))
    known = [word or None for word in block.dictionary.to_pylist()]
    assert len(set(known)) == len(known)
    found = [known[token] for token in block.tokens]
    assert found.count(None) == block.too_long
    cuts = list(accumulate(block.counts.ravel().tolist(), initial=0))
    fields = [found[start:stop] for start, stop in pairwise(cuts)]
    assert cuts[-1] == len(found)
    return list(zip(fields[::2], fields[1::2], strict=True))


def test_every_code_point_is_what_unicode_says() -> None:
    kinds, lowered = characters()
    for code in range(0x110000):
        letter = chr(code)
        kind = LETTER if letter.isalnum() else MARK if unicodedata.category(letter)[0] == "M" else 0
        assert kinds[code] == kind, hex(code)
        if code != 0x130 and not 0xD800 <= code < 0xE000:
            assert chr(lowered[code]) == letter.lower(), hex(code)
    assert lowered[0x130] == ord("i")


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_the_words_of_a_query_are_those_of_the_rule_and_stand_where_they_say(text: str) -> None:
    found = list(words(text))
    assert [word.text for word in found] == list(words_of(text))
    assert all(lower(text[word.start : word.stop]) == word.text for word in found)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS | st.none()), max_size=6))
@example([(text, text) for text in DIFFICULT])
def test_the_words_of_a_block_are_those_of_the_rule(documents: list[tuple[str, str | None]]) -> None:
    titles, texts = [title for title, _ in documents], [text for _, text in documents]
    expected = [(list(words_of(title)), list(words_of(text or ""))) for title, text in documents]
    assert tokens_of([*titles], [*texts]) == expected


def test_rows_of_a_larger_column_are_taken() -> None:
    column = pa.chunked_array([["no", "one two", "Three"], ["four", "no"]], pa.large_string())
    block = tokenize_block(column[1:4], column[1:4])
    assert block.dictionary.to_pylist() == ["one", "two", "three", "four"]
    assert block.counts.tolist() == [[2, 2], [1, 1], [1, 1]]


def test_words_that_begin_or_end_alike_are_told_apart() -> None:
    stems = ["a" * length for length in range(1, 65)]
    alike = [*stems, *(stem[:-1] + "b" for stem in stems), *("b" + stem[1:] for stem in stems)]
    text = " ".join(alike * 2)
    ((_, found),) = tokens_of([""], [text])
    assert found == text.split()


def test_words_that_go_on_where_another_ends_are_told_apart() -> None:
    beginnings = ["abcdefgh" * times for times in range(1, 8)]
    text = " ".join([*(f"{beginnings[-1]}{number}" for number in range(30_000)), *beginnings])
    ((_, found),) = tokens_of([""], [text])
    assert found == text.split()


@pytest.mark.parametrize("letter", ["x", "é", "水", "𐐨"])
def test_a_word_of_more_than_64_bytes_is_counted_and_has_no_number(letter: str) -> None:
    most = 64 // len(letter.encode())
    ((_, found),) = tokens_of([None], [f"a {letter * most} b {letter * (most + 1)} c {letter * 5000} d"])
    assert found == ["a", letter * most, "b", None, "c", None, "d"]


def test_a_document_of_a_million_characters_and_one_of_letters_of_three_bytes_are_read() -> None:
    random = np.random.default_rng(0)
    long = " ".join(random.choice(["Alpha", "beta", "gamma"], 200_000))
    wide = "水木 " * 50_000
    (_, first), (_, second) = tokens_of([None, None], [long, wide])
    assert len(long) > 1e6
    assert first == long.lower().split()
    assert second == ["水木"] * 50_000


def test_bytes_that_are_not_text_are_refused() -> None:
    broken = pa.array([b"a", b"\xf7\xbf\xbf\xbf"]).view(pa.string())
    with pytest.raises(pa.ArrowInvalid, match=r"(?i)utf-?8"):
        tokenize_block(pa.chunked_array([["", ""]]), pa.chunked_array([broken]))


def test_stop_words_are_not_terms_and_words_of_one_stem_are_one() -> None:
    plain, english = Terms(Index(stop_words="none")), Terms(Index(stemmer="english"))
    assert plain.of("the") == "the"
    assert [english.of(word) for word in ("the", "running", "runs", "run", "floods")] == [
        None,
        "run",
        "run",
        "run",
        "flood",
    ]
