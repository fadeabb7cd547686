"""The pages of a row group: parsed, and written as a part, from which later goes what only repeats other pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from whitewater.graphs.vertex_ids import vertex_ids
from whitewater.io.folder import RowGroup, numbered
from whitewater.text.documents import DOCUMENTS, LINKS
from whitewater.web.aliases import Indices, Mask, Records, records_of
from whitewater.web.config import Parse
from whitewater.web.page_content import HtmlPage, PageLinks, base_of, page_links, read_page
from whitewater.web.pages import REDIRECTS, Page, PagesFolder
from whitewater.web.urls import host, normalize

# Pages of each kind that is left out whose addresses are kept, for the log.
EXAMPLES = 3
NOTHING = bytes(16)


class ParsedPage(NamedTuple):
    """A document, which has a content, or a redirect, which has none; addresses in normal form."""

    url: str
    goes_to: str
    content: HtmlPage | None
    links: PageLinks

    @classmethod
    def redirect(cls, url: str, target: str) -> ParsedPage:
        """Return a redirect."""
        return cls(url, target, None, PageLinks([], {}))


@dataclass(frozen=True)
class Part:
    """What became of the pages of a row group."""

    group: RowGroup
    records: Records  # its documents and redirects, in the order of the pages
    rows: Indices  # int64 (records,): their rows in the row group
    links: Indices  # int64 (records,): how many rows they have in the file of links
    refreshes: int  # how many of the redirects are pages that send the browser on at once
    left_out: Counter[str]  # how many pages are neither, by kind
    examples: dict[str, list[str]]  # the first addresses of each kind
    links_left_out: Counter[str]  # how many links lead nowhere, by kind

    @property
    def documents(self) -> Mask:
        """Which records are in the file of documents."""
        return ~self.records["redirect"]


def parse_group(task: tuple[int, RowGroup], *, pages: PagesFolder, folder: Path, settings: Parse) -> Part:
    """Parse the pages of a row group, which has a number, and write its documents and its links to ``folder``."""
    number, group = task
    left_out, links_left_out, examples = Counter[str](), Counter[str](), dict[str, list[str]]()
    parsed, rows, digests = list[ParsedPage](), list[int](), list[tuple[bytes, bytes]]()
    refreshes = 0
    for row, page in enumerate(pages.read(group)):
        result = read(page, settings)
        if isinstance(result, str):
            left_out[result] += 1
            if left_out[result] <= EXAMPLES:
                examples.setdefault(result, []).append(page.url)
        else:
            links_left_out.update(result.links.left_out)
            parsed.append(result)
            rows.append(row)
            digests.append(_digests(result, page.body))
            refreshes += result.content is None and page.status not in REDIRECTS
    records = records_of(
        [(page.url, page.goes_to) for page in parsed],
        redirect=[page.content is None for page in parsed],
        content=[content for content, _ in digests],
        source=[source for _, source in digests],
    )
    links_of_each = np.fromiter((len(page.links.targets) for page in parsed), np.int64, len(parsed))
    _write(folder, number, parsed)
    return Part(group, records, np.array(rows, np.int64), links_of_each, refreshes, left_out, examples, links_left_out)


def read(page: Page, settings: Parse) -> ParsedPage | str:
    """Return the document or the redirect that a page is, or a word for why it is neither."""
    url = normalize(page.url, drop_parameters=settings.drop_parameters)
    if url is None:
        return "invalid_address"
    if page.status in REDIRECTS and page.location is not None:
        target = normalize(page.location, url, settings.drop_parameters)
        return "redirect_invalid" if target is None else ParsedPage.redirect(url, target)
    if page.status != 200:
        return f"status_{page.status}"
    content = read_page(page, maximum_bytes=settings.maximum_bytes)
    return content if isinstance(content, str) else _document(url, content, settings)


def _document(url: str, content: HtmlPage, settings: Parse) -> ParsedPage:
    base = base_of(content, url)
    refresh = content.refresh and normalize(content.refresh, base, settings.drop_parameters)
    if refresh and refresh != url:
        return ParsedPage.redirect(url, refresh)
    ignored, dropped = settings.nofollow == "ignore", settings.drop_parameters
    links = page_links(content, url, nofollow=ignored, drop_parameters=dropped)
    canonical = content.canonical and settings.canonical and normalize(content.canonical, base, dropped)
    return ParsedPage(url, canonical if canonical and host(canonical) == host(url) else url, content, links)


def _digests(parsed: ParsedPage, body: bytes) -> tuple[bytes, bytes]:
    """Return digests of the content, and of the bytes that the server sent.

    Links of a page to itself differ with its address and do not count; the bytes count in an encoding that says the
    same.
    """
    page, targets = parsed.content, parsed.links.targets
    if page is None or not (page.text or targets):
        return NOTHING, NOTHING
    others = sorted(target for target in targets if target != parsed.url)
    content = "\0".join([page.title, page.text, *others]).encode()
    source = b"\0".join([page.title.encode(), page.text.encode(), body])
    return xxhash.xxh3_128_digest(content), xxhash.xxh3_128_digest(source)


def _write(folder: Path, number: int, parsed: Sequence[ParsedPage]) -> None:
    contents = [(page, page.content) for page in parsed if page.content is not None]
    ids = vertex_ids([page.url for page, _ in contents])
    columns = {
        "vertex": ids,
        "url": [page.url for page, _ in contents],
        "title": [content.title for _, content in contents],
        "text": [content.text for _, content in contents],
    }
    DOCUMENTS.write_part(folder, number, pa.table(columns, DOCUMENTS.schema))
    targets = list(chain.from_iterable(page.links.targets for page, _ in contents))
    sources = np.repeat(ids, [len(page.links.targets) for page, _ in contents])
    urls = pa.array(targets, pa.string()).dictionary_encode()
    LINKS.write_part(folder, number, pa.table([sources, vertex_ids(targets), urls], LINKS.schema))


def finish_part(task: tuple[int, Mask, Indices], *, folder: Path, documents_to: Path, links_to: Path) -> None:
    """Write the files of a part without the documents that are not kept and their links; none where nothing is left.

    The task is the part's number, which of its documents are kept, and how many rows of links each of them has.
    """
    number, kept, links = task
    for parts, mask, place in ((DOCUMENTS, kept, documents_to), (LINKS, np.repeat(kept, links), links_to)):
        if not mask.any():
            continue
        path = numbered(folder, parts.what, number)
        if not mask.all():
            parts.write_part(place, number, parts.table(path).filter(pa.array(mask)))
        # If this runs again, it is there.
        elif path.exists():
            path.replace(numbered(place, parts.what, number))
