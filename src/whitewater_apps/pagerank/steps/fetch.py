"""Step `fetch`: pages from a simulated web, a folder, a crawl or web archives; or files of edges, found or downloaded.

All pages go into one folder in one layout, whatever their source; what is not a page is counted. Files of edges
are read by the step `edges` where they are: here they are found, downloaded if need be, and written down.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from whitewater.config.base import Section
from whitewater.errors import InputError
from whitewater.graphs.config import Edges
from whitewater.io.download import Downloads, Input
from whitewater.io.local_files import steady
from whitewater.io.places import find
from whitewater.io.redaction import redacted, without_secrets
from whitewater.io.store import exclusive, write_json
from whitewater.script import main
from whitewater.step import Inputs, Output, Run
from whitewater.web.config import Crawl, Html
from whitewater.web.html_files import read_html
from whitewater.web.pages import PagesWriter
from whitewater.web.warc import read_warcs
from whitewater_apps.pagerank.config import Fetch, Warc
from whitewater_apps.pagerank.named_files import find_edges, find_warcs

SIMULATED_WEB = "simulated.warc.gz"


@dataclass(frozen=True)
class Found:
    """What a source gave besides pages: counts by kind, files by role for the step `edges`, and what was read."""

    inputs: Sequence[Mapping[str, Any]]
    counts: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)


def fetch(run: Run[Fetch], *, simulated: Inputs, frontier: Path, fetched: Output, inputs: Output) -> None:
    """Write a folder of pages, or one that names files of edges, and the list of all files that were read.

    Downloads, and the state of a crawl in ``frontier``, are kept, so that a run that was broken off goes on where it
    stopped; runs of all names share them. ``simulated`` are ``simulated.warc.gz`` and
    ``simulated_queries.csv``, for the source ``generated``. The folder ``fetched`` is that of
    `whitewater.web.pages`; ``inputs`` is JSON: the source, the number of pages, and ``files`` with path, origin,
    bytes and SHA-256 of each, or of a crawl the start URLs.

    Raises InputError if an input is missing, cannot be read or is cut, a download fails, or there are no pages.
    """
    source = run.settings.source
    run.downloads.mkdir(parents=True, exist_ok=True)
    with exclusive(run.downloads / ".fetch.lock"), PagesWriter(fetched) as writer:
        downloads = Downloads(run.downloads, refresh=run.refresh)
        if source == "generated":
            settings, found = Section(), _simulated(run, writer, simulated=simulated, downloads=downloads)
        else:
            settings = getattr(run.settings, source)
            found = _read(run, settings, writer, frontier=frontier, downloads=downloads)
        if not (writer.pages or found.files):
            raise InputError(f"There are no pages: {_format_counts(found.counts)}. Check pagerank.fetch.{source}.")
        writer.finish(source=source, counts=found.counts, files=found.files,
                      settings=without_secrets(settings.model_dump(mode="json")))  # fmt: skip
    write_json(inputs, {"source": source, "pages": writer.pages, "files": found.inputs})
    run.note(source=source, pages=writer.pages, counts=dict(found.counts), files=len(found.inputs))


def _read(run: Run[Fetch], settings: Section, writer: PagesWriter, *, frontier: Path, downloads: Downloads) -> Found:
    match settings:
        case Html():
            counts, files = read_html(settings, writer)
            return Found(_file_entries(files), counts)
        case Crawl():
            from whitewater.web.crawl.crawler import crawl

            counts = crawl(settings, frontier=frontier, writer=writer)
            return Found([{"url": redacted(url)} for url in settings.start_urls], counts)
        case Warc():
            files, lists = find_warcs(settings, downloads=downloads, threads=run.threads)
            with steady([file.path for file in files]):
                counts = read_warcs([Path(file.path) for file in files], writer, run=run)
            return Found(_file_entries([*files, *lists]), counts)
        case Edges():
            named, lists = find_edges(settings, downloads=downloads, threads=run.threads)
            files = [file for each in named.values() for file in each]
            paths = {role: [file.path for file in each] for role, each in named.items()}
            return Found(_file_entries([*files, *lists]), files=paths)
    raise AssertionError(settings)


def _simulated(run: Run[Fetch], writer: PagesWriter, *, simulated: Inputs, downloads: Downloads) -> Found:
    if SIMULATED_WEB not in simulated:
        raise InputError(f"{SIMULATED_WEB} is missing: the source is generated. Run the step simulate before.")
    places = sorted(map(str, simulated.values()))
    files = find(places, downloads=downloads, threads=run.threads, key="pagerank.simulate")
    counts = read_warcs([simulated[SIMULATED_WEB]], writer, run=run)
    return Found(_file_entries(list(files.values())), counts)


def _file_entries(files: Sequence[Input]) -> list[dict[str, Any]]:
    return [asdict(file) for file in files]


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {number:,}" for kind, number in counts.items() if number) or "nothing was there"


if __name__ == "__main__":
    main(fetch)
