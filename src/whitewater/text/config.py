"""Settings of the inverted index and of search."""

from typing import Literal

from pydantic import Field

from whitewater.config.base import Section


class Index(Section):
    """From text to an inverted index."""

    stop_words: Literal["none", "english"] = Field("english", description="Words that are not indexed.")
    stemmer: Literal["none", "english", "french", "german", "italian", "portuguese", "spanish"] = Field(
        "none", description="Snowball stemmer; with one, runs and running are the same term."
    )
    title_weight: int = Field(3, ge=1, description="How many times a word of the title counts.")
    positions: bool = Field(False, description="Store the positions of each term, which phrases in quotes need.")


class Search(Section):
    """Ranked search: BM25 with PageRank as prior."""

    queries: tuple[str, ...] = Field((), description="Queries to answer in queries.json.")
    judgments: str = Field(
        "",
        description="Table (CSV) of query and url: relevant pages to evaluate by. Empty: those of the generated web.",
    )
    k1: float = Field(1.2, ge=0, description="BM25: saturation of term frequency.")
    b: float = Field(0.75, ge=0, le=1, description="BM25: normalization by length.")
    prior: float = Field(1.0, ge=0, description="Maximum that PageRank adds to the score; 0 switches it off.")
    half: float = Field(1.0, gt=0, description="Rank, as a multiple of the mean rank, that adds half of the prior.")
    limit: int = Field(10, ge=1, description="Maximum number of results of a query.")
