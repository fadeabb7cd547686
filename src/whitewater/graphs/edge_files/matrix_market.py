"""What a Matrix Market file says of itself ahead of its entries, and which of these matrices are graphs.

Source: R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market Exchange Formats: Initial Design", NISTIR 5935
(1996).
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from whitewater.errors import ConfigError, InputError

if TYPE_CHECKING:
    from whitewater.graphs.config import Edges

BANNER = b"%%matrixmarket"
# Words of the first line, and why a matrix of them cannot be read.
_NO_GRAPHS = {
    "array": "it lists all entries, also those that are 0. Write it in the format coordinate.",
    "complex": "its entries are complex, and no weights. Write it as pattern, or as real with weights above 0.",
    "skew-symmetric": "each entry stands for another one of the opposite sign, and weights are above 0. Write all its "
    "edges as general, with weights above 0 or as pattern.",
    "hermitian": "each entry stands for its complex conjugate, too. Write all its edges as general.",
}


@dataclass(frozen=True)
class Matrix:
    """What the lines ahead of the entries declare."""

    pattern: bool
    symmetric: bool
    rows: int
    columns: int
    entries: int


def read_matrix(path: Path, banner: bytes, sizes: bytes) -> Matrix:
    """Return what the first line of a file and the line of its sizes declare.

    Raises InputError if the matrix is not a list of real weights, or a line is not of the format.
    """
    from scipy.io import mminfo

    try:
        rows, columns, entries, *words = mminfo(BytesIO(banner + b"\n" + sizes))
    except ValueError as error:
        raise InputError(
            f"{path} begins as a Matrix Market file, but: {error} Its first line must be such as '%%MatrixMarket "
            "matrix coordinate pattern general', and its line of sizes three numbers: rows, columns and entries. Fetch "
            "it again, or correct the line."
        ) from error
    for word in words:
        if word in _NO_GRAPHS:
            raise InputError(f"{path} is a matrix of Matrix Market of the kind {word}: {_NO_GRAPHS[word]}")
    return Matrix("pattern" in words, "symmetric" in words, rows, columns, entries)


def check_settings(path: Path, matrix: Matrix, settings: Edges) -> None:
    """Raise ConfigError if the settings are not those of a matrix."""
    wanted: dict[str, str | bool] = {"layout": "pairs", "delimiter": "whitespace", "header": False, "ids": "integer"}
    for name, value in wanted.items():
        if getattr(settings, name) != value:
            raise _wrong(path, f"a Matrix Market file is not of {name} {getattr(settings, name)!r}", name, value)
    if matrix.symmetric and settings.directed:
        raise _wrong(path, "the matrix is symmetric: an entry stands for both directions", "directed", value=False)
    if matrix.pattern and settings.weighted:
        raise _wrong(path, "the matrix is a pattern, which has no weights", "weighted", value=False)


def _wrong(path: Path, problem: str, name: str, value: str | bool) -> ConfigError:
    shown = str(value).lower() if isinstance(value, bool) else value
    return ConfigError(f"{path}: {problem}. Set pagerank.fetch.edges.{name} to {shown}.")
