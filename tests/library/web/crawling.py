"""A crawl of sites on loopback: how the tests run one, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from whitewater.web.config import Crawl
from whitewater.web.crawl.crawler import crawl
from whitewater.web.pages import Page, PagesWriter, open_pages

# For servers that are silent; long enough for the others where the machine is busy.
TIMEOUT = 0.3


@dataclass(frozen=True)
class Crawled:
    pages: list[Page]
    counts: dict[str, int]

    def paths(self) -> list[str]:
        return ["/" + page.url.split("/", 3)[3] for page in self.pages]

    def page(self, path: str) -> Page:
        return next(page for page in self.pages if page.url.endswith(path))


Run = Callable[..., Crawled]


def crawled(settings: Crawl, *, frontier: Path, fetched: Path) -> Crawled:
    writer = PagesWriter(fetched)
    counts = crawl(settings, frontier=frontier, writer=writer)
    writer.finish(source="crawl", counts=counts)
    folder = open_pages(fetched)
    return Crawled([page for group in folder.row_groups() for page in folder.read(group)], counts)


def shortest(times: list[float]) -> float:
    """Return the shortest time between two moments."""
    return min(later - earlier for earlier, later in pairwise(times))
