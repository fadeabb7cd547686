"""Every query finds the documents that a search word by word finds, in its order, with its scores."""

from __future__ import annotations

import json
import math
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.apps.pagerank.indexes import WORDS, collections, make_index
from tests.helpers.pagerank_search_oracle import Oracle, Page, words_of
from whitewater.engines import resolve
from whitewater.errors import InputError
from whitewater.io.terminal_text import fold_text, printable
from whitewater.step import Inputs, Output, Run
from whitewater.text import ranking
from whitewater.text.config import Index, Search
from whitewater.text.index_folder import IndexFolder
from whitewater.text.tokens import Terms
from whitewater_apps.pagerank.steps.search import SCANNED, WINDOW, answer, measures, read_judgments, search, snippet

CPU = resolve("cpu")
PLAIN = Terms(Index(stop_words="none"))
ASKED = st.lists(st.sampled_from([*WORDS, "nowhere"]), min_size=1, max_size=5)
QUERIES = st.one_of(
    ASKED.map(" ".join),
    ASKED.map(lambda words: f'"{" ".join(words)}"'),
    st.tuples(ASKED, ASKED).map(lambda parts: f'{" ".join(parts[0])} "{" ".join(parts[1])}" flood'),
)
NUMBERS = st.fixed_dictionaries({
    "k1": st.sampled_from([0.0, 1.2, 3.0]), "b": st.sampled_from([0.0, 0.75, 1.0]),
    "prior": st.sampled_from([0.0, 1.0, 10.0]), "half": st.sampled_from([0.1, 1.0]),
})  # fmt: skip


def search_all(index: IndexFolder, query: str, **values: Any) -> dict[str, Any]:
    return answer(index, query, Search(**{"limit": 1000, **values}))


def run_search(index: IndexFolder, path: Path, judgments: dict[str, Path] | None = None, **values: Any) -> Any:
    queries = path / "queries.json"
    run = Run("pagerank", "search", CPU, Search(**values))
    search(run, index=index.path, judgments=Inputs(judgments or {}), queries=Output(queries))
    return json.loads(queries.read_text())


def pages_of(*texts: str, ranks: list[float] | None = None) -> list[Page]:
    return [
        Page(place, f"https://example.org/{place}", "", text, ranks[place] if ranks else 0.25)
        for place, text in enumerate(texts)
    ]


@settings(max_examples=100, deadline=None)
@given(collections(), st.lists(QUERIES, min_size=1, max_size=4), NUMBERS, st.integers(0, 5))
def test_documents_order_and_scores_are_those_found_word_by_word(
    tmp_path_factory: pytest.TempPathFactory,
    pages: list[Page],
    queries: list[str],
    numbers: dict[str, float],
    others: int,
) -> None:
    vertices = len(pages) + others
    index = make_index(tmp_path_factory.mktemp("index"), pages, vertices=vertices, stop_words="none", positions=True)
    oracle = Oracle(pages, vertices, stop_words=False)
    known = oracle.postings()
    for query in queries:
        answer, expected = search_all(index, query, **numbers), oracle.search(query, **numbers)
        found = [(each["url"], each["score"]) for each in answer["results"]]
        assert [score for _, score in found] == pytest.approx([score for _, score in expected], rel=1e-12)
        assert dict(found).keys() == dict(expected).keys()
        # Sums in another order may differ in the last digit, so only of clearly different scores is the order known.
        ranks = {page.url: page.rank for page in pages}
        rounded = {url: float(f"{score:.9e}") for url, score in expected}
        order = [rounded[url] for url, _ in found]
        assert order == sorted(order, reverse=True)
        assert found == sorted(found, key=lambda each: (-each[1], -ranks[each[0]], each[0]))
        assert answer["unknown"] == list(dict.fromkeys(word for word in words_of(query) if word not in known))
        assert answer["found"] == len(expected)
        assert [each["position"] for each in answer["results"]] == list(range(1, len(expected) + 1))


@settings(max_examples=60, deadline=None)
@given(collections(), ASKED, st.integers(1, 8))
def test_the_best_are_the_first_of_all_and_each_has_its_position(
    tmp_path_factory: pytest.TempPathFactory, pages: list[Page], asked: list[str], limit: int
) -> None:
    index = make_index(tmp_path_factory.mktemp("index"), pages, stop_words="none")
    everything = ranking.rank(index, " ".join(asked), Search())
    order = everything.best(1000)
    assert everything.best(limit) == order[:limit]
    numbers = everything.numbers[order].tolist()
    assert [everything.position(number) for number in numbers] == list(range(1, len(numbers) + 1))
    assert all(everything.position(number) is None for number in set(range(len(pages) + 1)) - set(numbers))


