"""Step `simulate`: write a random web of HTML pages as WARC, and queries with known answers.

The modules of `whitewater_apps.pagerank.synthetic` document the model: `sites` (topics, URLs, redirects and queries),
`words` (texts), `linking` (links) and `html` (encodings, spellings of links, malformed pages).
"""

import csv
import logging
import zlib
from base64 import b32encode
from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha1
from http import HTTPStatus
from itertools import pairwise
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import numpy.typing as npt

from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.pagerank.config import Simulate
from whitewater_apps.pagerank.synthetic import html, sites
from whitewater_apps.pagerank.synthetic.linking import draw_links, draw_out_degrees
from whitewater_apps.pagerank.synthetic.words import Numbers, draw_lengths, invent_vocabulary, write_paragraphs

logger = logging.getLogger(__name__)

Flags = npt.NDArray[np.bool_]

BLOCK_PAGES = 1000
# Plausible shares, not measured ones; of the pages unless noted.
DIRT = {
    "nofollow": 0.03,  # of the links
    "by_alias": 0.35,  # of the links to a page with several URLs
    "nofollow_pages": 0.01,
    "self_links": 0.05,
    "repeated_links": 0.05,
    "mailto": 0.1,
    "base_pages": 0.05,
    "trap_pages": 0.05,  # with false links in a comment and a script
    "malformed_pages": 0.08,
}
# A response in WARC 1.0.
RECORD = """\
WARC/1.0
WARC-Record-ID: <urn:uuid:{id}>
WARC-Date: 1998-04-14T00:00:00Z
WARC-Type: response
WARC-Target-URI: {url}
WARC-Payload-Digest: sha1:{body}
WARC-Block-Digest: sha1:{block}
Content-Type: application/http; msgtype=response
Content-Length: {length}

""".replace("\n", "\r\n")


def simulate(run: Run[Simulate], *, web: Output, queries: Output) -> None:
    """Write a random web as WARC, a response per URL, and a table of query and url. Equal settings give equal bytes."""
    simulated = Web(run.settings)
    with web.open("wb") as file:
        records = sum(bool(file.write(record)) for record in simulated.records())
    with queries.open("w", encoding="utf-8", newline="") as file:
        rows = [(" ".join(query.words), simulated.pages[query.answer].url) for query in simulated.questions]
        csv.writer(file, lineterminator="\n").writerows([("query", "url"), *rows])
    run.note(**simulated.counts(), records=records, dirt=DIRT)
    logger.info("simulated %d pages with %d links", len(simulated.pages), len(simulated.source))


