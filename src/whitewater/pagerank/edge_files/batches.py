"""Edges and vertices as they come from a file, some rows at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from whitewater.devices.protocol import Array
from whitewater.errors import ConfigError
from whitewater.pagerank.edge_files.name_hash import hash_names
from whitewater.pagerank.terminal_text import shortened

# Columns of a list of names in an error.
_LONGEST_LIST = 300
NO_TEXT = np.empty(0, np.uint8)


@dataclass(frozen=True)
class Ids:
    """Ids of vertices, int64 (rows,); where they stand for names also the spans of these, int64 (rows,)."""

    ids: Array
    spans: Array | None = None


@dataclass(frozen=True)
class Batch:
    """Some edges.

    ``text`` (uint8) is what spans are of; ``firsts`` are the vertices that lines begin with; ``counts`` tells how many
    lines were read, and what those are that are no rows.
    """

    text: Array
    source: Ids
    target: Ids
    weight: Array | None = None
    firsts: Ids | None = None
    counts: Counter[str] = field(default_factory=Counter)


def wrong_column(path: Path, name: str, names: Sequence[str]) -> ConfigError:
    """Return the error of a column that is not among the names of a file, or more than once."""
    listed = shortened(", ".join(names), columns=_LONGEST_LIST)
    return ConfigError(
        f"{path} has {'more than one' if name in names else 'no'} column {name!r}; it has {listed}. Set "
        "pagerank.fetch.edges.source_column, .target_column and .weight_column, or of text .header and .delimiter."
    )


def ids_of(text: Array, values: Array, *, named: bool) -> Ids:
    """Return ids that were read as they are, or those of the names whose spans were read."""
    return Ids(hash_names(text, values), values) if named else Ids(values)


def spans_of(names: pa.Array) -> tuple[Array, Array]:
    """Return text (uint8) and the span of each name in it, int64 (names,), of an Arrow array of strings."""
    strings = names.cast(pa.large_string())
    _, ends, text = strings.buffers()
    bounds = np.frombuffer(ends, np.int64, len(strings) + 1, 8 * strings.offset)
    return np.frombuffer(text, np.uint8) if text else NO_TEXT, bounds[:-1] << 32 | np.diff(bounds)
