"""Step `parse`: from pages to documents and links.

Workers parse the pages one row group at a time. For each row group they write a file of documents and one of links, and
return ids and digests that identify its pages. From those of all pages this step finds which pages are documents and
which are aliases (other addresses of a document), and files with aliases are rewritten without them. So a worker holds
the pages of one row group in memory, and files have the numbers of the row groups of the input, whoever wrote them.
"""

import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from whitewater.errors import IntegrityError
from whitewater.io.folder import numbered
from whitewater.io.store import write_json
from whitewater.io.terminal_text import shorten
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.text.documents import DOCUMENTS, LINKS, write_aliases
from whitewater.web.aliases import RECORD, Address, Indices, Mask, Records, Resolved, resolve
from whitewater.web.config import Parse
from whitewater.web.pages import FORMAT, PagesFolder, open_pages
from whitewater.web.parse_pages import EXAMPLES, Part, finish_part, parse_group
from whitewater.web.urls import normalize

logger = logging.getLogger(__name__)

T = TypeVar("T")

# From this many bytes of pages on, processes are worth the seconds that they take to start: parsing holds the GIL.
LARGE_BYTES = 200_000_000
# Width of an example URL in the log, in columns of a terminal.
_URL_COLUMNS = 200


def parse(run: Run[Parse], *, fetched: Path, documents: Output, links: Output, summary: Output) -> None:
    """Write the documents, the aliases and the links of pages.

    If a page has several addresses, one is the document and the others are its aliases. The document is the target of a
    redirect; the canonical address on the same host that the page names, if it was fetched; and of pages with equal
    title, text and link targets, the one with the shortest URL, then the first in order. That comparison ignores links
    of a page to itself, and links among pages of the same bytes. Only the links of documents are kept.

    The folders are those of `whitewater.web.pages` and `whitewater.text.documents`. The ``summary`` is JSON:

    - ``pages``: how many were ``fetched``, and of each kind: documents, redirects, duplicates, canonical, same_address
      (a URL with the normal form of another), and those left out: redirect_loop, redirect_too_long, redirect_invalid,
      status_404 and so on, and the kinds of `page_content.read_page`;
    - ``links``: how many were ``found``, and of each kind: kept, repeated (within a page), nofollow, scheme, invalid,
      too_long, and merged (links of pages that are now aliases);
    - ``refreshes``: how many of the redirects are tags within a page.

    Raises InputError if the pages cannot be read, and IntegrityError if two URLs have the same id, or the counts do not
    add up.
    """
    pages = open_pages(fetched)
    groups = pages.row_groups()
    # In the output, and so on the same disk: parts without aliases are moved there, not copied.
    parts_folder = documents / "parts"
    for folder in (documents, links, parts_folder):
        folder.mkdir(parents=True, exist_ok=True)
    with run.workers(large=sum(FORMAT.stored_bytes(groups)) > LARGE_BYTES) as workers:
        shared = {"pages": pages, "folder": parts_folder, "settings": run.settings}
        tasks = list(enumerate(groups))
        parts = list(workers.map(parse_group, tasks, label="parse", ordered=True, shared=shared))
        records = np.concatenate([np.empty(0, RECORD), *(part.records for part in parts)])
        resolved = _resolve(records, parts, run.settings, parts_folder)
        folders = {"folder": parts_folder, "documents_to": documents, "links_to": links}
        list(workers.map(finish_part, list(_kept_documents(parts, resolved)), label="merge", shared=folders))
    shutil.rmtree(parts_folder)
    links_of = records["links"]
    kept = int(links_of[resolved.kept].sum())
    counts = _counts(pages, parts, resolved, kept=kept, merged=int(links_of.sum()) - kept)
    write_aliases(documents, resolved.aliases)
    DOCUMENTS.finish(documents, counts["pages"]["documents"])
    LINKS.finish(links, counts["links"]["kept"])
    write_json(summary, counts)
    run.note(pages=pages.pages, documents=counts["pages"]["documents"], links=counts["links"]["kept"])
    _log(counts, parts)


def _resolve(records: Records, parts: Sequence[Part], settings: Parse, folder: Path) -> Resolved:
    def addresses(number: int, places: Indices) -> list[Address]:
        urls = FORMAT.read_group(parts[number].group, ["url"])["url"]
        fetched = urls.take(parts[number].records["row"][places]).to_pylist()
        return [Address(url, normalize(url, drop_parameters=settings.drop_parameters) or url) for url in fetched]

    def targets(number: int, places: Indices) -> list[Indices]:
        ids = LINKS.table(numbered(folder, "links", number), ["target"])["target"].to_numpy()
        links = parts[number].records["links"]
        stops = np.cumsum(links)[places]
        starts = stops - links[places]
        return [ids[start:stop] for start, stop in zip(starts, stops, strict=True)]

    return resolve(
        records,
        merge=settings.duplicates == "merge",
        look_up=_look_up(parts, addresses),
        look_up_targets=_look_up(parts, targets),
    )


def _look_up(parts: Sequence[Part], read: Callable[[int, Indices], Sequence[T]]) -> Callable[[Indices], list[T]]:
    """Return a function that looks up records by their places in all parts; ``read`` does so in one part."""
    starts = np.cumsum([0, *(len(part.records) for part in parts)])

    def look_up(places: Indices) -> list[T]:
        by_place: dict[int, T] = {}
        numbers = np.searchsorted(starts, places, side="right") - 1
        for number in np.unique(numbers).tolist():
            in_part = places[numbers == number]
            by_place |= zip(in_part.tolist(), read(number, in_part - starts[number]), strict=True)
        return [by_place[place] for place in places.tolist()]

    return look_up


def _kept_documents(parts: Sequence[Part], resolved: Resolved) -> Iterator[tuple[int, Mask, Indices]]:
    """Yield for each part its number, which of its documents are kept, and how many links each document has."""
    start = 0
    for number, part in enumerate(parts):
        documents = ~part.records["redirect"]
        kept = resolved.kept[start : start + len(documents)]
        start += len(documents)
        yield number, kept[documents], part.records["links"][documents]


def _counts(pages: PagesFolder, parts: Sequence[Part], resolved: Resolved, **links_of: int) -> dict[str, Any]:
    kinds = {**resolved.counts, **sum((part.left_out for part in parts), Counter[str]())}
    if sum(kinds.values()) != pages.pages:
        raise IntegrityError(f"{pages.pages} pages were fetched, but the counts are {kinds}. Report this as a bug.")
    links = {**links_of, **sum((part.links_left_out for part in parts), Counter[str]())}
    return {
        "pages": {"fetched": pages.pages, **kinds},
        "links": {"found": sum(links.values()), **links},
        "refreshes": sum(part.refreshes for part in parts),
    }


def _log(counts: dict[str, Any], parts: Sequence[Part]) -> None:
    logger.info("pages: %s; links: %s", _format_counts(counts["pages"]), _format_counts(counts["links"]))
    for kind in sorted({kind for part in parts for kind in part.examples}):
        urls = [url for part in parts for url in part.examples.get(kind, [])][:EXAMPLES]
        examples = ", ".join(shorten(url, columns=_URL_COLUMNS) for url in urls)
        logger.info("%s, %d pages are left out, such as %s", kind, counts["pages"][kind], examples)


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


if __name__ == "__main__":
    main(parse)
