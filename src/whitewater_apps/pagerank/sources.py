"""The sources of pages and edges: how the step `fetch` reads each, and what ``whitewater doctor`` says of it.

A new source is a section and a name in `whitewater_apps.pagerank.config.Fetch`, and here a `Source` of that name. What
its section has under ``folder`` or ``files`` is watched by the workflow.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from whitewater.errors import InputError, redact
from whitewater.io.download import Downloads, Input
from whitewater.io.places import find, refuse_changes, try_files
from whitewater.io.text_files import open_text
from whitewater.step import Run
from whitewater.web.html_files import html_files, read_html
from whitewater.web.pages import PagesWriter
from whitewater.web.warc import read_warcs
from whitewater_apps.pagerank.config import Fetch, PageRank

logger = logging.getLogger(__name__)
SIMULATED_WEB = "simulated.warc.gz"
LISTS = (".paths", ".paths.gz")


@dataclass(frozen=True)
class Request:
    """What a source may use: the settings, a place for the pages, and where files and a crawl under way are kept."""

    run: Run[Fetch]
    writer: PagesWriter
    downloads: Downloads
    simulated: Mapping[str, Path]
    frontier: Path


@dataclass(frozen=True)
class Found:
    """What a source gave besides pages: counts by kind, files by role for the step `edges`, and what was read."""

    inputs: Sequence[Mapping[str, Any]]
    counts: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """How a source is read, and what there is of it; `check` raises InputError where it is not there."""

    read: Callable[[Request], Found]
    check: Callable[[Fetch, Downloads], str]


def check(settings: PageRank, downloads: Downloads) -> str:
    """Say which files there are. The lists that name others are not followed, and no site is asked for pages."""
    return SOURCES[settings.fetch.source].check(settings.fetch, downloads)


def _read_generated(request: Request) -> Found:
    simulated, run = request.simulated, request.run
    if SIMULATED_WEB not in simulated:
        raise InputError(f"{SIMULATED_WEB} is missing: the source is generated. Run the step simulate before.")
    places = sorted(map(str, simulated.values()))
    files = find(places, downloads=request.downloads, threads=run.threads, key="pagerank.simulate")
    counts = read_warcs([simulated[SIMULATED_WEB]], request.writer, run=run)
    return Found(_entries(files.values()), counts)


def _read_html(request: Request) -> Found:
    counts, files = read_html(request.run.settings.html, request.writer)
    return Found(_entries(files), counts)


def _check_html(settings: Fetch, _: Downloads) -> str:
    folder = Path(settings.html.folder).expanduser()
    if next(html_files(folder, Counter()), None) is None:
        raise InputError(f"{folder} has no HTML files. Check pagerank.fetch.html.folder.")
    return f"a folder of HTML files, {folder}"


def _read_crawl(request: Request) -> Found:
    from whitewater.web.crawl.crawler import crawl

    settings = request.run.settings.crawl
    if not re.search(r"mailto:|https?://", settings.user_agent):
        logger.warning(
            "pagerank.fetch.crawl.user_agent is %r: add how sites can reach you, such as (+mailto:you@example.org)",
            settings.user_agent,
        )
    counts = crawl(settings, frontier=request.frontier, writer=request.writer)
    return Found([{"url": redact(url)} for url in settings.start_urls], counts)


def _check_crawl(settings: Fetch, _: Downloads) -> str:
    return f"addresses to start from, which only the crawl asks for: {len(settings.crawl.start_urls)}"


def _read_warc(request: Request) -> Found:
    files, lists = _find(request, request.run.settings.warc.files, example="*.warc.gz")
    with refuse_changes([file.path for file in files]):
        counts = read_warcs([Path(file.path) for file in files], request.writer, run=request.run)
    return Found(_entries([*files, *lists]), counts)


def _read_edges(request: Request) -> Found:
    settings = request.run.settings.edges
    edges, edge_lists = _find(request, settings.files, example="*.txt.gz", base=settings.paths_base)
    vertices, vertex_lists = _find(request, settings.vertices, example="*.txt.gz", base=settings.paths_base)
    paths = {"edges": [file.path for file in edges], "vertices": [file.path for file in vertices]}
    return Found(_entries([*edges, *vertices, *edge_lists, *vertex_lists]), files=paths)


def _check_files(settings: Fetch, downloads: Downloads) -> str:
    section = settings.warc if settings.source == "warc" else settings.edges
    names = (*section.files, *getattr(section, "vertices", ()))
    downloads = replace(downloads, anonymous=section.anonymous)
    places = try_files(names, downloads=downloads, key=f"pagerank.fetch.{settings.source}")
    return f"files of the source {settings.source}: {len(places)}"


# By the names of the settings.
SOURCES = {
    "generated": Source(_read_generated, lambda *_: ""),
    "html": Source(_read_html, _check_html),
    "crawl": Source(_read_crawl, _check_crawl),
    "warc": Source(_read_warc, _check_files),
    "edges": Source(_read_edges, _check_files),
}


def _entries(files: Iterable[Input]) -> list[dict[str, Any]]:
    return list(map(asdict, files))


def _find(request: Request, names: Sequence[str], *, example: str, base: str = "") -> tuple[list[Input], list[Input]]:
    """Return the files that paths, globs and URLs stand for, each once, by name, and the lists that name some.

    The lines of lists are relative to ``base``, or where that is empty to the place of the list.

    Raises InputError if there is no such file, a download fails, or a list cannot be read or is empty.
    """
    run, source = request.run, request.run.settings.source
    anonymous = (run.settings.warc if source == "warc" else run.settings.edges).anonymous
    key = f"pagerank.fetch.{source}"
    get = partial(find, downloads=replace(request.downloads, anonymous=anonymous), threads=run.threads, key=key,
                  example=example)  # fmt: skip
    files = get(names)
    lists = {place: files.pop(place) for place in sorted(files) if urlsplit(place).path.endswith(LISTS)}
    listed = [
        _resolved(base or place, line, is_folder=bool(base))
        for place, listing in lists.items()
        for line in _lines(listing, key=key)
    ]
    if listed:
        files = get([*files, *listed])
    return [files[place] for place in sorted(files)], list(lists.values())


def _lines(listing: Input, *, key: str) -> list[str]:
    name = f"{listing.path} ({listing.origin})"
    try:
        with open_text(listing.path, name) as stream:
            lines = [line.strip() for line in stream.read().decode().splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not a list of files: {error}. Check {key}.") from error
    if not lines:
        raise InputError(f"{name} names no files. Check {key}.")
    return lines


def _resolved(base: str, line: str, *, is_folder: bool) -> str:
    """Return the place of a line: itself if it is absolute, else in the folder ``base`` or beside the file ``base``."""
    if "://" in line:
        return line
    scheme, is_url, rest = base.partition("://")
    if not is_url:
        return str((Path(base).expanduser() if is_folder else Path(base).parent) / line)
    if is_folder:
        return f"{scheme}://{rest.rstrip('/')}/{line.lstrip('/')}"
    # urljoin knows no schemes of buckets.
    return scheme + urljoin(f"http://{rest.partition('?')[0]}", line).removeprefix("http")
