"""The source `generated`: a seeded web of HTML pages as WARC, and queries whose right answers are known.

The model is documented in `whitewater_apps.pagerank.synthetic`: `sites` (topics, addresses and queries), `words`
(texts), `linking` (who links to whom) and `html` (how pages and links are written). Its dirt: pages without links,
redirects (one of five leads to another, two to each other), second addresses of pages, links that lead nowhere, links
marked nofollow, pages in several encodings, declared in several places or in none, and malformed ones.

Blocks of pages have random numbers of their own, so texts do not depend on how they are written.
"""

import csv
import logging
import zlib
from base64 import b32encode
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha1
from http import HTTPStatus
from itertools import chain, pairwise
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import numpy.typing as npt

from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.pagerank.config import Simulate
from whitewater_apps.pagerank.synthetic import html, sites
from whitewater_apps.pagerank.synthetic.linking import draw_links, draw_out_degrees
from whitewater_apps.pagerank.synthetic.words import (
    Numbers,
    Vocabulary,
    draw_lengths,
    invent_vocabulary,
    write_paragraphs,
)

logger = logging.getLogger(__name__)

Flags = npt.NDArray[np.bool_]

BLOCK_PAGES = 1000
DATE = "1998-04-14T00:00:00Z"
HTML = "text/html; charset=utf-8"
# Times the mean that a page is long: one page that no query is about, and those that a query by subject is about.
LARGE, EVEN = 50.0, 1.0
# Shares that are believable sizes, not counts of a data set; of the pages, where nothing else is said.
DIRT = {
    "nofollow": 0.03,  # of the links
    "by_alias": 0.35,  # of the links to a page that has other addresses, those that lead to one of them
    "nofollow_pages": 0.01,
    "self_links": 0.05,
    "repeated_links": 0.05,
    "mailto": 0.1,
    "base_pages": 0.05,
    "trap_pages": 0.05,  # links in a comment and in a script, which are none
    "malformed_pages": 0.08,
}


@dataclass(frozen=True)
class Web:
    """Everything but the texts.

    ``topic``, ``pages`` (addresses), ``titles``, ``lengths`` (see `draw_lengths`) and ``features`` are of each page;
    ``features`` has flags, and ``encoding`` by place in `ENCODINGS`, ``fault`` by place in `FAULTS` or -1. A link by
    ``source`` leads to the page ``target``, -1 where there is none, through the address ``destination``, counted in
    ``places``: pages, redirects, duplicates, missing ones (the archive has their 404), others, and the picture.
    """

    topics: list[str]
    topic: Numbers
    pages: list[sites.Address]
    titles: list[list[str]]
    vocabulary: Vocabulary
    lengths: npt.NDArray[np.float64]
    features: dict[str, npt.NDArray[Any]]
    redirects: list[sites.Redirect]
    duplicates: dict[int, sites.Duplicate]
    missing: list[sites.Address]
    places: list[sites.Address]
    source: Numbers
    target: Numbers
    destination: Numbers
    nofollow: Flags
    questions: list[sites.Question]


def simulate(run: Run[Simulate], *, web: Output, queries: Output) -> None:
    """Write a simulated web as WARC, a response for each address, and queries with their answers: query, url.

    Equal settings give equal bytes.
    """
    made = make_web(run.settings)
    pages = len(made.pages)
    blocks = (range(first, min(first + BLOCK_PAGES, pages)) for first in range(0, pages, BLOCK_PAGES))
    of_pages = (_of_block(made, block, settings=run.settings) for block in blocks)
    with web.open("wb") as file:
        records = sum(bool(file.write(record)) for record in chain(chain.from_iterable(of_pages), _of_the_rest(made)))
    with queries.open("w", encoding="utf-8", newline="") as file:
        rows = [(" ".join(each.words), made.pages[each.answer].url) for each in made.questions]
        csv.writer(file, lineterminator="\n").writerows([("query", "url"), *rows])
    run.note(**counts(made), records=records, dirt=DIRT)
    logger.info("simulated %d pages with %d links", pages, len(made.source))


