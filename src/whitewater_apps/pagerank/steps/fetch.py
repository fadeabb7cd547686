"""Step `fetch`: pages from a simulated web, a folder, a crawl or web archives; or files of edges, found or downloaded.

All pages go into one folder in one layout, whatever their source; what is not a page is counted. Files of edges
are read by the step `edges` where they are: here they are found, downloaded if need be, and written down.
"""

from collections.abc import Mapping
from pathlib import Path

from whitewater.config.base import Section
from whitewater.errors import InputError, without_secrets
from whitewater.io.download import Downloads
from whitewater.io.store import exclusive, write_json
from whitewater.script import main
from whitewater.step import Inputs, Output, Run
from whitewater.web.pages import PagesWriter
from whitewater_apps.pagerank.config import Fetch
from whitewater_apps.pagerank.sources import SOURCES, Request


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
        found = SOURCES[source].read(Request(run, writer, downloads, simulated, frontier))
        # A simulation has a section of its own, of the step simulate.
        settings: Section = getattr(run.settings, source, Section())
        if not (writer.pages or found.files):
            raise InputError(f"There are no pages: {_format_counts(found.counts)}. Check pagerank.fetch.{source}.")
        writer.finish(source=source, counts=found.counts, files=found.files,
                      settings=without_secrets(settings.model_dump(mode="json")))  # fmt: skip
    write_json(inputs, {"source": source, "pages": writer.pages, "files": found.inputs})
    run.note(source=source, pages=writer.pages, counts=dict(found.counts), files=len(found.inputs))


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {number:,}" for kind, number in counts.items() if number) or "nothing was there"


if __name__ == "__main__":
    main(fetch)