class Web:
    """The whole web except its texts, which `records` writes.

    ``topic``, ``pages`` (addresses), ``titles``, ``lengths`` (see `draw_lengths`) and ``features`` have a value per
    page; ``features`` are flags, ``encoding`` (index into `ENCODINGS`) and ``fault`` (index into `FAULTS`, or -1). A
    link leads from page ``source`` to page ``target``, or -1, by the address ``destination``, an index into ``places``:
    pages, redirects, duplicates, missing pages (with a 404), other missing pages, and the picture.
    """

    def __init__(self, settings: Simulate) -> None:
        random = np.random.default_rng((settings.seed, 0))
        self.settings = settings
        self.topics = sites.topic_names(settings.topics, pages=settings.pages)
        self.vocabulary = invent_vocabulary(len(self.topics), random=random)
        self.topic, self.pages, self.titles = sites.place_pages(
            settings.pages, self.topics, self.vocabulary, random=random
        )
        degrees = draw_out_degrees(settings.pages, dangling=settings.dangling, mean=settings.links, random=random)
        self.source, target = draw_links(self.topic, degrees, random=random)
        self.features = draw_features(np.bincount(self.source, minlength=settings.pages) > 0, random=random)
        broken = sites.choose(len(target), share=settings.broken, random=random)
        self.nofollow = sites.choose(len(target), share=DIRT["nofollow"], random=random) & ~broken
        followed = ~broken & ~self.nofollow & ~self.features["nofollow_pages"][self.source]
        in_degrees = np.bincount(target[followed], minlength=settings.pages)
        self.questions = sites.make_questions(self.topic, in_degrees, self.vocabulary, random=random)
        self.missing, absent = sites.lose_pages(self.pages[: len(self.topics)], links=int(broken.sum()))
        self.redirects = sites.move_pages(self.pages, share=settings.redirects, random=random)
        answers = [question.answer for question in self.questions]
        self.duplicates, self.features["canonical_duplicates"] = sites.copy_pages(
            self.pages, share=settings.duplicates, answers=answers, random=random
        )
        pictured = self.pages[self.source[0] if len(target) else 0]._replace(path=html.PICTURE_PATH)
        moved = [redirect.address for redirect in self.redirects]
        self.places = [*self.pages, *moved, *self.duplicates.values(), *self.missing, *absent, pictured]
        ends = np.array([*(redirect.page for redirect in self.redirects), *self.duplicates], np.int64)
        lost = len(self.missing + absent)
        self.destination = _destinations(target, broken, ends, pages=settings.pages, lost=lost, random=random)
        self.target = np.where(broken, -1, target)
        self.sentences = defaultdict[int, list[str]](list)
        self.lengths = np.zeros(settings.pages)
        for question in self.questions:
            for page in question.pages:
                self.sentences[page].append(question.sentence)
                if len(question.words) > 1:
                    self.lengths[page], self.titles[page] = 1.0, [self.titles[page][0], *question.words]
        without_query = (page for page in range(len(self.topics), settings.pages) if page not in self.sentences)
        self.lengths[next(without_query, 0)] = 50.0  # one large page

    def counts(self) -> dict[str, int]:
        """Return the number of each kind. ``links`` lead to a page; ``dangling_pages`` have no links of any kind."""
        linked = int((self.target >= 0).sum())
        return {
            "topics": len(self.topics),
            "pages": len(self.pages),
            "dangling_pages": len(self.pages) - len(np.unique(self.source)),
            "redirects": len(self.redirects),
            "duplicates": len(self.duplicates),
            "missing": len(self.missing),
            "links": linked,
            "broken_links": len(self.target) - linked,
            "picture_links": min(1, len(self.source)),
            "nofollow_links": int(self.nofollow.sum()),
            "queries": len(self.questions),
            "subject_queries": sum(len(question.words) > 1 for question in self.questions),
            **{name: int(flags.sum()) for name, flags in self.features.items() if flags.dtype == bool},
        }

    def records(self) -> Iterator[bytes]:
        """Yield the records of pages, redirects, missing pages and the picture."""
        pages = len(self.pages)
        for first in range(0, pages, BLOCK_PAGES):
            yield from self._page_records(range(first, min(first + BLOCK_PAGES, pages)))
        for redirect in self.redirects:
            yield make_record(redirect.address.url, b"", status=redirect.status, location=redirect.location)
        for address in self.missing:
            # The link is not counted, since the response is not a page.
            body = b'<!DOCTYPE html>\n<title>Not found</title>\n<p>Not found. <a href="/">Home</a>\n'
            yield make_record(address.url, body, status=404)
        yield make_record(self.places[-1].url, html.PICTURE, content_type="image/png")

    def _page_records(self, block: range) -> Iterator[bytes]:
        # Each block has its own random numbers, so texts do not depend on the order of writing.
        random = np.random.default_rng((self.settings.seed, 1 + block.start // BLOCK_PAGES))
        lengths = draw_lengths(self.lengths[block], mean=self.settings.words, random=random)
        texts = write_paragraphs(self.topic[block], lengths, self.vocabulary, random=random)
        for page, paragraphs, links in zip(block, texts, self._links(block, random=random), strict=True):
            address, features = self.pages[page], {name: values[page] for name, values in self.features.items()}
            body = html.write_html(
                f"{' '.join(self.titles[page]).capitalize()} | {self.topics[self.topic[page]].capitalize()}",
                # The sentences about queries stand before the last paragraph.
                [*paragraphs[:-1], *self.sentences.get(page, ()), paragraphs[-1]],
                links,
                features,
                base=self._base(page).url if features["base_pages"] else "",
                canonical=address.url if features["canonical_duplicates"] else "",
                picture=len(self.source) > 0 and page == self.source[0],
            )
            for url in dict.fromkeys((address.url, self.duplicates.get(page, address).url)):
                yield make_record(url, body, content_type=f"text/html{html.ENCODINGS[features['encoding']].header}")

    def _links(self, block: range, *, random: np.random.Generator) -> Iterator[list[html.Link]]:
        bounds = np.searchsorted(self.source, np.arange(block.start, block.stop + 1)).tolist()
        spellings = html.draw_spellings(bounds[-1] - bounds[0], random=random)
        for page, (first, stop) in zip(block, pairwise(bounds), strict=True):
            links = []
            for place in range(first, stop):
                target, destination = self.target[place], self.places[self.destination[place]]
                href = html.write_href(destination, self._base(page), spellings[place - bounds[0]])
                text = self.titles[target][0] if target >= 0 else "more"
                links.append(html.Link(href, text, bool(self.nofollow[place])))
            repeated = links[:1] if self.features["repeated_links"][page] else []
            own = [html.Link("#top", "top")] if self.features["self_links"][page] else []
            editor = html.Link(f"mailto:editor@{self.pages[page].host}", "write to us")
            mail = [editor] if self.features["mailto"][page] else []
            picture = [html.Link(self.places[-1].url, "picture")] if links and page == self.source[0] else []
            yield [*links, *repeated, *own, *mail, *picture]

    def _base(self, page: int) -> sites.Address:
        address = self.pages[page]
        return address._replace(path="/archive/") if self.features["base_pages"][page] else address


def _destinations(
    target: Numbers, broken: Flags, ends: Numbers, *, pages: int, lost: int, random: np.random.Generator
) -> Numbers:
    """Return the address of each link: that of its page, an alias of it, or a missing one if the link is ``broken``.

    ``ends`` are the pages of the aliases, -1 in a loop; aliases follow the pages, then come ``lost`` missing addresses.
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
    """Draw the features of each page; only pages in ``linking`` get more links or a nofollow."""
    pages = len(linking)

    def draw(*names: str) -> dict[str, npt.NDArray[Any]]:
        return {name: sites.choose(pages, share=DIRT[name], random=random) for name in names}

    shares = np.array([encoding.share for encoding in html.ENCODINGS])
    features = draw("base_pages", "malformed_pages")
    features["encoding"] = random.choice(len(html.ENCODINGS), pages, p=shares / shares.sum())
    features["fault"] = np.where(features["malformed_pages"], random.integers(len(html.FAULTS), size=pages), -1)
    features |= draw("trap_pages", "mailto", "nofollow_pages", "self_links", "repeated_links")
    for name in ("nofollow_pages", "self_links", "repeated_links"):
        features[name] &= linking
    # With a base URL, #top leads to another page.
    features["self_links"] &= ~features["base_pages"]
    return features


def make_record(
    url: str, body: bytes, *, status: int = 200, content_type: str = "text/html; charset=utf-8", location: str = ""
) -> bytes:
    """Return the record of a response as a gzip member, with the same bytes in every run."""
    moved = f"Location: {location}\r\n" if location else ""
    block = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{moved}\r\n"
    ).encode() + body
    sha1s = [b32encode(sha1(data, usedforsecurity=False).digest()).decode() for data in (body, block)]
    head = RECORD.format(id=uuid5(NAMESPACE_URL, url), url=url, length=len(block), body=sha1s[0], block=sha1s[1])
    return zlib.compress(head.encode() + block + b"\r\n\r\n", 9, wbits=16 + zlib.MAX_WBITS)


if __name__ == "__main__":
    main(simulate)
