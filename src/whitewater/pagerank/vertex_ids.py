"""Ids of vertices that have names, such as URLs: XXH64, seed 0, of the name in UTF-8, read as a signed integer.

So every page has its id before any other is known, on every machine. Two names of one id (expected once in 2**65 / n**2
runs with n names) are found and refused where the table of vertices is made.

Source: Y. Collet, "xxHash fast digest algorithm", version 0.8.2, section XXH64.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xxhash


def vertex_id(name: str) -> int:
    """Return the id of a name, -2**63 <= id < 2**63.

    Examples
    --------
    >>> vertex_id("https://example.org/")
    5946287761419108731
    """
    unsigned: int = xxhash.xxh64_intdigest(name.encode())
    return unsigned - (unsigned >> 63 << 64)


def vertex_ids(names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the ids of names, int64 (names,)."""
    return np.fromiter((vertex_id(name) for name in names), np.int64, len(names))