def test_a_score_is_the_written_formula(tmp_path: Path) -> None:
    pages = [Page(1, "u", "flood", "water flood", 0.4), Page(2, "v", "", "water", 0.1), Page(3, "w", "", "sky", 0.2)]
    answer = search_all(make_index(tmp_path, pages, vertices=5), "flood", k1=1.2, b=0.75, prior=2, half=0.5)
    (found,) = answer["results"]
    # The title's word counts 3 times: frequency 4, length 5; lengths 5, 1, 1; one document of three has it.
    assert found["bm25"] == pytest.approx(math.log(1 + 2.5 / 1.5) * 4 * 2.2 / (4 + 1.2 * (0.25 + 0.75 * 5 / (7 / 3))))
    assert found["prior"] == pytest.approx(2 * (0.4 * 5) / (0.5 + 0.4 * 5))
    assert found["score"] == found["bm25"] + found["prior"]
    assert found["rank"] == 0.4


def test_equal_scores_are_ordered_by_rank_and_url_and_words_asked_twice_count_twice(tmp_path: Path) -> None:
    pages = [Page(place, url, "", "flood", rank) for place, (url, rank) in enumerate(
        [("c", 0.2), ("b", 0.2), ("a", 0.1), ("d", 0.3)])]  # fmt: skip
    index = make_index(tmp_path, pages)
    for limit in range(1, 5):
        found = [each["url"] for each in search_all(index, "flood", prior=0, limit=limit)["results"]]
        assert found == ["d", "b", "c", "a"][:limit]
    once, twice = (search_all(index, query, prior=0)["results"][0]["score"] for query in ("flood", "flood Flood"))
    assert twice == 2 * once


def test_a_query_is_cut_stopped_and_stemmed_as_the_index_was(tmp_path: Path) -> None:
    index = make_index(tmp_path, pages_of("The rivers are RUNNING", "nothing"), stemmer="english")
    assert search_all(index, "the river: runs?")["found"] == 1
    assert search_all(index, "lakes of rivers, lake and nowhere")["unknown"] == ["lakes", "nowhere"]
    assert search_all(index, "nowhere")["results"] == []


@pytest.mark.parametrize(("query", "found"), [
    ('"flood control"', [0]), ('"control flood"', [1]), ('"control of flood"', [3]), ('"flood" sky', [0, 1, 3, 4]),
    ('"flood the control"', [4]), ('sky "flood control"', [0]), ('"the" flood', [0, 1, 3, 4]), ('"nowhere flood"', []),
    ('"title flood"', []), ('"flood control" "control flood"', []), ('"flood flood"', []),
])  # fmt: skip
def test_phrases_stand_word_by_word_and_never_go_from_the_title_into_the_text(
    tmp_path: Path, query: str, found: list[int]
) -> None:
    texts = ["flood control sky", "control flood", "sky", "control a flood", "flood of control"]
    pages = [Page(place, str(place), "a title", text, 0.2) for place, text in enumerate(texts)]
    index = make_index(tmp_path, pages, positions=True)
    assert sorted(int(each["url"]) for each in search_all(index, query)["results"]) == found


@pytest.mark.parametrize(("query", "positions", "told"), [
    ("", True, "asks for nothing"), ("the of", True, "asks for nothing"), ('""', True, "asks for nothing"),
    ("?!", True, "asks for nothing"), ('flood "control', True, "not closed"),
    ('"flood control"', False, "index.positions"),
    (f'"{"flood " * 102}"', True, "more than 100 words"),
])  # fmt: skip
def test_a_query_that_cannot_be_answered_says_why(tmp_path: Path, query: str, positions: bool, told: str) -> None:
    index = make_index(tmp_path, pages_of("flood control"), positions=positions)
    with pytest.raises(InputError, match=told):
        search_all(index, query)


def best_window(hits: list[bool | str]) -> int:
    """Return the most different hits in any window."""
    return max((len({hit for hit in hits[start : start + WINDOW] if hit}) for start in range(len(hits))), default=0)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["flood", "Control", "sky", *"abcdefgh"]), max_size=120))
def test_a_snippet_has_the_most_different_words_asked_for(text: list[str]) -> None:
    shown = snippet(" ".join(text), {"flood", "control", "sky"}, PLAIN)
    marked = [word for word in shown.split() if word.startswith("**")]
    within = [word.strip("*") for word in shown.split() if word != "…"]
    assert len(within) == min(len(text), WINDOW)
    assert " ".join(within) in " ".join(text)
    assert [f"**{word}**" for word in within if len(word) > 1] == marked
    assert len(set(marked)) == best_window([word if len(word) > 1 else "" for word in text])
    assert shown.startswith("…") == (text[: len(within)] != within)


@pytest.mark.parametrize(("text", "marked"), [
    (["flood", *40 * ["x"], "flood", "other"], ["**flood**", *29 * ["x"]]),
    ([*40 * ["x"], "flood", *28 * ["y"], "control", *40 * ["x"]], ["**flood**", *28 * ["y"], "**control**"]),
    (["flood", "sky", *40 * ["x"], "control", *40 * ["y"]], ["**flood**", "**sky**", *28 * ["x"]]),
    (["flood", *40 * ["x"], "sky", "control", *40 * ["y"]], [*5 * ["x"], "**sky**", "**control**", *23 * ["y"]]),
])  # fmt: skip
def test_the_first_window_of_the_best_is_shown_with_all_its_matches(text: list[str], marked: list[str]) -> None:
    shown = snippet(" ".join(text), {"flood", "control", "sky"}, PLAIN)
    assert shown.strip("… ").split() == marked