def make_web(settings: Simulate) -> Web:
    """Return the web of these settings, without its texts."""
    random = np.random.default_rng((settings.seed, 0))
    topics = sites.topic_names(settings.topics, pages=settings.pages)
    vocabulary = invent_vocabulary(len(topics), random=random)
    topic, pages, titles = sites.place_pages(settings.pages, topics, vocabulary, random=random)
    degrees = draw_out_degrees(settings.pages, dangling=settings.dangling, mean=settings.links, random=random)
    source, target = draw_links(topic, degrees, random=random)
    features = draw_features(np.bincount(source, minlength=settings.pages) > 0, random=random)
    broken = sites.choose(len(source), share=settings.broken, random=random)
    nofollow = sites.choose(len(source), share=DIRT["nofollow"], random=random) & ~broken
    followed = ~broken & ~nofollow & ~features["nofollow_pages"][source]
    in_degrees = np.bincount(target[followed], minlength=settings.pages)
    questions = sites.ask(topic, in_degrees, vocabulary, random=random)
    missing, absent = sites.lose_pages(pages[: len(topics)], links=int(broken.sum()))
    redirects = sites.move_pages(pages, share=settings.redirects, random=random)
    answers = [each.answer for each in questions]
    duplicates = sites.copy_pages(pages, share=settings.duplicates, answers=answers, random=random)
    ends = np.array([*(each.page for each in redirects), *duplicates], np.int64)
    destination = _destinations(target, broken, ends, pages=len(pages), lost=len(missing + absent), random=random)
    moved, copied = ([each.address for each in several] for several in (redirects, duplicates.values()))
    pictured = pages[source[0] if len(source) else 0]._replace(path=html.PICTURE_PATH)
    places = [*pages, *moved, *copied, *missing, *absent, pictured]
    lengths = np.zeros(len(pages))
    asked = {page for each in questions for page in each.pages}
    lengths[next((page for page in range(len(topics), len(pages)) if page not in asked), 0)] = LARGE
    for each in questions:
        for page in each.pages if each.by_subject else ():
            lengths[page], titles[page] = EVEN, [titles[page][0], *each.words]
    target = np.where(broken, -1, target)
    return Web(topics, topic, pages, titles, vocabulary, lengths, features, redirects, duplicates, missing, places,
               source, target, destination, nofollow, questions)  # fmt: skip


def _destinations(
    target: Numbers, broken: Flags, ends: Numbers, *, pages: int, lost: int, random: np.random.Generator
) -> Numbers:
    """Give each link an address: that of its page or another one of it, or one where nothing is if it is ``broken``.

    ``ends`` are the pages of the addresses that follow those of the pages, -1 in a loop; ``lost`` more lead nowhere.
    """
    alias = np.full(pages, -1)
    alias[ends[ends >= 0]] = pages + np.flatnonzero(ends >= 0)
    by_alias = (random.random(len(target)) < DIRT["by_alias"]) & (alias[target] >= 0)
    destination = np.where(by_alias, alias[target], target)
    if broken.any():
        nowhere = [*(pages + len(ends) + np.arange(lost)), *(pages + np.flatnonzero(ends < 0))]
        destination[broken] = random.choice(nowhere, int(broken.sum()))
    return destination


