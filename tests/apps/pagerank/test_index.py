"""The index holds each word of each document, whatever the files and the workers."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.apps.pagerank.indexes import WORDS, build_postings, collections, table_of, write_documents, write_ranks
from tests.helpers.pagerank_search_oracle import Oracle, Page
from whitewater.engines import memory, resolve
from whitewater.errors import InputError, IntegrityError, ResourceError
from whitewater.step import Output, Run
from whitewater.text import index_folder
from whitewater.text import postings as postings_module
from whitewater.text.config import Index
from whitewater.text.index_folder import open_index
from whitewater.text.postings import Postings
from whitewater.text.tokens import Terms
from whitewater_apps.pagerank.steps import index as module
from whitewater_apps.pagerank.steps.index import index

CPU = resolve("cpu")
STEMS = {"rivers": "river"}


def some_pages(number: int, *, seed: int = 0) -> list[Page]:
    random = Random(seed)
    return [
        Page(
            random.randrange(-(2**63), 2**63),
            f"https://example.org/{place}",
            " ".join(random.choices(WORDS, k=random.randrange(4))),
            " ".join(random.choices([*WORDS, f"only{place}"], k=random.randrange(60))),
            random.random(),
        )
        for place in range(number)
    ]


def run_index(documents: Path, ranks: Path, *, threads: int = 1, name: str = "index", **values: Any) -> Path:
    made = documents.with_name(name)
    index(
        Run("pagerank", "index", CPU, Index(**values), threads), documents=documents, vertices=ranks, index=Output(made)
    )
    return made


def as_lists(postings: Postings) -> dict[str, list[tuple[int, int, list[int]]]]:
    """Return document, frequency and positions, by term, and check the table of the terms."""
    found = {}
    stop = 0
    for row in postings.terms.to_pylist():
        assert row["offset"] == stop
        stop += row["document_frequency"]
        here = slice(row["offset"], stop)
        some = postings.postings[here].to_pylist()
        assert row["collection_frequency"] == sum(each["frequency"] for each in some)
        found[row["term"]] = [(each["document"], each["frequency"], each.get("positions", [])) for each in some]
    assert stop == len(postings.postings)
    assert list(found) == sorted(found, key=str.encode)
    return found


class OracleTerms(Terms):
    """Terms with the stems of the oracle, which knows no stemmer."""

    def __init__(self, oracle: Oracle) -> None:
        super().__init__(Index(stemmer="english"))
        self._oracle = oracle

    def of(self, word: str) -> str | None:
        return self._oracle.term(word)


@settings(max_examples=150, deadline=None)
@given(collections(), st.integers(1, 4), st.tuples(st.booleans(), st.booleans()), st.integers(1, 3), st.integers(1, 60))
def test_postings_are_those_counted_word_by_word(
    pages: list[Page], weight: int, changes: tuple[bool, bool], threads: int, block_bytes: int
) -> None:
    stop_words, stemmed = changes
    oracle = Oracle(pages, len(pages), stop_words=stop_words, title_weight=weight, stem=STEMS if stemmed else {})
    table = table_of(pages)
    chosen = Index(stop_words="english" if stop_words else "none", title_weight=weight, positions=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings_module, "BLOCK_BYTES", block_bytes)
        patch.setattr(postings_module, "Terms", lambda _: OracleTerms(oracle) if stemmed else Terms(chosen))
        made = build_postings(table["title"], table["text"], settings=chosen, threads=threads)
    assert as_lists(made) == oracle.postings()
    assert made.lengths.tolist() == oracle.lengths


def test_words_of_one_stem_are_one_term_and_each_distinct_word_is_stemmed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import snowballstemmer

    stemmer, asked = snowballstemmer.stemmer("english"), []

    class Counting:
        def stemWord(self, word: str) -> str:  # noqa: N802
            asked.append(word)
            return str(stemmer.stemWord(word))

    monkeypatch.setattr(snowballstemmer, "stemmer", lambda _: Counting())
    monkeypatch.setattr(postings_module, "BLOCK_BYTES", 10)
    texts = pa.chunked_array([["running runs", "a run", "RUNNING rivers"]])
    made = build_postings(texts, texts, settings=Index(stemmer="english", title_weight=2), threads=2)
    assert as_lists(made) == {"run": [(0, 6, []), (1, 3, []), (2, 3, [])], "river": [(2, 3, [])]}
    assert sorted(asked) == ["rivers", "run", "running", "runs"]


@pytest.mark.parametrize("positions", [False, True])
def test_row_groups_files_and_workers_are_not_seen_in_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, positions: bool
) -> None:
    pages = some_pages(301)
    ranks = write_ranks(tmp_path / "vertices.parquet", pages, others=3)
    monkeypatch.setattr(module, "BLOCK_BYTES", 20_000)
    first = run_index(write_documents(tmp_path / "one", pages), ranks, positions=positions)
    cut_in_seven = write_documents(tmp_path / "seven", pages, group_rows=43, file_rows=86)
    second = run_index(cut_in_seven, ranks, threads=3, name="of_seven", positions=positions)
    for name in ("index.json", "terms.parquet", "postings.parquet", "documents.parquet"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_the_index_describes_its_documents_in_their_order(tmp_path: Path) -> None:
    pages = some_pages(40)
    ranks = write_ranks(tmp_path / "vertices.parquet", pages, others=2)
    made = open_index(run_index(write_documents(tmp_path / "documents", pages), ranks))
    oracle = Oracle(pages, 42)
    rows = pq.read_table(made.path / "documents.parquet").to_pylist()
    assert [Page(*(row[name] for name in ("vertex", "url", "title", "text", "rank"))) for row in rows] == oracle.pages
    assert [row["length"] for row in rows] == oracle.lengths
    summary = made.summary
    assert (summary.documents, summary.vertices) == (40, 42)
    assert summary.terms == len(oracle.postings())
    assert summary.mean_length == sum(oracle.lengths) / 40
    assert summary.settings == Index()


def test_terms_and_postings_are_found_across_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_folder, "TERM_ROWS", 3)
    monkeypatch.setattr(index_folder, "POSTING_ROWS", 7)
    monkeypatch.setattr(index_folder, "DOCUMENT_ROWS", 5)
    pages = some_pages(60)
    ranks = write_ranks(tmp_path / "vertices.parquet", pages)
    made = open_index(run_index(write_documents(tmp_path / "documents", pages), ranks, positions=True))
    expected = Oracle(pages, 60).postings()
    assert pq.read_metadata(made.path / "documents.parquet").num_row_groups == 12
    for term, postings in expected.items():
        read = made.postings(term, positions=True)
        assert read is not None
        assert [tuple(row.values()) for row in read.to_pylist()] == postings
    assert [made.postings(term) for term in ("", "a", "zzz", "\U0010ffff")] == [None] * 4
    urls = [page.url for page in Oracle(pages, 60).pages]
    assert [row["url"] for row in made.read([59, 0, 31, 31], ["url"])] == [urls[59], urls[0], urls[31], urls[31]]
    assert made.numbers([urls[7], urls[50], "https://elsewhere.org/"]) == {urls[7]: 7, urls[50]: 50}


def test_documents_without_words_are_in_the_index(tmp_path: Path) -> None:
    pages = [Page(5, "u", "", "the", 0.5), Page(3, "v", "", "", 0.5)]
    ranks = write_ranks(tmp_path / "vertices.parquet", pages)
    made = open_index(run_index(write_documents(tmp_path / "documents", pages), ranks, positions=True))
    assert made.summary.terms == made.summary.postings == made.summary.mean_length == 0
    assert made.postings("the") is None
    assert [row["url"] for row in made.read([0, 1], ["url"])] == ["u", "v"]


def test_words_that_are_too_long_are_counted(tmp_path: Path) -> None:
    pages = [Page(5, "u", "x" * 65, f"{'y' * 64} {'z' * 200}", 1.0)]
    ranks = write_ranks(tmp_path / "vertices.parquet", pages)
    made = open_index(run_index(write_documents(tmp_path / "documents", pages), ranks))
    assert made.summary.too_long == 2
    assert made.postings("x" * 65) is None
    assert made.postings("y" * 64) is not None


def test_no_documents_are_refused(tmp_path: Path) -> None:
    ranks = write_ranks(tmp_path / "vertices.parquet", some_pages(1))
    with pytest.raises(InputError, match="no documents"):
        run_index(write_documents(tmp_path / "documents", []), ranks)
    with pytest.raises(InputError, match=r"documents\.json"):
        run_index(tmp_path / "nowhere", ranks)


def test_a_document_without_a_rank_is_refused(tmp_path: Path) -> None:
    pages = [Page(7, "u", "", "", 0.5), Page(9, "v", "", "", 0.5)]
    documents = write_documents(tmp_path / "documents", pages)
    with pytest.raises(IntegrityError, match="1 documents have no rank, the first is vertex 9"):
        run_index(documents, write_ranks(tmp_path / "vertices.parquet", pages[:1]))
    with pytest.raises(IntegrityError, match="2 documents have no rank"):
        run_index(documents, write_ranks(tmp_path / "vertices.parquet", []))


def test_damaged_inputs_are_named(tmp_path: Path) -> None:
    pages = some_pages(3)
    documents, ranks = write_documents(tmp_path / "documents", pages), write_ranks(tmp_path / "vertices.parquet", pages)
    broken = pa.array([b"\xff\xff\xff\xff"] * 3).view(pa.string())
    for name, column in (("text", broken), ("title", broken)):
        table = table_of(pages)
        damaged = table.set_column(table.column_names.index(name), name, column)
        pq.write_table(damaged, documents / "documents-00000.parquet", store_schema=False)
        with pytest.raises(InputError, match=r"documents-00000\.parquet.*(?i:utf-?8)"):
            run_index(documents, ranks)
    with pytest.raises(InputError, match="vertices"):
        run_index(write_documents(tmp_path / "again", pages), tmp_path / "no-vertices.parquet")


def test_documents_that_do_not_fit_into_memory_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = some_pages(3)
    documents, ranks = write_documents(tmp_path / "documents", pages), write_ranks(tmp_path / "vertices.parquet", pages)
    monkeypatch.setattr(memory, "available", lambda: 1000)
    with pytest.raises(ResourceError, match="the index of"):
        run_index(documents, ranks)
    assert not (tmp_path / "index").exists()


def test_a_frequency_beyond_32_bits_is_refused() -> None:
    texts = pa.chunked_array([["two words"]])
    with pytest.raises(InputError, match="title_weight"):
        build_postings(texts, texts, settings=Index(title_weight=2**30), threads=1)
    made = build_postings(texts, texts, settings=Index(title_weight=2**30 - 2), threads=1)
    assert made.postings["frequency"].to_pylist() == [2**30 - 1, 2**30 - 1]


def read_first(path: Path) -> None:
    open_index(path).postings("flood")


@pytest.mark.parametrize(("key", "value", "told"), [("format", 2, "format 2"), ("unicode", "1.0", "Unicode 1.0"),
                                                    ("terms", None, "no index"), ("postings", 5, "rows")])  # fmt: skip
def test_an_index_that_is_none_is_refused(tmp_path: Path, key: str, value: object, told: str) -> None:
    pages = some_pages(3)
    ranks = write_ranks(tmp_path / "vertices.parquet", pages)
    made = run_index(write_documents(tmp_path / "documents", pages), ranks)
    described = json.loads((made / "index.json").read_text()) | {key: value}
    (made / "index.json").write_text(json.dumps(described))
    with pytest.raises((InputError, IntegrityError), match=told):
        read_first(made)


def test_a_lost_file_is_named(tmp_path: Path) -> None:
    pages = some_pages(3)
    ranks = write_ranks(tmp_path / "vertices.parquet", pages)
    made = run_index(write_documents(tmp_path / "documents", pages), ranks)
    (made / "terms.parquet").unlink()
    with pytest.raises(InputError, match=r"terms\.parquet"):
        open_index(made)
