"""Parse pages into documents and the links between them, a row group at a time.

For each row group a worker writes a file of documents and a file of links, and returns ids and digests of its pages.
`resolve` then finds the aliases (other addresses of a document), and files with aliases are rewritten without them.
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
from whitewater.io.folder import RowGroup, numbered_path
from whitewater.io.terminal_text import shorten
from whitewater.step import Run
from whitewater.text.documents import DOCUMENTS, LINKS, write_aliases
from whitewater.web.aliases import RECORD, Address, Indices, Mask, Records, Resolution, make_record, resolve
from whitewater.web.config import Parse
from whitewater.web.page_content import HtmlPage, base_of, page_links, read_page
from whitewater.web.pages import FORMAT, REDIRECTS, Page, PagesFolder
from whitewater.web.urls import host, normalize

logger = logging.getLogger(__name__)

# Parsing holds the GIL: from this many bytes on, processes save more time than they take to start.
LARGE_BYTES = 200_000_000
# URLs of skipped pages that are logged for each reason.
EXAMPLES = 3


class ParsedPage(NamedTuple):
    """A document with its links, or a redirect, which has no content; URLs are in normal form."""

    url: str
    target: str
    content: HtmlPage | None = None
    targets: Sequence[str] = ()
    skipped_links: Mapping[str, int] | None = None  # by reason


@dataclass(frozen=True)
class Part:
    """The result of parsing a row group."""

    group: RowGroup
    records: Records  # its documents and redirects, in the order of the pages
    refreshes: int  # redirects by a meta refresh tag
    skipped: Counter[str]  # pages by reason
    examples: dict[str, list[str]]  # the first URLs by reason
    skipped_links: Counter[str]  # by reason


def parse_pages(run: Run[Parse], pages: PagesFolder, *, documents_to: Path, links_to: Path) -> dict[str, Any]:
    """Write the folders of documents (with aliases) and of links; return the number of pages and links by kind."""
    groups = pages.row_groups()
    # On the same disk as the output, so that parts without aliases are moved, not copied.
    parts_folder = documents_to / "parts"
    for folder in (documents_to, links_to, parts_folder):
        folder.mkdir(parents=True, exist_ok=True)
    with run.workers(large=sum(FORMAT.stored_bytes(groups)) > LARGE_BYTES) as workers:
        shared = {"pages": pages, "folder": parts_folder, "settings": run.settings}
        parts = list(workers.map(parse_group, list(enumerate(groups)), label="parse", ordered=True, shared=shared))
        records = np.concatenate([np.empty(0, RECORD), *(part.records for part in parts)])
        starts = np.cumsum([0, *(len(part.records) for part in parts)])
        resolved = _resolve(records, parts, starts, run.settings, parts_folder)
        tasks = []
        for number, part in enumerate(parts):
            parsed = ~part.records["redirect"]
            kept = resolved.is_document[starts[number] : starts[number + 1]][parsed]
            tasks.append((number, kept, part.records["links"][parsed]))
        folders = {"folder": parts_folder, "documents_to": documents_to, "links_to": links_to}
        list(workers.map(finish_part, tasks, label="merge", shared=folders))
    shutil.rmtree(parts_folder)
    counts = _counts(pages, parts, records, resolved)
    write_aliases(documents_to, resolved.aliases)
    DOCUMENTS.finish(documents_to, counts["pages"]["documents"])
    LINKS.finish(links_to, counts["links"]["kept"])
    for what in ("pages", "links"):
        logger.info("%s: %s", what, ", ".join(f"{count} {kind}" for kind, count in counts[what].items() if count))
    for kind in sorted({kind for part in parts for kind in part.examples}):
        urls = [url for part in parts for url in part.examples.get(kind, [])][:EXAMPLES]
        examples = ", ".join(shorten(url, columns=200) for url in urls)
        logger.info("%s: %d pages are left out, such as %s", kind, counts["pages"][kind], examples)
    return counts


def parse_group(task: tuple[int, RowGroup], *, pages: PagesFolder, folder: Path, settings: Parse) -> Part:
    """Parse the pages of a numbered row group, and write its documents and links to ``folder``."""
    number, group = task
    skipped, skipped_links, examples = Counter[str](), Counter[str](), dict[str, list[str]]()
    parsed, records, refreshes = list[ParsedPage](), list[tuple[int | bytes, ...]](), 0
    for row, page in enumerate(pages.read(group)):
        result = parse_page(page, settings)
        if isinstance(result, str):
            skipped[result] += 1
            if skipped[result] <= EXAMPLES:
                examples.setdefault(result, []).append(page.url)
        else:
            parsed.append(result)
            records.append(_record(result, page.body, row=row))
            refreshes += result.content is None and page.status not in REDIRECTS
            skipped_links.update(result.skipped_links or {})
    _write_part(folder, number, parsed)
    return Part(group, np.array(records, RECORD), refreshes, skipped, examples, skipped_links)


def parse_page(page: Page, settings: Parse) -> ParsedPage | str:
    """Return a page as a document or a redirect, or the reason why it is skipped."""
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
    target = canonical if canonical and host(canonical) == host(url) else url
    links = page_links(content, url, nofollow=settings.nofollow == "ignore", drop_parameters=dropped)
    return ParsedPage(url, target, content, *links)


def _record(page: ParsedPage, body: bytes, *, row: int) -> tuple[int | bytes, ...]:
    """Return the `RECORD` of a page.

    The digest of its content leaves out links of the page to itself, which differ between copies. The digest of its
    source includes title and text, because equal bytes in different encodings are different texts.
    """
    content = source = b""
    if page.content and (page.content.text or page.targets):
        texts = page.content.title, page.content.text
        links = sorted(target for target in page.targets if target != page.url)
        content = xxhash.xxh3_128_digest("\0".join([*texts, *links]).encode())
        source = xxhash.xxh3_128_digest(b"\0".join([*map(str.encode, texts), body]))
    return make_record(page.url, page.target, redirect=page.content is None, content=content, source=source, row=row,
                     links=len(page.targets))  # fmt: skip


def _write_part(folder: Path, number: int, parsed: Sequence[ParsedPage]) -> None:
    rows = [(page.url, page.content.title, page.content.text) for page in parsed if page.content is not None]
    urls, titles, texts = map(list, zip(*rows, strict=True)) if rows else ([], [], [])
    ids = vertex_ids(urls)
    DOCUMENTS.write_part(folder, number, pa.table([ids, urls, titles, texts], DOCUMENTS.schema))
    # A redirect has no links.
    targets = list(chain.from_iterable(page.targets for page in parsed))
    sources = np.repeat(ids, [len(page.targets) for page in parsed if page.content is not None])
    target_urls = pa.array(targets, pa.string()).dictionary_encode()
    LINKS.write_part(folder, number, pa.table([sources, vertex_ids(targets), target_urls], LINKS.schema))


def finish_part(task: tuple[int, Mask, Indices], *, folder: Path, documents_to: Path, links_to: Path) -> None:
    """Move the files of a part to the output, without the documents that are not kept and their links.

    The task is the part's number, a mask of the documents to keep, and the number of links of each document.
    """
    number, kept, links = task
    for parts, mask, place in ((DOCUMENTS, kept, documents_to), (LINKS, np.repeat(kept, links), links_to)):
        parts.move_part(numbered_path(folder, parts.what, number), place, number, mask)


def _resolve(records: Records, parts: Sequence[Part], starts: Indices, settings: Parse, folder: Path) -> Resolution:
    def read_addresses(number: int, rows: Indices) -> list[Address]:
        urls = FORMAT.read_group(parts[number].group, ["url"])["url"]
        requested = urls.take(parts[number].records["row"][rows]).to_pylist()
        return [Address(url, normalize(url, drop_parameters=settings.drop_parameters) or url) for url in requested]

    def read_links(number: int, rows: Indices) -> list[Indices]:
        ids = LINKS.table(numbered_path(folder, "links", number), ["target"])["target"].to_numpy()
        links = parts[number].records["links"]
        stops = np.cumsum(links)[rows]
        return [ids[stop - count : stop] for stop, count in zip(stops, links[rows], strict=True)]

    def load(read: Callable[[int, Indices], list[Any]], indices: Indices) -> list[Any]:
        """Load values of records; ``read`` loads those of one part, by its number and the rows in it."""
        values: dict[int, Any] = {}
        numbers = np.searchsorted(starts, indices, side="right") - 1
        for number in np.unique(numbers).tolist():
            in_part = indices[numbers == number]
            values |= zip(in_part.tolist(), read(number, in_part - starts[number]), strict=True)
        return [values[index] for index in indices.tolist()]

    return resolve(records, merge=settings.duplicates == "merge", load_addresses=partial(load, read_addresses),
                   load_links=partial(load, read_links))  # fmt: skip


def _counts(pages: PagesFolder, parts: Sequence[Part], records: Records, resolved: Resolution) -> dict[str, Any]:
    kinds = {**resolved.counts, **sum((part.skipped for part in parts), Counter[str]())}
    if sum(kinds.values()) != pages.pages:
        raise IntegrityError(f"{pages.pages} pages were fetched, but the counts are {kinds}. Report this as a bug.")
    kept, total = int(records["links"][resolved.is_document].sum()), int(records["links"].sum())
    links = {"kept": kept, "merged": total - kept, **sum((part.skipped_links for part in parts), Counter[str]())}
    return {
        "pages": {"fetched": pages.pages, **kinds},
        "links": {"found": sum(links.values()), **links},
        "refreshes": sum(part.refreshes for part in parts),
    }
