"""What there is of the source of pages or edges, for ``whitewater doctor``."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from whitewater.errors import InputError
from whitewater.io.download import Downloads
from whitewater.io.places import try_files
from whitewater.web.html_files import html_files
from whitewater_apps.pagerank.config import PageRank


def check(settings: PageRank, downloads: Downloads) -> str:
    """Say which files there are. The lists that name others are not followed, and no site is asked for pages."""
    fetch = settings.fetch
    match fetch.source:
        case "generated":
            return ""
        case "crawl":
            return f"addresses to start from, which only the crawl asks for: {len(fetch.crawl.start_urls)}"
        case "html":
            folder = Path(fetch.html.folder).expanduser()
            if next(html_files(folder, Counter()), None) is None:
                raise InputError(f"{folder} has no HTML files. Check pagerank.fetch.html.folder.")
            return f"a folder of HTML files, {folder}"
        case "warc":
            names, anonymous = fetch.warc.files, fetch.warc.anonymous
        case "edges":
            names, anonymous = (*fetch.edges.files, *fetch.edges.vertices), fetch.edges.anonymous
    found = try_files(names, downloads=replace(downloads, anonymous=anonymous), key=f"pagerank.fetch.{fetch.source}")
    return f"files of the source {fetch.source}: {len(found)}"
