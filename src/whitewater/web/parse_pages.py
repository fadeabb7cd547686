"""From pages to documents and the links between them, a row group at a time.

For each row group a worker writes a file of documents and one of links, and returns ids and digests that identify its
pages. From those of all pages it is found which are documents and which are aliases (other addresses of a document),
and files with aliases are written again without them. So a worker holds the pages of one row group in memory, and files
have the numbers of the row groups of the input, whoever wrote them.
"""

import logging
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from whitewater.errors import IntegrityError
from whitewater.graphs.vertex_ids import vertex_ids
from whitewater.io.folder import RowGroup, numbered
from whitewater.io.terminal_text import shorten
from whitewater.step import Run
from whitewater.text.documents import DOCUMENTS, LINKS, write_aliases
from whitewater.web.aliases import RECORD, Address, Indices, Mask, Records, Resolved, record_of, resolve
from whitewater.web.config import Parse
from whitewater.web.page_content import HtmlPage, base_of, page_links, read_page
from whitewater.web.pages import FORMAT, REDIRECTS, Page, PagesFolder
from whitewater.web.urls import host, normalize

logger = logging.getLogger(__name__)

# From this many bytes of pages on, processes are worth the seconds that they take to start: parsing holds the GIL.
LARGE_BYTES = 200_000_000
# Pages of each kind that is left out whose addresses are logged, and the columns of a terminal for an address.
EXAMPLES, URL_COLUMNS = 3, 200


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


def parse_pages(run: Run[Parse], pages: PagesFolder, *, documents_to: Path, links_to: Path) -> dict[str, Any]:
    """Write the folders of documents, with their aliases, and of links; return how many pages and links are what."""
    groups = pages.row_groups()
    # In the output, and so on the same disk: parts without aliases are moved there, not copied.
    parts_folder = documents_to / "parts"
    for folder in (documents_to, links_to, parts_folder):
        folder.mkdir(parents=True, exist_ok=True)
    with run.workers(large=sum(FORMAT.stored_bytes(groups)) > LARGE_BYTES) as workers:
        shared = {"pages": pages, "folder": parts_folder, "settings": run.settings}
        tasks = list(enumerate(groups))
        parts = list(workers.map(parse_group, tasks, label="parse", ordered=True, shared=shared))
        records = np.concatenate([np.empty(0, RECORD), *(part.records for part in parts)])
        starts = np.cumsum([0, *(len(part.records) for part in parts)])
        resolved = _resolve(records, parts, starts, run.settings, parts_folder)
        finished = []
        for number, part in enumerate(parts):
            documents = ~part.records["redirect"]
            kept = resolved.kept[starts[number] : starts[number + 1]][documents]
            finished.append((number, kept, part.records["links"][documents]))
        folders = {"folder": parts_folder, "documents_to": documents_to, "links_to": links_to}
        list(workers.map(finish_part, finished, label="merge", shared=folders))
    shutil.rmtree(parts_folder)
    counts = _counts(pages, parts, records, resolved)
    write_aliases(documents_to, resolved.aliases)
    DOCUMENTS.finish(documents_to, counts["pages"]["documents"])
    LINKS.finish(links_to, counts["links"]["kept"])
    for what in ("pages", "links"):
        logger.info("%s: %s", what, ", ".join(f"{count} {kind}" for kind, count in counts[what].items() if count))
    for kind in sorted({kind for part in parts for kind in part.examples}):
        urls = [url for part in parts for url in part.examples.get(kind, [])][:EXAMPLES]
        examples = ", ".join(shorten(url, columns=URL_COLUMNS) for url in urls)
        logger.info("%s, %d pages are left out, such as %s", kind, counts["pages"][kind], examples)
    return counts


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


def _resolve(records: Records, parts: Sequence[Part], starts: Indices, settings: Parse, folder: Path) -> Resolved:
    def addresses(number: int, places: Indices) -> list[Address]:
        urls = FORMAT.read_group(parts[number].group, ["url"])["url"]
        fetched = urls.take(parts[number].records["row"][places]).to_pylist()
        return [Address(url, normalize(url, drop_parameters=settings.drop_parameters) or url) for url in fetched]

    def targets(number: int, places: Indices) -> list[Indices]:
        ids = LINKS.table(numbered(folder, "links", number), ["target"])["target"].to_numpy()
        links = parts[number].records["links"]
        stops = np.cumsum(links)[places]
        return [ids[stop - count : stop] for stop, count in zip(stops, links[places], strict=True)]

    def look_up(read: Callable[[int, Indices], list[Any]], places: Indices) -> list[Any]:
        """Look up records by their places; ``read`` does so in the part of a number, by their places there."""
        found: dict[int, Any] = {}
        numbers = np.searchsorted(starts, places, side="right") - 1
        for number in np.unique(numbers).tolist():
            in_part = places[numbers == number]
            found |= zip(in_part.tolist(), read(number, in_part - starts[number]), strict=True)
        return [found[place] for place in places.tolist()]

    of_records, of_links = partial(look_up, addresses), partial(look_up, targets)
    return resolve(records, merge=settings.duplicates == "merge", look_up=of_records, look_up_targets=of_links)


def _counts(pages: PagesFolder, parts: Sequence[Part], records: Records, resolved: Resolved) -> dict[str, Any]:
    kinds = {**resolved.counts, **sum((part.left_out for part in parts), Counter[str]())}
    if sum(kinds.values()) != pages.pages:
        raise IntegrityError(f"{pages.pages} pages were fetched, but the counts are {kinds}. Report this as a bug.")
    kept, found = int(records["links"][resolved.kept].sum()), int(records["links"].sum())
    links = {"kept": kept, "merged": found - kept, **sum((part.links_left_out for part in parts), Counter[str]())}
    return {
        "pages": {"fetched": pages.pages, **kinds},
        "links": {"found": sum(links.values()), **links},
        "refreshes": sum(part.refreshes for part in parts),
    }