def test_a_long_text_is_looked_at_up_to_a_limit() -> None:
    assert "flood" in snippet("word " * 1000 + "flood", {"flood"}, PLAIN)
    shown = snippet("word " * SCANNED + "flood", {"flood"}, PLAIN)
    assert shown == "word " * (WINDOW - 1) + "word …"
    assert snippet("x" * 2 * SCANNED, {"flood"}, PLAIN)


def test_measures_are_those_reckoned_by_hand() -> None:
    found = measures([[1], [3], [None], [2, 12, None]])
    assert found["mrr"] == pytest.approx((1 + 1 / 3 + 0 + 1 / 2) / 4)
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    assert found["ndcg_10"] == pytest.approx((1 + 1 / 2 + 0 + (1 / math.log2(3)) / ideal) / 4)
    assert found["success_1"] == 1 / 4
    assert measures([[11]])["ndcg_10"] == 0
    assert measures([[*range(1, 13)]])["ndcg_10"] == 1


def test_queries_of_the_settings_and_of_the_judgments_are_answered_and_measured(tmp_path: Path) -> None:
    texts = ["flood flood flood", "flood control of the river", "sky"]
    index = make_index(tmp_path / "index", pages_of(*texts, ranks=[0.01, 0.9, 0.09]))
    table = tmp_path / "judgments.csv"
    table.write_text("query,url\nflood,HTTPS://Example.org:443/a/../1#here\nsky,https://example.org/2\n"
                     "sky,https://example.org/nowhere\n")  # fmt: skip
    answers = run_search(index, tmp_path, {table.name: table}, queries=("river", "sky"), limit=2)
    assert [each["query"] for each in answers["queries"]] == ["river", "sky", "flood"]
    flood = answers["queries"][2]["results"]
    assert [each["url"][-1] for each in flood] == ["1", "0"]
    assert flood[0]["snippet"] == "**flood** control of the river"
    evaluation = answers["evaluation"]
    assert evaluation["judged"] == 2
    assert (evaluation["judged_urls"], evaluation["judged_urls_not_in_index"]) == (3, 1)
    assert (evaluation["mrr"], evaluation["mrr_without_prior"]) == (1.0, 0.75)
    assert (evaluation["success_1"], evaluation["success_1_without_prior"]) == (1.0, 0.5)
    assert evaluation["first_right_without_prior_only"] == 0
    half_found = 1 / (1 + 1 / math.log2(3))
    assert evaluation["ndcg_10"] == pytest.approx((1 + half_found) / 2)
    assert evaluation["ndcg_10_without_prior"] == pytest.approx((1 / math.log2(3) + half_found) / 2)


def test_without_queries_there_are_no_answers_and_no_measures(tmp_path: Path) -> None:
    index = make_index(tmp_path / "index", pages_of("flood"))
    assert run_search(index, tmp_path) == {"queries": [], "evaluation": None}


@pytest.mark.parametrize(("text", "told"), [
    ("query,page\nflood,u\n", "query and url"), ("query,url\n", "no rows"), ("query,url\nflood,\n", "row 2"),
    ("query,url\n,u\n", "row 2"), ("query,url\nflood\n", "row 2"), ("", "query and url"), (None, "not a readable"),
    ("query,url,url\nflood,u,v\n", "one query and url"), ("query,url\nflood, plain,u\n", "row 2 has more fields"),
])  # fmt: skip
def test_judgments_that_cannot_be_used_say_why(tmp_path: Path, text: str | None, told: str) -> None:
    table = tmp_path / "judgments.csv"
    if text is not None:
        table.write_text(text)
    with pytest.raises(InputError, match=told):
        read_judgments(table)


@given(text=st.text(st.characters(exclude_categories=["C", "M"]), max_size=300), columns=st.integers(3, 50))
def test_a_text_is_folded_into_lines_that_fit(text: str, columns: int) -> None:
    shown = fold_text(text, columns=columns, lines=3)
    assert len(shown) <= 3
    assert all(sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in line) <= columns for line in shown)
    joined, whole = "".join(shown).replace(" ", ""), printable(text).replace(" ", "")
    assert joined == whole or (joined.endswith("…") and whole.startswith(joined[:-1]))


def test_a_text_is_folded_at_blanks_and_by_the_columns_that_letters_take() -> None:
    assert fold_text("to be or not to be", columns=8, lines=3) == ["to be or", "not to", "be"]
    assert fold_text("日本語" * 9, columns=8, lines=2) == ["日本語日", "本語日…"]
    assert fold_text("e\u0301" * 9, columns=8, lines=1) == ["e\u0301" * 7 + "…"]
    assert fold_text("", columns=8, lines=1) == []


def test_commas_at_the_end_of_judgments_are_nothing(tmp_path: Path) -> None:
    table = tmp_path / "judgments.csv"
    table.write_text("query,url\nflood,https://a.org/,\nrain,https://b.org/,,\n")
    assert read_judgments(table) == {"flood": ["https://a.org/"], "rain": ["https://b.org/"]}
