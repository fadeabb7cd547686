"""Two-bit genotypes, counted many at a time: see `whitewater.devices.genotypes` for the code.

A *lane* is the lower bit of a genotype; a mask of lanes tells which genotypes count.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from whitewater.devices.kernel import int64, part, uint64
from whitewater.devices.protocol import Array

LANES = 0x5555555555555555
BYTES_A_WORD = 8


def lanes_of(chosen: Array, size: int, xp: ModuleType) -> Array:
    """Return the lanes of the chosen genotypes, uint8 (size,), of bool (samples,) and as many bytes as hold them."""
    places = xp.zeros((size, 4), np.uint8)
    places.reshape(-1)[: len(chosen)] = chosen
    lanes: Array = places[:, 0] | places[:, 1] << 2 | places[:, 2] << 4 | places[:, 3] << 6
    return lanes


def whole_words(row: Array) -> Array:
    """Return a row of bytes, or memory for one, as uint64, with bytes of 0 behind it."""
    padded = np.zeros(-(-len(row) // BYTES_A_WORD) * BYTES_A_WORD, np.uint8)
    padded[: len(row)] = row
    return padded.view(np.uint64)


@part
def ones(word: int) -> int:
    """Return the number of bits set in a uint64, in the form that LLVM knows as one instruction."""
    pairs = word - ((word >> uint64(1)) & uint64(0x5555555555555555))
    nibbles = (pairs & uint64(0x3333333333333333)) + ((pairs >> uint64(2)) & uint64(0x3333333333333333))
    octets = (nibbles + (nibbles >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return int64((octets * uint64(0x0101010101010101)) >> uint64(56))


@part
def add_counts(words: Array, lanes: Array, samples: int, counts: Array) -> None:
    """Add to ``counts``, int32 (4,), the genotypes of each code, of ``samples`` lanes; all words are uint64."""
    lower, upper, both = 0, 0, 0
    for place in range(len(words)):
        low = words[place] & lanes[place]
        high = (words[place] >> uint64(1)) & lanes[place]
        lower += ones(low)
        upper += ones(high)
        both += ones(low & high)
    counts[0] += samples - lower - upper + both
    counts[1] += lower - both
    counts[2] += upper - both
    counts[3] += both
