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

Ids = npt.NDArray[np.int64]


def vertex_id(name: str) -> int:
    """Return the id of a name, -2**63 <= id < 2**63.

    Examples
    --------
    >>> vertex_id("https://example.org/")
    5946287761419108731
    """
    unsigned: int = xxhash.xxh64_intdigest(name.encode())
    return unsigned - (unsigned >> 63 << 64)


def vertex_ids(names: Sequence[str]) -> Ids:
    """Return the ids of names, int64 (names,)."""
    return np.fromiter((vertex_id(name) for name in names), np.int64, len(names))


def places_of(ids: Ids, known: Ids) -> Ids:
    """Return the place of each id, int64 (ids,), among those known, which ascend, each once; -1 where it is not."""
    if not len(known):
        return np.full(len(ids), -1)
    if int(known[-1]) - int(known[0]) == len(known) - 1:
        # Ids in a row, as those of Common Crawl, need no search, which would miss the cache at each step.
        places = ids.view(np.uint64) - known[:1].view(np.uint64)
        return np.where(places < len(known), places.view(np.int64), -1)
    places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[places] == ids, places, -1)
