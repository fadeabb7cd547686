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
    """Write a simulated web as WARC, a response for each address, and queries with their answers: query, url.

    Equal settings give equal bytes.
    """
    made = Web(run.settings)
    with web.open("wb") as file:
        records = sum(bool(file.write(record)) for record in made.records())
    with queries.open("w", encoding="utf-8", newline="") as file:
        rows = [(" ".join(each.words), made.pages[each.answer].url) for each in made.questions]
        csv.writer(file, lineterminator="\n").writerows([("query", "url"), *rows])
    run.note(**made.counts(), records=records, dirt=DIRT)
    logger.info("simulated %d pages with %d links", len(made.pages), len(made.source))


class Web:
    """Everything but the texts, which are made as records are.

    ``topic``, ``pages`` (addresses), ``titles``, ``lengths`` (see `draw_lengths`) and ``features`` are of each page;
    ``features`` has flags, and ``encoding`` by place in `ENCODINGS`, ``fault`` by place in `FAULTS` or -1. A link by
    ``source`` leads to the page ``target``, -1 where there is none, through the address ``destination``, counted in
    ``places``: pages, redirects, duplicates, missing ones (the archive has their 404), others, and the picture.
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
        self.questions = sites.ask(self.topic, in_degrees, self.vocabulary, random=random)
        self.missing, absent = sites.lose_pages(self.pages[: len(self.topics)], links=int(broken.sum()))
        self.redirects = sites.move_pages(self.pages, share=settings.redirects, random=random)
        answers = [each.answer for each in self.questions]
        self.duplicates, self.features["canonical_duplicates"] = sites.copy_pages(
            self.pages, share=settings.duplicates, answers=answers, random=random
        )
        pictured = self.pages[self.source[0] if len(target) else 0]._replace(path=html.PICTURE_PATH)
        moved = [each.address for each in self.redirects]
        self.places = [*self.pages, *moved, *self.duplicates.values(), *self.missing, *absent, pictured]
        ends = np.array([*(each.page for each in self.redirects), *self.duplicates], np.int64)
        lost = len(self.missing + absent)
        self.destination = _destinations(target, broken, ends, pages=settings.pages, lost=lost, random=random)
        self.target = np.where(broken, -1, target)
        self.said = defaultdict[int, list[str]](list)
        self.lengths = np.zeros(settings.pages)
        for each in self.questions:
            for page in each.pages:
                self.said[page].append(each.sentence)
                if len(each.words) > 1:
                    self.lengths[page], self.titles[page] = EVEN, [self.titles[page][0], *each.words]
        unasked = (page for page in range(len(self.topics), settings.pages) if page not in self.said)
        self.lengths[next(unasked, 0)] = LARGE

    def counts(self) -> dict[str, int]:
        """Return what there is of each kind; ``links`` + ``broken_links`` + ... + ``repeated_links`` are all anchors.

        ``links`` lead to a page, ``dangling_pages`` have none of any kind, and ``mailto`` counts no anchor to an
        address.
        """
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
            "subject_queries": sum(len(each.words) > 1 for each in self.questions),
            **{name: int(flags.sum()) for name, flags in self.features.items() if flags.dtype == bool},
        }

    def records(self) -> Iterator[bytes]:
        """Yield the records of all addresses: of pages, redirects, the answers that there is none, and the image."""
        pages = len(self.pages)
        for first in range(0, pages, BLOCK_PAGES):
            yield from self._of_block(range(first, min(first + BLOCK_PAGES, pages)))
        for each in self.redirects:
            yield record_of(each.address.url, b"", status=each.status, location=each.location)
        for address in self.missing:
            # Such answers have links, which lead from no page.
            body = b'<!DOCTYPE html>\n<title>Not found</title>\n<p>Not found. <a href="/">Home</a>\n'
            yield record_of(address.url, body, status=404)
        yield record_of(self.places[-1].url, html.PICTURE, content_type="image/png")

    def _of_block(self, block: range) -> Iterator[bytes]:
        """Yield the records of some pages."""
        random = np.random.default_rng((self.settings.seed, 1 + block.start // BLOCK_PAGES))
        lengths = draw_lengths(self.lengths[block], mean=self.settings.words, random=random)
        texts = write_paragraphs(self.topic[block], lengths, self.vocabulary, random=random)
        for page, paragraphs, links in zip(block, texts, self._links(block, random=random), strict=True):
            address, features = self.pages[page], {name: values[page] for name, values in self.features.items()}
            body = html.write_html(
                f"{' '.join(self.titles[page]).capitalize()} | {self.topics[self.topic[page]].capitalize()}",
                # What a page says because of the queries stands before its last paragraph.
                [*paragraphs[:-1], *self.said.get(page, ()), paragraphs[-1]],
                links,
                features,
                base=self._base(page).url if features["base_pages"] else "",
                canonical=address.url if features["canonical_duplicates"] else "",
                picture=len(self.source) > 0 and page == self.source[0],
            )
            for url in dict.fromkeys((address.url, self.duplicates.get(page, address).url)):
                yield record_of(url, body, content_type=f"text/html{html.ENCODINGS[features['encoding']].header}")

    def _links(self, block: range, *, random: np.random.Generator) -> Iterator[list[html.Link]]:
        """Yield the links of each page of a block."""
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

    def chosen(*names: str) -> dict[str, npt.NDArray[Any]]:
        return {name: sites.choose(pages, share=DIRT[name], random=random) for name in names}

    shares = np.array([each.share for each in html.ENCODINGS])
    features = chosen("base_pages", "malformed_pages")
    features["encoding"] = random.choice(len(html.ENCODINGS), pages, p=shares / shares.sum())
    features["fault"] = np.where(features["malformed_pages"], random.integers(len(html.FAULTS), size=pages), -1)
    features |= chosen("trap_pages", "mailto", "nofollow_pages", "self_links", "repeated_links")
    for name in ("nofollow_pages", "self_links", "repeated_links"):
        features[name] &= linking
    # On a page with a base URL #top leads elsewhere.
    features["self_links"] &= ~features["base_pages"]
    return features


def record_of(
    url: str, body: bytes, *, status: int = 200, content_type: str = "text/html; charset=utf-8", location: str = ""
) -> bytes:
    """Return the record of a response: a member of gzip, which does not differ from run to run."""
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
