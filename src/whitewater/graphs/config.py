"""Settings of files of edges, and of PageRank."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from whitewater.config.base import Section
from whitewater.errors import ConfigError
from whitewater.io.terminal_text import shorten

# Columns of a list of names in an error.
_LONGEST_LIST = 300


class EdgeFiles(Section):
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
    header: bool = Field(False, description="Text: whether the first line that is not a comment names the columns.")
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

    def columns_of(self, path: Path, columns: Sequence[str]) -> list[str]:
        """Return the columns of source, target and, where edges have one, weight.

        Raises ConfigError if one is not among the ``columns`` of a file, or more than once.
        """
        names = [self.source_column, self.target_column, *([self.weight_column] * self.weighted)]
        for name in names:
            if columns.count(name) != 1:
                listed = shorten(", ".join(columns), columns=_LONGEST_LIST)
                raise ConfigError(
                    f"{path} has {'more than one' if name in columns else 'no'} column {name!r}; it has {listed}. Set "
                    "pagerank.fetch.edges.source_column, .target_column and .weight_column, or of text .header and "
                    ".delimiter."
                )
        return names


class EdgeRules(Section):
    """Which links become edges; what is left out is counted by rule."""

    broken: Literal["drop", "keep"] = Field(
        "drop",
        description="Links to a page that was not read: `drop`, or `keep`: the target becomes a dangling vertex.",
    )
    self_loops: Literal["drop", "keep"] = Field("drop", description="Links from a page to itself.")


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
    cugraph: bool = Field(
        True, description="networkx on a GPU: begin with the ranks of cuGraph, and iterate them to the tolerance."
    )

    @model_validator(mode="after")
    def _check_personalization(self) -> Self:
        if self.personalization and self.definition != "networkx":
            raise ValueError(
                f"personalization is set, but definition '{self.definition}' has none: use definition networkx"
            )
        return self
