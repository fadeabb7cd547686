"""From pages to documents and links.

The pages are parsed a row group at a time, by any number of workers; each leaves a file of documents and one of links,
and what tells its pages apart: ids and digests. From those of all pages follows which are documents and which are only
other addresses of them, and the files that hold some of the latter are written anew without. So a worker has the pages
of one row group in memory, and files are numbered by the row groups of the input, whoever wrote them.
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
from whitewater.web.aliases import RECORD, Address, Indices, Mask, Resolved, resolve
from whitewater.web.config import Parse
from whitewater.web.pages import FORMAT, PagesFolder, open_pages
from whitewater.web.parse_pages import EXAMPLES, Part, finish_part, parse_group
from whitewater.web.urls import normalize

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Bytes of pages from which on processes, which start in some seconds, pay: parsing holds the lock of the interpreter.
LARGE_BYTES = 200_000_000
# Columns of an example of an address in the log.
_LONGEST_URL = 200


def parse(run: Run[Parse], *, fetched: Path, documents: Output, links: Output, summary: Output) -> None:
    """Write the documents, the aliases and the links of pages.

    Of several addresses of a page one is the document, the others are its aliases: where a redirect leads; the
    canonical address that the page names on its host, if it was fetched; and of pages of equal title, text and targets
    of links, that of the shortest and then the smallest URL. Links of a page to itself do not tell it from others, nor
    do those among pages of the same bytes. Only the links of documents count.

    The folders are those of `whitewater.web.pages` and `whitewater.text.documents`. The ``summary`` is JSON:

    - ``pages``: those ``fetched``, and what they are: documents, redirects, duplicates, canonical, same_address (whose
      URL has the normal form of another's), and what is left out: redirect_loop, redirect_too_long, redirect_invalid,
      status_404 and so on, and the kinds of `page_content.read_page`;
    - ``links``: those ``found``, and what they are: kept, repeated (within a page), nofollow, scheme, invalid,
      too_long, and merged: those of pages that are now aliases;
    - ``refreshes``: how many of the redirects are tags within a page.

    Raises InputError if the pages cannot be read, and IntegrityError if two URLs have the same id, or the counts do not
    add up.
    """
    pages = open_pages(fetched)
    groups = pages.row_groups()
    # Beside what stays, and so on the same disk.
    parts_folder = documents / "parts"
    for folder in (documents, links, parts_folder):
        folder.mkdir(parents=True, exist_ok=True)
    with run.workers(large=sum(FORMAT.stored_bytes(groups)) > LARGE_BYTES) as workers:
        shared = {"pages": pages, "folder": parts_folder, "settings": run.settings}
        tasks = list(enumerate(groups))
        parts = list(workers.map(parse_group, tasks, label="parse", ordered=True, shared=shared))
        resolved = _resolved(parts, run.settings, parts_folder)
        places = {"folder": parts_folder, "documents_to": documents, "links_to": links}
        list(workers.map(finish_part, list(_kept_documents(parts, resolved)), label="merge", shared=places))
    shutil.rmtree(parts_folder)
    counted = _counted(pages, parts, resolved)
    write_aliases(documents, resolved.aliases)
    DOCUMENTS.finish(documents, counted["pages"]["documents"])
    LINKS.finish(links, counted["links"]["kept"])
    write_json(summary, counted)
    run.note(pages=pages.pages, documents=counted["pages"]["documents"], links=counted["links"]["kept"])
    _log(counted, parts)


def _resolved(parts: Sequence[Part], settings: Parse, folder: Path) -> Resolved:
    def addresses(number: int, places: Indices) -> list[Address]:
        urls = FORMAT.read_group(parts[number].group, ["url"])["url"]
        asked = urls.take(parts[number].rows[places]).to_pylist()
        return [Address(url, normalize(url, drop_parameters=settings.drop_parameters) or url) for url in asked]

    def targets(number: int, places: Indices) -> list[Indices]:
        linked = LINKS.table(numbered(folder, "links", number), ["target"])["target"].to_numpy()
        ends = np.cumsum(parts[number].links)[places]
        starts = ends - parts[number].links[places]
        return [linked[start:stop] for start, stop in zip(starts, ends, strict=True)]

    records = np.concatenate([np.empty(0, RECORD), *(part.records for part in parts)])
    return resolve(
        records,
        merge=settings.duplicates == "merge",
        look_up=_look_up(parts, addresses),
        look_up_targets=_look_up(parts, targets),
    )


def _look_up(parts: Sequence[Part], read: Callable[[int, Indices], Sequence[T]]) -> Callable[[Indices], list[T]]:
    """Return a function that reads what belongs to records, by their places among all, a part at a time."""
    starts = np.cumsum([0, *(len(part.records) for part in parts)])

    def look_up(places: Indices) -> list[T]:
        found: dict[int, T] = {}
        part_of = np.searchsorted(starts, places, side="right") - 1
        for number in np.unique(part_of).tolist():
            at = places[part_of == number]
            found |= zip(at.tolist(), read(number, at - starts[number]), strict=True)
        return [found[place] for place in places.tolist()]

    return look_up


def _kept_documents(parts: Sequence[Part], resolved: Resolved) -> Iterator[tuple[int, Mask, Indices]]:
    """Yield of each part its number, which of its documents are kept, and how many links each of them has."""
    start = 0
    for number, part in enumerate(parts):
        kept = resolved.kept[start : start + len(part.records)]
        start += len(part.records)
        yield number, kept[part.documents], part.links[part.documents]


def _counted(pages: PagesFolder, parts: Sequence[Part], resolved: Resolved) -> dict[str, Any]:
    kept = sum(int(links[documents].sum()) for _, documents, links in _kept_documents(parts, resolved))
    merged = sum(int(part.links.sum()) for part in parts) - kept
    what = {**resolved.counts, **sum((part.left_out for part in parts), Counter[str]())}
    if sum(what.values()) != pages.pages:
        raise IntegrityError(f"{pages.pages} pages were fetched, but counted are {what}. Report this as a bug.")
    ends = {"kept": kept, "merged": merged, **sum((part.links_left_out for part in parts), Counter[str]())}
    return {
        "pages": {"fetched": pages.pages, **what},
        "links": {"found": sum(ends.values()), **ends},
        "refreshes": sum(part.refreshes for part in parts),
    }


def _log(counted: dict[str, Any], parts: Sequence[Part]) -> None:
    logger.info("pages: %s; links: %s", _format_counts(counted["pages"]), _format_counts(counted["links"]))
    for kind in sorted({kind for part in parts for kind in part.examples}):
        urls = [url for part in parts for url in part.examples.get(kind, [])][:EXAMPLES]
        shown = ", ".join(shorten(url, columns=_LONGEST_URL) for url in urls)
        logger.info("%s, %d pages are left out, such as %s", kind, counted["pages"][kind], shown)


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


if __name__ == "__main__":
    main(parse)
