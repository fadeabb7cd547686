"""The simulated web: what readers of archives and HTML find in it is what was noted, and its queries have answers."""

from __future__ import annotations

import csv
import math
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

import networkx as nx
import numpy as np
import pytest
from fastwarc.warc import ArchiveIterator

from whitewater.engines import resolve
from whitewater.step import Output, Run
from whitewater_apps.pagerank.config import Simulate
from whitewater_apps.pagerank.steps.simulate import simulate
from whitewater_apps.pagerank.synthetic.html import SPELLINGS, draw_spellings, write_href
from whitewater_apps.pagerank.synthetic.linking import draw_links, draw_out_degrees
from whitewater_apps.pagerank.synthetic.sites import Address
from whitewater_apps.pagerank.synthetic.words import STOP_WORDS

SMALL = Simulate(pages=400, topics=6, words=60)


@dataclass(frozen=True)
class Response:
    url: str
    status: int
    content_type: str
    location: str | None
    body: bytes


@dataclass
class Read(HTMLParser):
    """What Python's own parser finds in a page."""

    links: list[tuple[str, bool]] = field(default_factory=list)
    base: str = ""
    canonical: str = ""
    robots: str = ""
    words: list[str] = field(default_factory=list)
    title: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self._within = tag
        if tag == "a":
            self.links.append((found["href"], found.get("rel") == "nofollow"))
        elif tag == "base":
            self.base = found["href"]
        elif tag == "link":
            self.canonical = found["href"]
        elif tag == "meta" and found.get("name") == "robots":
            self.robots = found["content"]

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within != "script":
            self.words += re.findall(r"\w+", data.lower())
        if self._within == "title":
            self.title += re.findall(r"\w+", data.lower())


def decoded(response: Response) -> str:
    """Decode as declared by the header, else by the page, else as UTF-8 if it is, else as browsers do."""
    declared = re.search(r"charset=(\S+)", response.content_type)
    meta = re.search(rb'<meta charset="(.*?)">', response.body)
    if declared or meta:
        return response.body.decode(declared[1] if declared else meta[1].decode() if meta else "")
    try:
        return response.body.decode()
    except UnicodeDecodeError:
        return response.body.decode("windows-1252")


def normal(url: str) -> str:
    """Return one spelling of URLs that name the same thing."""
    parts = urlsplit(url.strip())
    host = (parts.hostname or "") + (f":{parts.port}" if parts.port not in (None, 80, 443) else "")
    path = posixpath.normpath(parts.path).rstrip("/") + ("/" if parts.path.endswith("/") else "")
    query = "&".join(each for each in parts.query.split("&") if each and not each.startswith("utm_"))
    return f"{parts.scheme}://{host}{quote(unquote(path))}" + (f"?{query}" if query else "")


