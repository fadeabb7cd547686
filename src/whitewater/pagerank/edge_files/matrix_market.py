"""What a Matrix Market file says of itself ahead of its entries, and which of these matrices are graphs.

Source: R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market Exchange Formats: Initial Design", NISTIR 5935
(1996).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from whitewater.errors import ConfigError, InputError

if TYPE_CHECKING:
    from whitewater.config.pagerank import Edges

BANNER = b"%%matrixmarket"
# Words of the first line, after the banner, and why a matrix of them is none that can be read.
_FORMS = (
    {"matrix": ""},
    {"coordinate": "", "array": "it lists all entries, also those that are 0. Write it in the format coordinate."},
    {
        "real": "", "double": "", "integer": "", "pattern": "",
        "complex": "its entries are complex, and no weights. Write it as pattern, or as real with weights above 0.",
    },
    {
        "general": "", "symmetric": "",
        "skew-symmetric": "each entry stands for another one of the opposite sign, and weights are above 0. Write all "
        "its edges as general, with weights above 0 or as pattern.",
        "hermitian": "each entry stands for its complex conjugate, too. Write all its edges as general.",
    },
)  # fmt: skip


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

    Raises
    ------
    InputError
        If the matrix is no list of real weights, or a line is not of the format.
    """
    words = banner.decode("utf-8", "replace").lower().split()[1:]
    if len(words) != len(_FORMS):
        raise _unknown(path, banner)
    for word, known in zip(words, _FORMS, strict=True):
        if word not in known:
            raise _unknown(path, banner)
        if known[word]:
            raise InputError(f"{path} is a matrix of Matrix Market of the kind {word}: {known[word]}")
    numbers = sizes.split()
    if len(numbers) != 3 or not all(number.isdigit() for number in numbers):
        raise InputError(
            f"{path}: the line of sizes of a Matrix Market file has three numbers, rows, columns and entries; this one "
            f"is {sizes[:80].decode('utf-8', 'replace').strip()!r}. Fetch the file again."
        )
    return Matrix("pattern" in words, "symmetric" in words, *map(int, numbers))


def check_settings(path: Path, matrix: Matrix, settings: Edges) -> None:
    """Raise ConfigError if the settings are not those of a matrix."""
    wanted: dict[str, str | bool] = {"layout": "pairs", "delimiter": "whitespace", "header": False, "ids": "integer"}
    reading = {**settings.model_dump(include=set(wanted)), "layout": settings.layout.replace("auto", "pairs")}
    for name, value in wanted.items():
        if reading[name] != value:
            raise _wrong(path, f"a Matrix Market file is not of {name} {reading[name]!r}", name, value)
    if matrix.symmetric and settings.directed:
        raise _wrong(path, "the matrix is symmetric: an entry stands for both directions", "directed", value=False)
    if matrix.pattern and settings.weighted:
        raise _wrong(path, "the matrix is a pattern, which has no weights", "weighted", value=False)


def cut_off(path: Path, matrix: Matrix, entries: int) -> InputError:
    """Return the error of a file that has not the entries that it declares."""
    return InputError(
        f"{path} declares {matrix.entries:,} entries, but has {entries:,}: it is cut off or was changed. Fetch it "
        "again, or correct the line of sizes."
    )


def _unknown(path: Path, banner: bytes) -> InputError:
    return InputError(
        f"{path} begins as a Matrix Market file, but not with a line such as '%%MatrixMarket matrix coordinate pattern "
        f"general': {banner[:80].decode('utf-8', 'replace').strip()!r}. Fetch it again, or correct the line."
    )


def _wrong(path: Path, problem: str, name: str, value: str | bool) -> ConfigError:
    shown = str(value).lower() if isinstance(value, bool) else value
    return ConfigError(f"{path}: {problem}. Set pagerank.fetch.edges.{name} to {shown}.")
