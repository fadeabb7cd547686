"""Settings of files of edges, and of PageRank."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from whitewater.config.base import Section
from whitewater.errors import ConfigError
from whitewater.io.terminal_text import shorten


class EdgeFiles(Section):
    """Files of edges and vertices: text with one edge per line, plain or gzip, or Parquet."""

    files: tuple[str, ...] = Field(
        (), description="Paths, globs or URLs; a .paths or .paths.gz file lists more files, relative to paths_base."
    )
    vertices: tuple[str, ...] = Field(
        (), description="Files of vertices: an id, or an id and a name, per line. Empty: the ends of the edges."
    )
    paths_base: str = Field("", description="What the lines of .paths files are relative to, such as https://host/.")
    layout: Literal["pairs", "adjacency"] = Field(
        "pairs",
        description="Text: pairs: source, target and perhaps weight per line, as in SNAP, LDBC (.e) and Common Crawl; "
        "adjacency: a vertex and all its targets per line, as in LDBC's tests.",
    )
    delimiter: Literal["whitespace", "tab", "comma", "space"] = Field(
        "whitespace", description="Text: what separates fields; tab and comma keep spaces within names."
    )
    header: bool = Field(False, description="Text: whether the first line that is not a comment names the columns.")
    comment: Literal["head", "none", "#", "%"] = Field(
        "head",
        description="Text: which lines are comments, counted in edges.json. head: those before the first edge that "
        "begin with # or %; none; '#' or '%' (in quotes): all lines that begin with it.",
    )
    source_column: str = Field("source", description="Column of sources in Parquet, or in text with a header.")
    target_column: str = Field("target", description="Column of targets.")
    weight_column: str = Field("weight", description="Column of weights, if weighted.")
    ids: Literal["integer", "text"] = Field("integer", description="Whether ids are 64-bit integers or text.")
    weighted: bool = Field(False, description="Whether edges have weights: a third field, or the column named above.")
    directed: bool = Field(True, description="Whether an edge leads one way; if not, it stands for both directions.")
    anonymous: bool = Field(True, description="Read gs:// and s3:// without credentials.")

    def columns_of(self, path: Path, columns: Sequence[str]) -> list[str]:
        """Return the names of the columns source, target and, if weighted, weight.

        Raises ConfigError if a file does not have each of them exactly once among its ``columns``.
        """
        names = [self.source_column, self.target_column, *([self.weight_column] * self.weighted)]
        for name in names:
            if columns.count(name) != 1:
                raise ConfigError(
                    f"{path} has {'more than one' if name in columns else 'no'} column {name!r}; it has "
                    f"{shorten(', '.join(columns), columns=300)}. Set pagerank.fetch.edges.source_column, "
                    ".target_column and .weight_column, or for text .header and .delimiter."
                )
        return names


class EdgeRules(Section):
    """Which links become edges; dropped links are counted by rule."""

    broken: Literal["drop", "keep"] = Field(
        "drop",
        description="Links to a page that was not read: `drop` them, or `keep` them with a dangling vertex as target.",
    )
    self_loops: Literal["drop", "keep"] = Field("drop", description="Links from a page to itself.")


class Pagerank(Section):
    """PageRank by one of three definitions, in float64."""

    definition: Literal["networkx", "graphalytics", "gap"] = Field(
        "networkx",
        description="networkx: the rank of dangling vertices goes to the personalization; graphalytics: evenly to all "
        "vertices, with a fixed number of iterations; gap: nowhere.",
    )
    damping: float = Field(0.85, gt=0, lt=1, description="Probability of following a link.")
    tolerance: float = Field(
        1e-10, gt=0, lt=1, description="networkx, gap: stop at this bound on the L1 distance to the exact ranks."
    )
    maximum_iterations: int = Field(500, ge=1, description="networkx, gap: more iterations are an error.")
    iterations: int = Field(10, ge=0, description="graphalytics: exact number of iterations.")
    personalization: str = Field(
        "",
        description="networkx: table (CSV or Parquet) of `vertex` or `name`, and `weight`: where the walk restarts. "
        "Empty: at any vertex.",
    )
    weighted: bool = Field(True, description="networkx: use the weights of edges, if they have any.")
    cugraph: bool = Field(
        True, description="networkx on a GPU: start from cuGraph's ranks, and iterate to the tolerance."
    )

    @model_validator(mode="after")
    def _check_personalization(self) -> Self:
        if self.personalization and self.definition != "networkx":
            raise ValueError(
                f"personalization is set, but definition '{self.definition}' has none: use definition networkx"
            )
        return self