@dataclass(frozen=True)
class Web:
    directory: Path
    facts: dict[str, Any]

    @cached_property
    def responses(self) -> list[Response]:
        with (self.directory / "web.warc.gz").open("rb") as file:
            found = []
            for record in ArchiveIterator(file, parse_http=False):
                assert record.verify_block_digest()
                record.parse_http()
                assert record.verify_payload_digest()
                answer = record.http_headers
                found.append(
                    Response(
                        record.headers["WARC-Target-URI"],
                        answer.status_code or 0,
                        answer["Content-Type"],
                        answer.get("Location"),
                        record.reader.read(),
                    )
                )
            return found

    @cached_property
    def html(self) -> dict[str, Response]:
        return {each.url: each for each in self.responses if each.status == 200 and "html" in each.content_type}

    @cached_property
    def read(self) -> dict[str, Read]:
        found = {}
        for url, response in self.html.items():
            found[url] = Read()
            found[url].feed(decoded(response))
        return found

    @cached_property
    def page_of(self) -> dict[str, str]:
        """The page of each address of one: the first of those with the same bytes."""
        first: dict[bytes, str] = {}
        return {url: first.setdefault(response.body, url) for url, response in self.html.items()}

    @cached_property
    def redirects(self) -> dict[str, str]:
        return {each.url: urljoin(each.url, each.location) for each in self.responses if each.location}

    @property
    def pages(self) -> set[str]:
        return set(self.page_of.values())

    def end(self, url: str) -> str | None:
        """Return the page that an address leads to, if it leads to one."""
        for _ in range(5):
            if url in self.page_of:
                return self.page_of[url]
            url = self.redirects.get(url, "")
        return None

    def links(self) -> Iterator[tuple[str, str, bool]]:
        """Each link on a page: the page, the normalized address, whether it is nofollow."""
        for url in self.pages:
            page = self.read[url]
            for href, nofollow in page.links:
                target = urljoin(page.base or url, href)
                if urlsplit(target).scheme in ("http", "https"):
                    yield url, normal(target), nofollow

    def graph(self) -> nx.DiGraph[str]:
        """Links that count, between pages."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(sorted(self.pages))
        for source, address, nofollow in sorted(self.links()):
            target = self.end(address)
            if target not in (None, source) and not nofollow and self.read[source].robots != "nofollow":
                graph.add_edge(source, target)
        return graph

    def queries(self) -> dict[str, str]:
        with (self.directory / "queries.csv").open(newline="") as file:
            return {row["query"]: row["url"] for row in csv.DictReader(file)}


def made(directory: Path, settings: Simulate) -> Web:
    directory.mkdir()
    run = Run("pagerank", "simulate", resolve("cpu"), settings)
    simulate(run, web=Output(directory / "web.warc.gz"), queries=Output(directory / "queries.csv"))
    return Web(directory, run.facts)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Web:
    return made(tmp_path_factory.mktemp("web") / "small", SMALL)


def contents(web: Web) -> list[bytes]:
    return [(web.directory / name).read_bytes() for name in ("web.warc.gz", "queries.csv")]


# ---- the files


def test_equal_settings_give_equal_bytes_and_another_seed_others(web: Web, tmp_path: Path) -> None:
    assert contents(made(tmp_path / "again", SMALL)) == contents(web)
    other = contents(made(tmp_path / "other", SMALL.model_copy(update={"seed": 2})))
    assert all(ours != theirs for ours, theirs in zip(contents(web), other, strict=True))


def test_addresses_are_different_and_as_many_as_were_noted(web: Web) -> None:
    urls = [each.url for each in web.responses]
    assert len(set(urls)) == len(urls) == web.facts["records"]
    assert [url for url in urls if normal(url) != url] == []


def test_responses_are_of_the_kinds_and_numbers_that_were_asked_for(web: Web) -> None:
    assert Counter(each.status for each in web.responses if each.status not in (301, 302)) == {
        200: web.facts["pages"] + web.facts["duplicates"] + 1,
        404: web.facts["missing"],
    }
    assert (web.facts["pages"], web.facts["topics"], web.facts["duplicates"]) == (400, 6, 8)
    assert {each.status for each in web.responses if each.location} == {301, 302}
    assert len(web.redirects) == web.facts["redirects"] == 12
    (image,) = [each for each in web.responses if each.content_type == "image/png"]
    assert image.body.startswith(b"\x89PNG\r\n\x1a\n")


def test_redirects_lead_to_pages_some_through_another_and_two_to_each_other(web: Web) -> None:
    ends = [web.end(url) for url in web.redirects]
    assert ends.count(None) == 2
    loop = [url for url in web.redirects if web.end(url) is None]
    assert [web.redirects[url] for url in loop] == loop[::-1]
    assert sum(target in web.redirects for target in web.redirects.values()) > 2
    assert any(not each.location.startswith("http") for each in web.responses if each.location)


def test_a_duplicate_has_the_bytes_of_its_page_which_names_itself_canonical_or_does_not(web: Web) -> None:
    copies = [url for url in web.html if web.page_of[url] != url]
    assert len(copies) == web.facts["duplicates"]
    named = [web.read[url].canonical for url in copies if web.read[url].canonical]
    assert named == [web.page_of[url] for url in copies if web.read[url].canonical]
    assert 0 < len(named) == web.facts["canonical_duplicates"] < len(copies)


# ---- links


def test_anchors_lead_where_the_notes_say(web: Web) -> None:
    kinds: Counter[str] = Counter()
    seen: set[tuple[str, str]] = set()
    for source, address, _ in web.links():
        target = web.end(address)
        if address.endswith(".png"):
            kinds["picture_links"] += 1
        elif target is None:
            kinds["broken_links"] += 1
        elif target == source:
            kinds["self_links"] += 1
        else:
            kinds["links" if (source, target) not in seen else "repeated_links"] += 1
            seen.add((source, target))
    # A link that repeats one that leads nowhere is counted as broken here.
    noted = {name: web.facts[name] for name in kinds}
    repeats = noted["repeated_links"] - kinds["repeated_links"]
    assert 0 <= repeats <= 3
    assert kinds == {**noted, "repeated_links": noted["repeated_links"] - repeats} | {
        "broken_links": noted["broken_links"] + repeats
    }


def test_shares_are_as_asked(web: Web) -> None:
    links = web.facts["links"] + web.facts["broken_links"]
    assert web.facts["broken_links"] == round(SMALL.broken * links)
    assert web.facts["nofollow_links"] == pytest.approx(0.03 * links, rel=0.2)
    linking = {source for source, _, _ in web.links()}
    assert web.facts["dangling_pages"] == len(web.pages) - len(linking) == 80
    # Links that would repeat one of their page are fewer than this.
    assert links / len(linking) == pytest.approx(SMALL.links, rel=0.1)


def test_in_degrees_have_a_heavy_tail_and_links_stay_within_their_topic() -> None:
    random = np.random.default_rng(5)
    topic = np.sort(random.integers(10, size=20_000))[random.permutation(20_000)]
    source, target = draw_links(topic, draw_out_degrees(20_000, dangling=0.2, mean=8, random=random), random=random)
    assert 0.8 < np.mean(topic[source] == topic[target]) < 0.95
    degrees = np.bincount(target, minlength=20_000)
    tail = degrees[degrees >= 20]
    # The maximum-likelihood exponent of a discrete power law (Clauset, Shalizi and Newman 2009, equation 3.7).
    exponent = 1 + len(tail) / np.log(tail / 19.5).sum()
    assert 1.8 < exponent < 2.6
    assert degrees.max() > 100 * degrees.mean()
    assert (degrees == 0).mean() > 0.1


def test_every_spelling_leads_to_the_same_address() -> None:
    spellings = draw_spellings(300, random=np.random.default_rng(3))
    every = [set[str](), *({name} for name in SPELLINGS), *spellings]
    places = [Address("www.a.example", "/"), Address("www.a.example", "/über/ñandú-1.html", "view=print"),
              Address("blog.a.example", "/x/y-2/"), Address("www.a.example", "/z/w.html", scheme="http")]  # fmt: skip
    hrefs = {write_href(to, base, spelling) for to in places for base in places for spelling in every}
    for base in places:
        for to in places:
            found = {normal(urljoin(base.url, write_href(to, base, spelling))) for spelling in every}
            assert found == {to.url}
    for kind in ("../", "//", "HTTPS://", "utm_source", "#", "?view=print", ":443", "über", "/archive/.."):
        assert any(kind in href for href in hrefs), kind


# ---- pages


# ---- queries


def bm25(web: Web, query: str) -> dict[str, float]:
    """Score the pages by BM25 as Lucene does, brute force; words of titles count three times."""
    read = {url: web.read[url].words + 2 * web.read[url].title for url in web.pages}
    texts = {url: Counter(word for word in words if word not in STOP_WORDS) for url, words in read.items()}
    lengths = {url: words.total() for url, words in texts.items()}
    mean = sum(lengths.values()) / len(lengths)
    scores: dict[str, float] = dict.fromkeys(texts, 0.0)
    for word in query.split():
        having = [url for url, words in texts.items() if words[word]]
        idf = math.log(1 + (len(texts) - len(having) + 0.5) / (len(having) + 0.5))
        for url in having:
            frequency = texts[url][word]
            scores[url] += idf * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * lengths[url] / mean))
    return scores


def mean_reciprocal_rank(web: Web, *, prior: float) -> float:
    ranks = nx.pagerank(web.graph())
    found = []
    for query, answer in web.queries().items():
        scores = bm25(web, query)
        raised = {
            url: score + prior * ranks[url] * len(ranks) / (1 + ranks[url] * len(ranks))
            for url, score in scores.items()
            if score
        }
        ordered = sorted(raised, key=lambda url: (-raised[url], url))
        found.append(1 / (1 + ordered.index(web.page_of[answer])))
    return float(np.mean(found))


def test_the_answer_of_a_subject_is_the_most_linked_of_several_pages_that_match_alike(web: Web) -> None:
    graph = web.graph()
    subjects = {query: answer for query, answer in web.queries().items() if " " in query}
    assert len(subjects) == web.facts["subject_queries"] == 6
    for query, answer in subjects.items():
        words = set(query.split())
        having = [url for url in web.pages if words <= set(web.read[url].words)]
        times = {tuple(web.read[url].words.count(word) for word in sorted(words)) for url in having}
        assert len(having) == 6
        assert len(times) == 1
        links = {url: graph.in_degree(url) for url in having}
        assert links.pop(answer) >= 3 * max(links.values())


def test_a_rare_word_is_on_one_page(web: Web) -> None:
    rare = {query: answer for query, answer in web.queries().items() if " " not in query}
    assert len(rare) == web.facts["topics"]
    assert any(not query.isascii() for query in rare)
    for query, answer in rare.items():
        assert {web.page_of[url] for url, read in web.read.items() if query in read.words} == {answer}


def test_words_alone_often_rank_another_page_first_and_pagerank_corrects_that(web: Web) -> None:
    words_only, with_prior = (mean_reciprocal_rank(web, prior=prior) for prior in (0.0, 1.0))
    assert with_prior > 0.9 > words_only + 0.2


# ---- settings at the edges


@pytest.mark.parametrize(
    ("settings", "links", "topics"),
    [
        (Simulate(pages=60, dangling=1.0), 0, 12),
        (Simulate(pages=60, links=0), 0, 12),
        (Simulate(pages=10, links=1), None, 2),
        (Simulate(pages=30, topics=1, links=100, redirects=1.0, duplicates=1.0, broken=1.0), 0, 1),
        (Simulate(pages=30, topics=1000, redirects=0, duplicates=0, broken=0, dangling=0, words=5), None, 6),
    ],
    ids=["dangling 1", "links 0", "10 pages", "all dirty", "topics > pages"],
)
def test_settings_at_the_edges_give_a_web(tmp_path: Path, settings: Simulate, links: int | None, topics: int) -> None:
    web = made(tmp_path / "web", settings)
    assert web.facts["topics"] == topics
    assert len(web.pages) == settings.pages
    assert len(web.redirects) == round(settings.redirects * settings.pages)
    assert len(web.html) - len(web.pages) == round(settings.duplicates * settings.pages)
    edges = {(source, web.end(address)) for source, address, _ in web.links()}
    followed = {(source, target) for source, target in edges if target not in (None, source)}
    assert len(followed) == web.facts["links"]
    assert links is None or len(followed) == links
    assert set(web.queries().values()) <= web.pages