def draw_features(linking: Flags, *, random: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    """Choose what is special about each page; only pages with links have more of them."""
    pages = len(linking)

    def chosen(name: str) -> Flags:
        return sites.choose(pages, share=DIRT[name], random=random)

    shares = np.array([each.share for each in html.ENCODINGS])
    base, malformed = chosen("base_pages"), chosen("malformed_pages")
    return {
        "encoding": random.choice(len(html.ENCODINGS), pages, p=shares / shares.sum()),
        "fault": np.where(malformed, random.integers(len(html.FAULTS), size=pages), -1),
        "base_pages": base,
        "trap_pages": chosen("trap_pages"),
        "mailto": chosen("mailto"),
        "nofollow_pages": chosen("nofollow_pages") & linking,
        # On a page with a base URL #top leads elsewhere.
        "self_links": chosen("self_links") & linking & ~base,
        "repeated_links": chosen("repeated_links") & linking,
    }


def counts(web: Web) -> dict[str, object]:
    """Return what there is of each kind; ``links`` + ``broken_links`` + ... + ``repeated_links`` are all anchors.

    ``links`` lead to a page, ``dangling_pages`` have none of any kind, and ``mailto`` counts no anchor to an address.
    """
    features, linked = web.features, int((web.target >= 0).sum())
    encodings = Counter(html.ENCODINGS[place].name for place in features["encoding"])
    return {
        "topics": len(web.topics),
        "pages": len(web.pages),
        "dangling_pages": len(web.pages) - len(np.unique(web.source)),
        "redirects": len(web.redirects),
        "duplicates": len(web.duplicates),
        "canonical_duplicates": sum(each.canonical for each in web.duplicates.values()),
        "missing": len(web.missing),
        "links": linked,
        "broken_links": len(web.target) - linked,
        "picture_links": min(1, len(web.source)),
        "nofollow_links": int(web.nofollow.sum()),
        "queries": len(web.questions),
        "subject_queries": sum(each.by_subject for each in web.questions),
        "encodings": dict(sorted(encodings.items())),
        "malformed_pages": int((features["fault"] >= 0).sum()),
        **{name: int(flags.sum()) for name, flags in features.items() if flags.dtype == bool},
    }


def _of_block(web: Web, block: range, *, settings: Simulate) -> Iterator[bytes]:
    """Yield the records of some pages."""
    random = np.random.default_rng((settings.seed, 1 + block.start // BLOCK_PAGES))
    rows = slice(block.start, block.stop)
    lengths = draw_lengths(web.lengths[rows], mean=settings.words, random=random)
    texts = write_paragraphs(web.topic[rows], lengths, web.vocabulary, random=random)
    said: dict[int, list[str]] = {}
    for question in web.questions:
        for page in question.pages:
            said.setdefault(page, []).append(question.sentence)
    for page, paragraphs, links in zip(block, texts, _links(web, block, random=random), strict=True):
        own = {name: values[page] for name, values in web.features.items()}
        copy = web.duplicates.get(page)
        body = html.write_html(
            f"{' '.join(web.titles[page]).capitalize()} | {web.topics[web.topic[page]].capitalize()}",
            # What a page says because of the queries stands before its last paragraph.
            [*paragraphs[:-1], *said.get(page, ()), paragraphs[-1]],
            links,
            own,
            base=_base(web, page).url if own["base_pages"] else "",
            canonical=web.pages[page].url if copy and copy.canonical else "",
            picture=len(web.source) > 0 and page == web.source[0],
        )
        for address in (web.pages[page], copy.address) if copy else (web.pages[page],):
            yield record_of(address.url, body, content_type=html.ENCODINGS[own["encoding"]].content_type)


def _links(web: Web, block: range, *, random: np.random.Generator) -> Iterator[list[html.Link]]:
    """Yield the links of each page of a block."""
    bounds = np.searchsorted(web.source, np.arange(block.start, block.stop + 1)).tolist()
    spellings = html.draw_spellings(bounds[-1] - bounds[0], random=random)
    for page, (first, stop) in zip(block, pairwise(bounds), strict=True):
        links = []
        for place in range(first, stop):
            target, destination = web.target[place], web.places[web.destination[place]]
            href = html.write_href(destination, _base(web, page), spellings[place - bounds[0]])
            text = web.titles[target][0] if target >= 0 else "more"
            links.append(html.Link(href, text, bool(web.nofollow[place])))
        repeated = links[:1] if web.features["repeated_links"][page] else []
        own = [html.Link("#top", "top")] if web.features["self_links"][page] else []
        editor = html.Link(f"mailto:editor@{web.pages[page].host}", "write to us")
        mail = [editor] if web.features["mailto"][page] else []
        picture = [html.Link(web.places[-1].url, "picture")] if links and page == web.source[0] else []
        yield [*links, *repeated, *own, *mail, *picture]


def _base(web: Web, page: int) -> sites.Address:
    return web.pages[page]._replace(path="/archive/") if web.features["base_pages"][page] else web.pages[page]


def _of_the_rest(web: Web) -> Iterator[bytes]:
    """Yield the records of what is not a page: redirects, the answers that there is none, and the image."""
    for each in web.redirects:
        location = each.location.target if each.relative else each.location.url
        yield record_of(each.address.url, b"", status=each.status, content_type=HTML, location=location)
    for address in web.missing:
        # Such answers have links, which lead from no page.
        body = b'<!DOCTYPE html>\n<title>Not found</title>\n<p>Not found. <a href="/">Home</a>\n'
        yield record_of(address.url, body, status=404, content_type=HTML)
    yield record_of(web.places[-1].url, html.PICTURE, content_type="image/png")


def record_of(url: str, body: bytes, *, status: int = 200, content_type: str, location: str = "") -> bytes:
    """Return the record of a response in WARC 1.0: a member of gzip, which does not differ from run to run."""
    response = {"Content-Type": content_type, "Content-Length": len(body)}
    response |= {"Location": location} if location else {}
    block = _head(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", response) + body
    record = {
        "WARC-Record-ID": f"<urn:uuid:{uuid5(NAMESPACE_URL, url)}>",
        "WARC-Date": DATE,
        "WARC-Type": "response",
        "WARC-Target-URI": url,
        "WARC-Payload-Digest": _digest(body),
        "WARC-Block-Digest": _digest(block),
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": len(block),
    }
    return zlib.compress(_head("WARC/1.0", record) + block + b"\r\n\r\n", 9, wbits=16 + zlib.MAX_WBITS)


def _head(first: str, fields: Mapping[str, object]) -> bytes:
    return "\r\n".join([first, *(f"{name}: {value}" for name, value in fields.items()), "", ""]).encode()


def _digest(data: bytes) -> str:
    return f"sha1:{b32encode(sha1(data, usedforsecurity=False).digest()).decode()}"


if __name__ == "__main__":
    main(simulate)
