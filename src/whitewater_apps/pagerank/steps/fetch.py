"""Step `fetch`: get pages from a simulated web, a folder, a crawl or web archives; or find files of edges.

Pages of all sources are written to one folder in one layout. Files of edges are downloaded if necessary and listed; the
step `edges` reads them where they are.
"""

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from whitewater.errors import InputError, redact, without_secrets
from whitewater.io.download import Downloads, Input
from whitewater.io.places import check_readable, find, refuse_changes
from whitewater.io.store import write_json
from whitewater.io.text_files import open_text
from whitewater.script import main
from whitewater.step import Inputs, Output, Run
from whitewater.web.html_files import html_files, read_html
from whitewater.web.pages import PagesWriter
from whitewater.web.warc import read_warcs
from whitewater_apps.pagerank.config import Fetch

logger = logging.getLogger(__name__)
SIMULATED_WEB = "simulated.warc.gz"
LISTS = (".paths", ".paths.gz")
# The files that were read, counts by kind, and files by role for the step `edges`.
Result = tuple[Sequence[Input], Mapping[str, int], Mapping[str, Sequence[str]]]


def fetch(run: Run[Fetch], *, simulated: Inputs, frontier: Path, fetched: Output, inputs: Output) -> None:
    """Write a folder of pages (see `whitewater.web.pages`) or of file names, and the list of all files that were read.

    Downloads and the state of a crawl in ``frontier`` are kept, so that a stopped run resumes; all runs share them.
    ``simulated`` are ``simulated.warc.gz`` and ``simulated_queries.csv``, for the source ``generated``. ``inputs`` is
    JSON: the source, the number of pages, and ``files`` with path, origin, bytes and SHA-256, or the start URLs of a
    crawl.

    Raises InputError if an input is missing, unreadable or cut off, a download fails, or there are no pages.
    """
    source, start_urls = run.settings.source, run.settings.crawl.start_urls
    writer = PagesWriter(fetched)
    read, counts, roles = _read_source(run, writer, simulated=simulated, frontier=frontier)
    if not (writer.pages or roles):
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in counts.items() if number)
        raise InputError(f"There are no pages: {kinds or 'nothing was there'}. Check pagerank.fetch.{source}.")
    # The settings of the source `generated` are in the section of the step simulate.
    settings = run.settings.model_dump(mode="json").get(source, {})
    writer.finish(source=source, counts=counts, files=roles, settings=without_secrets(settings))
    files = [{"url": redact(url)} for url in start_urls] if source == "crawl" else list(map(asdict, read))
    write_json(inputs, {"source": source, "pages": writer.pages, "files": files})
    run.note(source=source, pages=writer.pages, counts=dict(counts), files=len(files))


def check(settings: Any, downloads: Downloads) -> str:
    """Describe the files of the source for ``whitewater doctor``, without reading lists or crawling.

    Raises InputError if there are no files.
    """
    fetch: Fetch = settings.fetch  # a type of all settings would make the step depend on all of them
    match fetch.source:
        case "generated":
            return ""
        case "html":
            folder = Path(fetch.html.folder).expanduser()
            next(html_files(folder, Counter()))  # raises if there are none
            return f"a folder of HTML files, {folder}"
        case "crawl":
            return f"start URLs, which only the crawl requests: {len(fetch.crawl.start_urls)}"
        case "warc" | "edges":
            section = fetch.warc if fetch.source == "warc" else fetch.edges
            names = (*section.files, *getattr(section, "vertices", ()))
            downloads = replace(downloads, anonymous=section.anonymous)
            places = check_readable(names, downloads=downloads, key=f"pagerank.fetch.{fetch.source}")
            return f"files of the source {fetch.source}: {len(places)}"


def _read_source(run: Run[Fetch], writer: PagesWriter, *, simulated: Mapping[str, Path], frontier: Path) -> Result:
    settings = run.settings
    match settings.source:
        case "generated":
            if SIMULATED_WEB not in simulated:
                raise InputError(f"{SIMULATED_WEB} is missing: the source is generated. Run the step simulate before.")
            files, _ = _find_files(run, sorted(map(str, simulated.values())), key="pagerank.simulate")
            return files, read_warcs([simulated[SIMULATED_WEB]], writer, run=run), {}
        case "html":
            counts, pages = read_html(settings.html, writer)
            return pages, counts, {}
        case "crawl":
            from whitewater.web.crawl.crawler import crawl

            if not re.search(r"mailto:|https?://", settings.crawl.user_agent):
                logger.warning("pagerank.fetch.crawl.user_agent is %r: add how sites can reach you, such as "
                               "(+mailto:you@example.org)", settings.crawl.user_agent)  # fmt: skip
            return [], crawl(settings.crawl, frontier=frontier, writer=writer), {}
        case "warc":
            archives, lists = _find_files(
                run, settings.warc.files, anonymous=settings.warc.anonymous, example="*.warc.gz"
            )
            with refuse_changes([file.path for file in archives]):
                counts = read_warcs([Path(file.path) for file in archives], writer, run=run)
            return [*archives, *lists], counts, {}
        case "edges":
            section = settings.edges
            search = partial(_find_files, run, anonymous=section.anonymous, example="*.txt.gz", base=section.paths_base)
            (edges, edge_lists), (vertices, vertex_lists) = search(section.files), search(section.vertices)
            roles = {"edges": [file.path for file in edges], "vertices": [file.path for file in vertices]}
            return [*edges, *vertices, *edge_lists, *vertex_lists], {}, roles


def _find_files(
    run: Run[Fetch], names: Sequence[str], *, key: str = "", anonymous: bool = True, example: str = "*", base: str = ""
) -> tuple[list[Input], list[Input]]:
    """Return the unique files that paths, globs and URLs name, sorted by name, and the lists of files among them.

    The lines of a list are relative to the folder ``base``, or to the list if that is empty. Raises InputError if a
    file is missing, a download fails, or a list cannot be read or is empty.
    """
    key = key or f"pagerank.fetch.{run.settings.source}"
    downloads = Downloads(run.downloads, refresh=run.refresh, anonymous=anonymous)
    get = partial(find, downloads=downloads, threads=run.threads, key=key, example=example)
    files = get(names)
    lists = {place: files.pop(place) for place in sorted(files) if urlsplit(place).path.endswith(LISTS)}
    listed = [
        _resolve_line(base or place, line, is_folder=bool(base))
        for place, listing in lists.items()
        for line in _read_list(listing, key=key)
    ]
    if listed:
        files = get([*files, *listed])
    return [files[place] for place in sorted(files)], list(lists.values())


def _read_list(listing: Input, *, key: str) -> list[str]:
    name = f"{listing.path} ({listing.origin})"
    try:
        with open_text(listing.path, name) as stream:
            lines = [line.strip() for line in stream.read().decode().splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not a list of files: {error}. Check {key}.") from error
    if not lines:
        raise InputError(f"{name} names no files. Check {key}.")
    return lines


def _resolve_line(base: str, line: str, *, is_folder: bool) -> str:
    """Return a line that is a URL as it is, else the path in the folder ``base`` or beside the file ``base``."""
    if "://" in line:
        return line
    scheme, is_url, rest = base.partition("://")
    if not is_url:
        return str((Path(base).expanduser() if is_folder else Path(base).parent) / line)
    if is_folder:
        return f"{scheme}://{rest.rstrip('/')}/{line.lstrip('/')}"
    # urljoin does not support the schemes of buckets.
    return scheme + urljoin(f"http://{rest.partition('?')[0]}", line).removeprefix("http")


if __name__ == "__main__":
    main(fetch)
