"""The source `generated`: a seeded web of HTML pages as WARC, and queries whose right answers are known.

The model, part by part, in `whitewater.pagerank.simulation`:

- `sites`: each topic has a home page and others on two hosts, ``www`` and ``blog``; the first topics have more pages.
- `words`: texts of English stop words and invented words, Zipf-distributed, each topic with words of its own; some have
  accents or are Greek. `texts`: lengths are log-normal, one page is many times longer than others.
- `linking`: the copying model of Kumar et al. (2000), by which in-degrees follow a power law; 85 % of the links are
  drawn within their topic. `hrefs`: they are written as people write them.
- `dirt`: pages without links, redirects (one of five leads to another, two to each other), second addresses of pages,
  links that lead nowhere, links marked nofollow. `html`: pages in several encodings, declared in several places or in
  none, and malformed ones. A page links to an image.
- `questions`: by topic a query that several pages match alike, one of which has by far the most links, and a query for
  a word that one page has.

Blocks of pages have random numbers of their own, so texts do not depend on how they are written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np

from whitewater.config.pagerank import Simulate
from whitewater.pagerank.simulation.archive import Archive, picture
from whitewater.pagerank.simulation.dirt import (
    DIRT,
    Addresses,
    Anchors,
    choose,
    copy_pages,
    lose_pages,
    move_pages,
    soil_links,
)
from whitewater.pagerank.simulation.hrefs import draw_spellings, write_href
from whitewater.pagerank.simulation.html import ENCODINGS, FAULTS, PICTURE, Link, Page, write_html
from whitewater.pagerank.simulation.linking import Numbers, draw_links, draw_out_degrees
from whitewater.pagerank.simulation.questions import (
    Question,
    ask,
    sentences,
    subject_pages,
    write_questions,
)
from whitewater.pagerank.simulation.sites import Address, Sites, place_pages, topic_names
from whitewater.pagerank.simulation.texts import (
    Features,
    draw_features,
    draw_lengths,
    with_sentences,
    write_paragraphs,
)
from whitewater.pagerank.simulation.words import Vocabulary, invent_vocabulary
from whitewater.step import Output, Run

logger = logging.getLogger(__name__)

_BLOCK = 1000
_HTML = "text/html; charset=utf-8"


@dataclass(frozen=True)
class Web:
    """Everything but the texts."""

    sites: Sites
    vocabulary: Vocabulary
    features: Features
    addresses: Addresses
    anchors: Anchors
    questions: list[Question]
    large: int


def simulate(run: Run[Simulate], *, web: Output, queries: Output) -> None:
    """Write a simulated web as WARC, a response for each address, and queries with their answers: query, url.

    Equal settings give equal bytes.
    """
    made = make_web(run.settings)
    with web.open("wb") as file:
        archive = Archive(file)
        for first in range(0, len(made.sites.titles), _BLOCK):
            _write_block(made, archive, first=first, settings=run.settings)
        _write_rest(made, archive)
    urls = {question.answer: made.sites.addresses[question.answer].url for question in made.questions}
    write_questions(made.questions, urls, queries)
    run.note(**counts(made), records=archive.records, dirt=asdict(DIRT))
    logger.info("simulated %d pages with %d links", len(made.sites.titles), len(made.anchors.source))


def make_web(settings: Simulate) -> Web:
    """Return the web of these settings, without its texts."""
    random = np.random.default_rng((settings.seed, 0))
    topics = topic_names(settings.topics, pages=settings.pages)
    vocabulary = invent_vocabulary(len(topics), random=random)
    sites = place_pages(settings.pages, topics, vocabulary, random=random)
    degrees = draw_out_degrees(settings.pages, dangling=settings.dangling, mean=settings.links, random=random)
    linking = draw_links(sites.topic, degrees, random=random)
    features = draw_features(np.bincount(linking.source, minlength=settings.pages), random=random)
    broken = choose(len(linking), share=settings.broken, random=random)
    nofollow = choose(len(linking), share=DIRT.nofollow, random=random) & ~broken
    followed = ~broken & ~nofollow & ~features.nofollow[linking.source]
    in_degrees = np.bincount(linking.target[followed], minlength=settings.pages)
    questions = ask(sites, in_degrees, vocabulary, random=random)
    answers = np.array([question.answer for question in questions])
    missing, absent = lose_pages(sites, links=int(broken.sum()))
    addresses = Addresses(
        pages=sites.addresses,
        redirects=move_pages(sites, share=settings.redirects, random=random),
        duplicates=copy_pages(sites, share=settings.duplicates, answers=answers, random=random),
        missing=missing,
        absent=absent,
        picture=sites.addresses[linking.source[0] if len(linking) else 0]._replace(path=PICTURE),
    )
    anchors = soil_links(linking, addresses, broken=broken, nofollow=nofollow, random=random)
    return Web(
        _entitled(sites, questions), vocabulary, features, addresses, anchors, questions, _ordinary(sites, questions)
    )


def counts(web: Web) -> dict[str, object]:
    """Return what there is of each kind; ``links`` + ``broken_links`` + ... + ``repeated_links`` are all anchors.

    ``links`` lead to a page, ``dangling_pages`` have none of any kind, and ``mailto`` counts no anchor to an address.
    """
    pages, addresses, anchors = len(web.sites.titles), web.addresses, web.anchors
    linked = int((anchors.target >= 0).sum())
    return {
        "topics": len(web.sites.topics),
        "pages": pages,
        "dangling_pages": pages - len(np.unique(anchors.source)),
        "redirects": len(addresses.redirects),
        "duplicates": len(addresses.duplicates),
        "canonical_duplicates": sum(each.canonical for each in addresses.duplicates),
        "missing": len(addresses.missing),
        "links": linked,
        "broken_links": len(anchors.target) - linked,
        "picture_links": min(1, len(anchors.source)),
        "nofollow_links": int(anchors.nofollow.sum()),
        "queries": len(web.questions),
        "subject_queries": sum(question.by_subject for question in web.questions),
        **web.features.counts(),
    }


def _entitled(sites: Sites, questions: list[Question]) -> Sites:
    """Return the sites with the words of a subject in the titles of the pages that are about it."""
    titles = list(sites.titles)
    for question in questions:
        for page in question.pages if question.by_subject else ():
            titles[page] = [titles[page][0], *question.words]
    return replace(sites, titles=titles)


def _ordinary(sites: Sites, questions: list[Question]) -> int:
    """Return a page that no query is about: no home page, if there is another."""
    asked = {page for question in questions for page in question.pages}
    return next((page for page in range(len(sites.topics), len(sites.titles)) if page not in asked), 0)


def _write_block(web: Web, archive: Archive, *, first: int, settings: Simulate) -> None:
    random = np.random.default_rng((settings.seed, 1 + first // _BLOCK))
    block = range(first, min(first + _BLOCK, len(web.sites.titles)))
    topics = web.sites.topic[block.start : block.stop]
    lengths = draw_lengths(
        len(block),
        mean=settings.words,
        even=_within(block, subject_pages(web.questions)),
        large=_within(block, np.array([web.large])),
        random=random,
    )
    said = sentences(web.questions)
    texts = write_paragraphs(topics, lengths, web.vocabulary, random=random)
    links = _links(web, block, random=random)
    copies = {each.page: each for each in web.addresses.duplicates}
    for page, paragraphs, linked in zip(block, texts, links, strict=True):
        copy = copies.get(page)
        body = write_html(
            _page(web, page, with_sentences(paragraphs, page, said), linked, canonical=bool(copy and copy.canonical))
        )
        content_type = ENCODINGS[web.features.encoding[page]].content_type
        archive.add(web.sites.addresses[page].url, body, content_type=content_type)
        if copy:
            archive.add(copy.address.url, body, content_type=content_type)


def _within(block: range, pages: Numbers) -> Numbers:
    """Return those of the pages that are in the block, counted from its first one."""
    return pages[(pages >= block.start) & (pages < block.stop)] - block.start


def _links(web: Web, block: range, *, random: np.random.Generator) -> Iterator[list[Link]]:
    """Yield the links of each page of a block."""
    places = web.addresses.places
    bounds = np.searchsorted(web.anchors.source, np.arange(block.start, block.stop + 1))
    rows = slice(bounds[0], bounds[-1])
    spellings = draw_spellings(bounds[-1] - bounds[0], random=random)
    columns = (web.anchors.target[rows], web.anchors.destination[rows], web.anchors.nofollow[rows])
    anchors = zip(*(column.tolist() for column in columns), spellings, strict=True)
    for page, count in zip(block, np.diff(bounds).tolist(), strict=True):
        base = _base(web, page)
        links = []
        for _, (target, destination, nofollow, spelling) in zip(range(count), anchors, strict=False):
            text = web.sites.titles[target][0] if target >= 0 else "more"
            links.append(Link(write_href(places[destination], base, spelling), text, nofollow))
        yield [*links, *_further_links(web, page, links)]


def _further_links(web: Web, page: int, links: list[Link]) -> Iterator[Link]:
    features = web.features
    if features.repeated[page]:
        yield links[0]
    if features.self_link[page]:
        yield Link("#top", "top")
    if features.mailto[page]:
        yield Link(f"mailto:editor@{web.sites.addresses[page].host}", "write to us")
    if links and page == web.anchors.source[0]:
        yield Link(web.addresses.picture.url, "picture")


def _base(web: Web, page: int) -> Address:
    address = web.sites.addresses[page]
    return address._replace(path="/archive/") if web.features.base[page] else address


def _page(web: Web, page: int, paragraphs: list[str], links: list[Link], *, canonical: bool) -> Page:
    features = web.features
    return Page(
        title=web.sites.heading(page),
        paragraphs=paragraphs,
        links=links,
        encoding=ENCODINGS[features.encoding[page]],
        base=_base(web, page).url if features.base[page] else "",
        canonical=web.sites.addresses[page].url if canonical else "",
        nofollow=bool(features.nofollow[page]),
        traps=bool(features.traps[page]),
        picture=len(web.anchors.source) > 0 and page == int(web.anchors.source[0]),
        fault=FAULTS[features.fault[page]] if features.fault[page] >= 0 else "none",
    )


def _write_rest(web: Web, archive: Archive) -> None:
    """Write what is no page: redirects, the answers that there is none, and the image."""
    for each in web.addresses.redirects:
        location = each.location.target if each.relative else each.location.url
        archive.add(each.address.url, b"", status=each.status, content_type=_HTML, location=location)
    for address in web.addresses.missing:
        # Such answers have links, which lead from no page.
        body = b'<!DOCTYPE html>\n<title>Not found</title>\n<p>Not found. <a href="/">Home</a>\n'
        archive.add(address.url, body, status=404, content_type=_HTML)
    archive.add(web.addresses.picture.url, picture(), content_type="image/png")
