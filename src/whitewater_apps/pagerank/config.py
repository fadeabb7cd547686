"""Configuration of the PageRank application: one section per step."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from whitewater.config.base import Section, Sourced
from whitewater.graphs.config import EdgeFiles, EdgeRules, Pagerank
from whitewater.text.config import Index, Search
from whitewater.web.config import Crawl, Html, Parse

Share = Annotated[float, Field(ge=0, le=1)]
Source = Literal["generated", "html", "crawl", "warc", "edges"]


class Simulate(Section):
    """A simulated web of pages by topic, with dangling pages, duplicates, redirects and broken links."""

    pages: int = Field(1000, ge=10, description="HTML pages.")
    topics: int = Field(
        12,
        ge=1,
        le=1000,
        description="Topics. Pages of a topic share words and link to each other more often. A topic has at least 5 "
        "pages, so a small web has fewer topics.",
    )
    words: int = Field(120, ge=5, description="Mean number of words per page.")
    links: float = Field(8.0, ge=0, description="Mean number of links per page, without dangling pages.")
    dangling: Share = Field(0.2, description="Share of pages without links.")
    redirects: Share = Field(0.03, description="URLs that redirect, as a share of the pages.")
    duplicates: Share = Field(0.02, description="Second URLs of pages, as a share of the pages.")
    broken: Share = Field(0.03, description="Share of links that lead nowhere.")
    seed: int = Field(1998, ge=0, lt=2**31, description="Random seed; equal seeds give equal files.")

    @model_validator(mode="after")
    def _check_links(self) -> Self:
        if 0 < self.links < 1:
            raise ValueError(f"links is {self.links}, but a page with links has at least 1: set 0, or 1 or more")
        return self


class Warc(Section):
    """Web archives: WARC, or WET (text without links)."""

    files: tuple[str, ...] = Field((), description="Paths, globs or URLs of .warc, .warc.gz, .wet, .wet.gz.")
    anonymous: bool = Field(True, description="Read gs:// and s3:// without credentials.")


class Fetch(Sourced):
    """Where the pages or the edges come from."""

    source: Source = Field("generated", description="Which of the sources below to use.")
    html: Html = Html()
    crawl: Crawl = Crawl()
    warc: Warc = Warc()
    edges: EdgeFiles = EdgeFiles()

    needed: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "html": ("html.folder",), "crawl": ("crawl.start_urls",), "warc": ("warc.files",), "edges": ("edges.files",)
    }  # fmt: skip


class Renumber(Section):
    """How edges become a graph in compressed sparse rows."""

    duplicates: Literal["drop", "sum", "maximum"] = Field(
        "drop",
        description="Edges with the same source and target. drop: keep one (only without weights); sum: add their "
        "weights, or count them; maximum: keep the largest weight.",
    )
    memory_gb: float = Field(
        0.0,
        ge=0,
        description="Memory for buffered edges with engine local; further edges go to disk. 0: half of what is free.",
    )


class Communities(Section):
    """Weakly connected components, and communities by modularity."""

    method: Literal["leiden", "louvain", "none"] = Field("leiden", description="none: components only.")
    resolution: float = Field(1.0, gt=0, description="Higher values give more and smaller communities.")
    seed: int = Field(0, ge=0, lt=2**31, description="Random seed of the order in which vertices move.")


class Plot(Section):
    """How the figures are drawn."""

    formats: tuple[Literal["png", "svg"], ...] = Field(("png", "svg"), min_length=1, description="File formats.")
    top: int = Field(12, ge=2, le=40, description="Number of top pages in the figure of their neighborhood.")


class PageRank(Section):
    """Which pages matter: PageRank of a web, its communities, and ranked search."""

    simulate: Simulate = Simulate()
    fetch: Fetch = Fetch()
    parse: Parse = Parse()
    edges: EdgeRules = EdgeRules()
    renumber: Renumber = Renumber()
    rank: Pagerank = Pagerank()
    communities: Communities = Communities()
    index: Index = Index()
    search: Search = Search()
    plot: Plot = Plot()
