"""The pages of a row group: parsed, and written as a part, from which later goes what only repeats other pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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
from whitewater.web.aliases import RECORD, Indices, Mask, Records, record_of
from whitewater.web.config import Parse
from whitewater.web.page_content import HtmlPage, base_of, page_links, read_page
from whitewater.web.pages import REDIRECTS, Page, PagesFolder
from whitewater.web.urls import host, normalize

# Pages of each kind that is left out whose addresses are kept, for the log.
EXAMPLES = 3


class ParsedPage(NamedTuple):
    """A document with its links, or a redirect, which has no content; addresses in normal form."""

    url: str
    goes_to: str
    content: HtmlPage | None = None
    targets: Sequence[str] = ()
    links_left_out: Mapping[str, int] | None = None  # how many links lead nowhere, by kind


@dataclass(frozen=True)
class Part:
    """What became of the pages of a row group."""

    group: RowGroup
    records: Records  # its documents and redirects, in the order of the pages
    refreshes: int  # how many of the redirects are pages that send the browser on at once
    left_out: Counter[str]  # how many pages are neither, by kind
    examples: dict[str, list[str]]  # the first addresses of each kind
    links_left_out: Counter[str]  # how many links lead nowhere, by kind


def parse_group(task: tuple[int, RowGroup], *, pages: PagesFolder, folder: Path, settings: Parse) -> Part:
    """Parse the pages of a row group, which has a number, and write its documents and its links to ``folder``."""
    number, group = task
    left_out, links_left_out, examples = Counter[str](), Counter[str](), dict[str, list[str]]()
    parsed, records, refreshes = list[ParsedPage](), list[tuple[int | bytes, ...]](), 0
    for row, page in enumerate(pages.read(group)):
        result = read(page, settings)
        if isinstance(result, str):
            left_out[result] += 1
            if left_out[result] <= EXAMPLES:
                examples.setdefault(result, []).append(page.url)
        else:
            parsed.append(result)
            records.append(_record(result, page.body, row=row))
            refreshes += result.content is None and page.status not in REDIRECTS
            links_left_out.update(result.links_left_out or {})
    _write(folder, number, parsed)
    return Part(group, np.array(records, RECORD), refreshes, left_out, examples, links_left_out)


def read(page: Page, settings: Parse) -> ParsedPage | str:
    """Return the document or the redirect that a page is, or a word for why it is neither."""
    dropped = settings.drop_parameters
    url = normalize(page.url, drop_parameters=dropped)
    if url is None:
        return "invalid_address"
    if page.status in REDIRECTS and page.location is not None:
        target = normalize(page.location, url, dropped)
        return "redirect_invalid" if target is None else ParsedPage(url, target)
    if page.status != 200:
        return f"status_{page.status}"
    content = read_page(page, maximum_bytes=settings.maximum_bytes)
    if isinstance(content, str):
        return content
    base = base_of(content, url)
    refresh = content.refresh and normalize(content.refresh, base, dropped)
    if refresh and refresh != url:
        return ParsedPage(url, refresh)
    canonical = content.canonical and settings.canonical and normalize(content.canonical, base, dropped)
    goes_to = canonical if canonical and host(canonical) == host(url) else url
    links = page_links(content, url, nofollow=settings.nofollow == "ignore", drop_parameters=dropped)
    return ParsedPage(url, goes_to, content, *links)


def _record(page: ParsedPage, body: bytes, *, row: int) -> tuple[int | bytes, ...]:
    """Return the `RECORD` of a page; see `whitewater.web.aliases`.

    Links of a page to itself differ with its address and do not count as content; the bytes that the server sent count
    as source in an encoding that says the same.
    """
    content = source = b""
    if page.content and (page.content.text or page.targets):
        said = page.content.title, page.content.text
        others = sorted(target for target in page.targets if target != page.url)
        content = xxhash.xxh3_128_digest("\0".join([*said, *others]).encode())
        source = xxhash.xxh3_128_digest(b"\0".join([*map(str.encode, said), body]))
    return record_of(page.url, page.goes_to, redirect=page.content is None, content=content, source=source, row=row,
                     links=len(page.targets))  # fmt: skip


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
    targets = list(chain.from_iterable(page.targets for page, _ in contents))
    sources = np.repeat(ids, [len(page.targets) for page, _ in contents])
    urls = pa.array(targets, pa.string()).dictionary_encode()
    LINKS.write_part(folder, number, pa.table([sources, vertex_ids(targets), urls], LINKS.schema))


def finish_part(task: tuple[int, Mask, Indices], *, folder: Path, documents_to: Path, links_to: Path) -> None:
    """Write the files of a part without the documents that are not kept and their links; none where nothing is left.

    The task is the part's number, which of its documents are kept, and how many rows of links each of them has.
    """
    number, kept, links = task
    for parts, mask, place in ((DOCUMENTS, kept, documents_to), (LINKS, np.repeat(kept, links), links_to)):
        parts.move_part(numbered(folder, parts.what, number), place, number, mask)
