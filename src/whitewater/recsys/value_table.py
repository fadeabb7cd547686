"""Look-up of values among many: a hash table in a mapped file, over values in mapped files."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater.errors import ResourceError
from whitewater.recsys.byte_strings import ByteStrings
from whitewater.recsys.categories import hashes_of
from whitewater.recsys.category_kernels import find, place_slots
from whitewater.recsys.counted_values import MappedCounts, pieces

if TYPE_CHECKING:
    import pyarrow as pa

_PIECE = 1 << 16
# A slot has the upper half of a value's hash, and its number from 1; see `whitewater.recsys.category_kernels`.
_HASH = np.uint64(0xFFFFFFFF00000000)
MOST_VALUES = 2**32 - 2


class MappedTable:
    """Finds values in files: as `whitewater.recsys.categories.CategoryTable` does, in little memory.

    Raises ResourceError if there are 2**32 values or more.
    """

    def __init__(self, counted: MappedCounts) -> None:
        if len(counted) > MOST_VALUES:
            raise ResourceError(
                f"{len(counted):,} categories are more than can be looked up, {MOST_VALUES:,}. Set freq_threshold or "
                "max_size, or use HashBucket."
            )
        # `find` reads a byte even where all texts are empty.
        self._known = counted.data if len(counted.data) else np.zeros(1, np.uint8), counted.offsets
        self._size = len(counted)
        # The file has no name: it ends with its use.
        with tempfile.TemporaryFile() as file:
            self._slots: npt.NDArray[np.uint64] = np.asarray(
                np.memmap(file, np.uint64, "w+", shape=1 << max(10, (2 * len(counted)).bit_length()))
            )
        first = 1
        for piece in pieces(counted, _PIECE):
            numbers = np.arange(first, first + len(piece), dtype=np.uint64)
            place_slots(hashes_of(ByteStrings.of(piece.values)) & _HASH | numbers, self._slots)
            first += len(piece)

    def look_up(self, dictionary: pa.Array) -> npt.NDArray[np.int64]:
        """Return the position of each entry among the values, int64 (entries,), -1 where it is none of them."""
        strings = ByteStrings.of(dictionary)
        places = np.empty(len(strings), np.int64)
        find((*strings.spans, hashes_of(strings)), (*self._known, self._slots), self._size, False, places)
        return places
