"""What a Matrix Market file says of itself ahead of its entries, and which of these matrices are graphs.

Source: R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market Exchange Formats: Initial Design", NISTIR 5935
(1996).
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from whitewater.errors import ConfigError, InputError

if TYPE_CHECKING:
    from whitewater.graphs.config import EdgeFiles

BANNER = b"%%matrixmarket"
# Words of the first line, and why a matrix of them cannot be read.
_NO_GRAPHS = {
    "array": "it lists all entries, also those that are 0. Write it in the format coordinate.",
    "complex": "its entries are complex, and no weights. Write it as pattern, or as real with weights above 0.",
    "skew-symmetric": "each entry stands for another one of the opposite sign, and weights are above 0. Write all its "
    "edges as general, with weights above 0 or as pattern.",
    "hermitian": "each entry stands for its complex conjugate, too. Write all its edges as general.",
}


class Matrix(NamedTuple):
    """The numbers that the line ahead of the entries declares."""

    rows: int
    columns: int
    entries: int


def read_matrix(path: Path, banner: bytes, sizes: bytes, settings: EdgeFiles) -> Matrix:
    """Return what the line of the sizes declares; ``banner`` is the first line of the file.

    Raises InputError if the matrix is not a list of real weights, or a line is not of the format, and ConfigError if
    the settings are not those of the matrix.
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
    wanted: dict[str, str | bool] = {"layout": "pairs", "delimiter": "whitespace", "header": False, "ids": "integer"}
    # Of a symmetric matrix an entry stands for both directions; a pattern has no weights.
    wanted |= dict.fromkeys(["directed"] * ("symmetric" in words) + ["weighted"] * ("pattern" in words), False)
    for name, value in wanted.items():
        if getattr(settings, name) != value:
            found, wanted_value = (str(each).lower() for each in (getattr(settings, name), value))
            raise ConfigError(f"{path} is a {' '.join(words)} matrix, but pagerank.fetch.edges.{name} is {found}. Set "
                              f"it to {wanted_value}.")  # fmt: skip
    return Matrix(rows, columns, entries)
