"""The kernel that cuts texts into words, by the rule of `whitewater.text.tokens`."""

from __future__ import annotations

import numpy as np

from whitewater.engines.device import Array
from whitewater.engines.kernel import int64, kernel, part
from whitewater.text.tokens import LETTER, LONGEST, MARK


@kernel
def split_words(data: Array, offsets: Array, kinds: Array, lower: Array) -> tuple[Array, Array, Array]:
    """Find the words of texts.

    Parameters
    ----------
    data, offsets
        UTF-8, checked before: uint8 (bytes,), and where each text begins and the last one ends, int64 (texts + 1,).
    kinds, lower
        What each code point is, and its lower case; see `whitewater.text.tokens.characters`.

    Returns
    -------
    letters, ends : uint8 (bytes,), int64 (words + 1,)
        The words in lower case, one after another, and where they end, a 0 before. Those that are too long are empty.
    counts : int32 (texts,)
        The words of each text.
    """
    texts, size = len(offsets) - 1, offsets[-1] - offsets[0]
    # Room for the most that there can be: some letters take half as much again in lower case.
    letters, ends = np.empty(size + size // 2, np.uint8), np.empty(size // 2 + texts + 1, np.int64)
    counts = np.zeros(texts, np.int32)
    ends[0] = start = end = found = int64(0)
    for text in range(texts):
        place, stop = offsets[text], offsets[text + 1]
        while place <= stop:
            code, size = _code_point(data, place) if place < stop else (int64(0), int64(1))
            place += size
            if kinds[code] == LETTER or (kinds[code] == MARK and end > start):
                end = _write(letters, end, int64(lower[code]))
            elif end > start:
                if end - start > LONGEST:
                    end = start
                start = end
                found += 1
                ends[found] = end
                counts[text] += 1
    return letters[:end], ends[: found + 1], counts


@part
def _code_point(data: Array, place: int) -> tuple[int, int]:
    """Return the code point at a place, and how many bytes it takes."""
    code = int64(data[place])
    if code < 0x80:
        return code, int64(1)
    size = int64(2) + (code >= 0xE0) + (code >= 0xF0)
    code &= 0x7F >> size
    for ahead in range(1, size):
        code = code << 6 | (int64(data[place + ahead]) & 0x3F)
    return code, size


@part
def _write(letters: Array, end: int, code: int) -> int:
    """Write a code point; return where it ends."""
    if code < 0x80:
        letters[end] = code
        return end + 1
    size = int64(2) + (code >= 0x800) + (code >= 0x10000)
    for place in range(size):
        letters[end + place] = 0x80 | (code >> 6 * (size - 1 - place) & 0x3F)
    letters[end] |= 0xF00 >> size & 0xFF
    return end + size
