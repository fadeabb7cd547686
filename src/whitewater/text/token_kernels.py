"""The kernels of `whitewater.text.postings`.

Text is UTF-8, checked before: uint8 (bytes,), and where each text begins and the last one ends, int64 (texts + 1,).
"""

import numpy as np

from whitewater.engines.device import Array
from whitewater.engines.kernel import int64, kernel, part, uint64
from whitewater.text.tokens import GAP, LETTER, LONGEST, MARK

# Places are uint64, so that no load looks whether its place is counted from the end.
_ONE, _LONGEST = uint64(1), uint64(LONGEST)


@kernel
def cut_words(
    title_texts: tuple[Array, Array], body_texts: tuple[Array, Array], characters: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """Find the words of titles and texts.

    Returned are the words in lower case, one after the other, title before text, uint8 (bytes,); where each begins and
    the last one ends, int64 (words + 1,), an empty one standing for one that is too long; and the words of each title
    and text, int32 (documents, 2).
    """
    (titles, title_offsets), (bodies, body_offsets), (kinds, lower) = title_texts, body_texts, characters
    documents = len(title_offsets) - 1
    size = title_offsets[-1] - title_offsets[0] + body_offsets[-1] - body_offsets[0]
    # Room for the most words that there can be: what is not written to takes no memory. Some letters take half as much
    # again in lower case.
    ends, letters = np.empty(size // 2 + 2 * documents + 1, np.int64), np.empty(size + size // 2 + 1, np.uint8)
    counts = np.empty((documents, 2), np.int32)
    ascii_letters = (lower[:128] * (kinds[:128] == LETTER)).astype(np.uint8)
    found, written = 0, uint64(0)
    ends[0] = 0
    for document in range(documents):
        for field in range(2):
            data, offsets = (titles, title_offsets) if field == 0 else (bodies, body_offsets)
            place, stop = uint64(offsets[document]), uint64(offsets[document + 1])
            before, begin = found, written
            while place < stop:
                if data[place] < 0x80:
                    # Written in any case, so that a core has no branch to guess.
                    letters[written] = ascii_letters[data[place]]
                    goes_on = letters[written] != 0
                    written += uint64(goes_on)
                    place += _ONE
                else:
                    code, place = _code_point(data, place)
                    goes_on = kinds[code] == LETTER or (kinds[code] == MARK and written > begin)
                    if goes_on:
                        written = _write(int64(lower[code]), letters, written)
                if written > begin and (place == stop or not goes_on):
                    if written - begin > _LONGEST:
                        written = begin
                    begin = written
                    found += 1
                    ends[found] = written
            counts[document, field] = found - before
    return letters[:written], ends[: found + 1], counts


@part
def _code_point(data: Array, place: int) -> tuple[int, int]:
    """Return a code point of more than one byte, and the place after it."""
    first = int64(data[place])
    size = 2 + (first >= 0xE0) + (first >= 0xF0)
    code = first & (0x7F >> size)
    for _ in range(1, size):
        place += _ONE
        code = code << 6 | (int64(data[place]) & 0x3F)
    return code, place + _ONE


@part
def _write(code: int, letters: Array, written: int) -> int:
    """Write a code point; return the place after it."""
    size = 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
    letters[written] = code if size == 1 else (0xF00 >> size & 0xFF) | code >> 6 * (size - 1)
    for left in range(size - 2, -1, -1):
        written += _ONE
        letters[written] = 0x80 | (code >> 6 * left & 0x3F)
    return written + _ONE


@kernel
def count(tokens: Array, begins: Array, low: int, weight: int, written: tuple[Array, Array]) -> None:
    """Count the postings of documents ``low`` and following ones.

    ``tokens``, int32 (words,), are terms, negative for words without one; ``begins``, int64 (2 documents + 1,), is
    where the words of each title and of each text begin, and where the last ones end. ``written`` is zeros before:
    int32 (documents,), words that are terms, those of titles ``weight`` times; and int64 (terms, 4), of each term the
    last document, counted from 1, the postings, the sum of their frequencies, and the words.
    """
    lengths, counted = written
    for field in range(len(begins) - 1):
        document, times = field // 2, 1 if field % 2 else weight
        for place in range(begins[field], begins[field + 1]):
            if tokens[place] >= 0:
                row = counted[tokens[place]]
                row[1] += row[0] != low + document + 1
                row[0] = low + document + 1
                row[2] += times
                row[3] += 1
                lengths[document] += times


@kernel
def scatter(tokens: Array, begins: Array, low: int, weight: int, written: tuple[Array, Array, Array, Array]) -> None:
    """Write the postings of documents ``low`` and following ones, and positions where their arrays are not empty.

    ``written`` is cursors, int64 (terms, 2 or 3): where the next posting of each term goes, 0, and where its next
    position goes; postings, int32 (postings, 2): document and frequency, side by side, for they are written at random;
    positions, int32 (words,), and where those of each posting begin, int64 (postings + 1,). See `count`.
    """
    cursors, postings, positions, first_positions = written
    for field in range(len(begins) - 1):
        number, times = low + field // 2, 1 if field % 2 else weight
        zero = begins[field - 1] - GAP if field % 2 else begins[field]
        for place in range(begins[field], begins[field + 1]):
            term = tokens[place]
            if term < 0:
                continue
            following = cursors[term, 0]
            if cursors[term, 1] != number + 1:
                cursors[term, 0] = following + 1
                cursors[term, 1] = number + 1
                postings[following, 0] = number
                postings[following, 1] = times
                if len(positions):
                    first_positions[following] = cursors[term, 2]
            else:
                postings[following - 1, 1] += times
            if len(positions):
                positions[cursors[term, 2]] = place - zero
                cursors[term, 2] += 1
