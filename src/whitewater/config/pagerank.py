"""Configuration of the PageRank application: one section for each step, which gets exactly its section."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from whitewater.config.base import Section, Sourced

Share = Annotated[float, Field(ge=0, le=1)]
Source = Literal["generated", "html", "crawl", "warc", "edges"]


class Simulate(Section):
    """A web of linked HTML pages by topic, with dirt: dangling and duplicate pages, redirects, broken links."""

    pages: int = Field(1000, ge=10, description="HTML pages.")
    topics: int = Field(
        12,
        ge=1,
        le=1000,
        description="Topics; pages of one link to each other more often, and share words. Fewer, where a topic would "
        "have fewer than 5 pages.",
    )
    words: int = Field(120, ge=5, description="Mean number of words of a page.")
    links: float = Field(8.0, ge=0, description="Mean number of links of a page that has any.")
    dangling: Share = Field(0.2, description="Share of the pages without links.")
    redirects: Share = Field(0.03, description="Addresses that redirect, as a share of the pages.")
    duplicates: Share = Field(0.02, description="Addresses with the content of another page, as a share of the pages.")
    broken: Share = Field(0.03, description="Share of the links that lead nowhere.")
    seed: int = Field(1998, ge=0, lt=2**31, description="Seed; equal seeds give equal files.")

    @model_validator(mode="after")
    def _pages_with_links_have_one(self) -> Self:
        if 0 < self.links < 1:
            raise ValueError(f"links is {self.links}, but pages that have any have at least 1: set 0, or 1 or more")
        return self


class Html(Section):
    """A folder of HTML files."""

    folder: str = Field("", description="Path of the folder; its files .html, .htm and .xhtml are the pages.")
    base_url: str = Field("https://example.org/", description="URL that the folder stands for.")


class Crawl(Section):
    """A polite crawler: robots.txt is obeyed, each host is asked for one page at a time, and a crawl can go on."""

    start_urls: tuple[str, ...] = Field((), description="Pages to begin with.")
    allowed_hosts: tuple[str, ...] = Field(
        (), description="Hosts to stay on, with port where it is not the usual one; empty: those of start_urls."
    )
    user_agent: str = Field(
        "whitewater (+https://github.com/whitewater)", min_length=1, description="Name; add how to reach you."
    )
    maximum_pages: int = Field(1000, ge=1, description="Pages to fetch; redirects and errors count.")
    maximum_depth: int = Field(10, ge=0, description="Links to follow from a start URL.")
    maximum_bytes: int = Field(10_000_000, ge=1, description="Bytes of a page; larger ones are not kept.")
    maximum_seconds: float = Field(3600.0, gt=0, description="Seconds that the crawl may take.")
    delay: float = Field(1.0, ge=0, description="Seconds between two requests to a host; robots.txt may ask for more.")
    timeout: float = Field(20.0, gt=0, description="Seconds after which a request without an answer is given up.")
    retries: int = Field(2, ge=0, description="Further tries of a request that failed.")
    concurrency: int = Field(8, ge=1, description="Hosts that are asked at once.")


class Warc(Section):
    """Files of web archives: WARC, or WET (text without links)."""

    files: tuple[str, ...] = Field((), description="Paths, globs or URLs of .warc, .warc.gz, .wet, .wet.gz.")
    anonymous: bool = Field(True, description="Read gs:// and s3:// without credentials.")


class Edges(Section):
    """Files of edges, and of vertices: text (also gzip) with a line an edge, or Parquet."""

    files: tuple[str, ...] = Field(
        (), description="Paths, globs or URLs; a .paths or .paths.gz file lists others, relative to paths_base."
    )
    vertices: tuple[str, ...] = Field(
        (), description="Files of vertices: an id, or an id and a name, a line. Empty: the vertices are the ends."
    )
    paths_base: str = Field("", description="What the lines of .paths files are relative to, such as https://host/.")
    layout: Literal["pairs", "adjacency"] = Field(
        "pairs",
        description="Text: pairs: source, target and perhaps weight a line, as SNAP, LDBC (.e) and Common Crawl; "
        "adjacency: a vertex and all its targets a line, as LDBC's tests.",
    )
    delimiter: Literal["whitespace", "tab", "comma", "space"] = Field(
        "whitespace", description="Text: what separates fields; tab and comma keep spaces within names."
    )
    header: bool = Field(False, description="Text: whether the first line that is no comment names the columns.")
    comment: Literal["head", "none", "#", "%"] = Field(
        "head",
        description="Text: which lines are comments. head: those ahead of the first edge that begin with # or %; none; "
        "'#' or '%' (in quotes): those that begin with it, anywhere. They are counted in edges.json.",
    )
    source_column: str = Field("source", description="Column of sources, in Parquet and text with a header.")
    target_column: str = Field("target", description="Column of targets.")
    weight_column: str = Field("weight", description="Column of weights, where weighted.")
    ids: Literal["integer", "text"] = Field("integer", description="Whether ids are 64-bit integers or text.")
    weighted: bool = Field(False, description="Whether edges have weights: a third field, or the column named above.")
    directed: bool = Field(True, description="Whether an edge leads one way; else it stands for both directions.")
    anonymous: bool = Field(True, description="Read gs:// and s3:// without credentials.")


class Fetch(Sourced):
    """Where the pages or the edges come from."""

    source: Source = Field("generated", description="Which of the sources below is used.")
    html: Html = Html()
    crawl: Crawl = Crawl()
    warc: Warc = Warc()
    edges: Edges = Edges()

    needed: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "html": ("html.folder",), "crawl": ("crawl.start_urls",), "warc": ("warc.files",), "edges": ("edges.files",)
    }  # fmt: skip


class Parse(Section):
    """From pages to text and links."""

    maximum_bytes: int = Field(10_000_000, ge=1, description="Bytes of a page; larger ones are counted and left out.")
    nofollow: Literal["follow", "ignore"] = Field(
        "ignore", description="Links marked rel=nofollow, and those of pages marked nofollow: ignore leaves them out."
    )
    duplicates: Literal["merge", "keep"] = Field(
        "merge",
        description="Pages of the same content at several addresses: merge makes them one, with all links to it.",
    )
    canonical: bool = Field(True, description="Obey link rel=canonical within a host: the page is the one it names.")
    drop_parameters: tuple[str, ...] = Field(
        ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "gclid", "fbclid"),
        description="Query parameters that name no other page and are removed from URLs.",
    )


class EdgeRules(Section):
    """Which links become edges; what is left out is counted by rule."""

    broken: Literal["drop", "keep"] = Field(
        "drop", description="Links to what is no vertex: drop, or keep: their targets become vertices without links."
    )
    self_loops: Literal["drop", "keep"] = Field("drop", description="Links from a page to itself.")


class Renumber(Section):
    """From edges to compressed sparse rows."""

    duplicates: Literal["drop", "sum", "maximum"] = Field(
        "drop",
        description="Edges with the same ends. drop: one counts (only without weights); sum: their weights, each 1 "
        "where there are none, are added; maximum: the largest weight counts.",
    )
    memory_gb: float = Field(
        0.0, ge=0, description="Memory for edges under way; what exceeds it goes to disk. 0: half of what is available."
    )


class Pagerank(Section):
    """PageRank by one of three definitions, each solved in float64."""

    definition: Literal["networkx", "graphalytics", "gap"] = Field(
        "networkx",
        description="networkx: the rank of dangling vertices goes where the personalization says; graphalytics: evenly "
        "to all, a fixed number of iterations; gap: it is lost.",
    )
    damping: float = Field(0.85, gt=0, lt=1, description="Probability of following a link.")
    tolerance: float = Field(
        1e-10, gt=0, lt=1, description="networkx, gap: bound on the L1 distance to the exact ranks at which to stop."
    )
    maximum_iterations: int = Field(500, ge=1, description="networkx, gap: more than these stop the run with an error.")
    iterations: int = Field(10, ge=0, description="graphalytics: iterations, exactly.")
    personalization: str = Field(
        "",
        description="networkx: table (CSV or Parquet) of `vertex` or `name`, and `weight`: where the walk begins anew. "
        "Empty: anywhere.",
    )
    weighted: bool = Field(True, description="networkx: use the weights of edges, where they have any.")
    library: bool = Field(
        True, description="networkx on a GPU: begin with the ranks of cuGraph; they are iterated to the tolerance."
    )

    @model_validator(mode="after")
    def _definition_has_it(self) -> Self:
        if self.personalization and self.definition != "networkx":
            raise ValueError(
                f"personalization is set, but definition '{self.definition}' has none: use definition networkx"
            )
        return self


class Communities(Section):
    """Weakly connected components, and communities by modularity."""

    method: Literal["leiden", "louvain", "none"] = Field("leiden", description="none: components only.")
    resolution: float = Field(1.0, gt=0, description="Higher values give more and smaller communities.")
    seed: int = Field(0, ge=0, lt=2**31, description="Seed of the order in which vertices are moved.")


class Index(Section):
    """From text to an inverted index."""

    stop_words: Literal["none", "english"] = Field("english", description="Words that are not indexed.")
    stemmer: Literal["none", "english", "french", "german", "italian", "portuguese", "spanish"] = Field(
        "none", description="Snowball stemmer; with one, runs and running are the same term."
    )
    title_weight: int = Field(3, ge=1, description="How often a word of the title counts.")
    positions: bool = Field(False, description="Store the positions of each term, which phrases in quotes need.")


class Search(Section):
    """Ranked search: BM25 with PageRank as prior."""

    queries: tuple[str, ...] = Field((), description="Queries that are answered in queries.json.")
    judgments: str = Field(
        "", description="Table (CSV) of query and url: right answers, to measure by. Empty: those of the generated web."
    )
    k1: float = Field(1.2, ge=0, description="BM25: saturation of term frequency.")
    b: float = Field(0.75, ge=0, le=1, description="BM25: normalisation by length.")
    prior: float = Field(1.0, ge=0, description="Most that PageRank adds to the score; 0 switches it off.")
    half: float = Field(
        1.0, gt=0, description="Rank, as a multiple of the mean rank, at which half of the prior is added."
    )
    limit: int = Field(10, ge=1, description="Results of a query.")


class Plot(Section):
    """How the pictures are drawn."""

    formats: tuple[Literal["png", "svg"], ...] = Field(("png", "svg"), min_length=1, description="File formats.")
    top: int = Field(12, ge=2, le=40, description="Top pages in the drawn neighbourhood.")


class PageRank(Section):
    """Which pages matter: PageRank of a web, its communities, and ranked search."""

    simulate: Simulate = Simulate()
    fetch: Fetch = Fetch()
    parse: Parse = Parse()
    edges: EdgeRules = EdgeRules()
    renumber: Renumber = Renumber()
    pagerank: Pagerank = Pagerank()
    communities: Communities = Communities()
    index: Index = Index()
    search: Search = Search()
    plot: Plot = Plot()
