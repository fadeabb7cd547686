"""The kernels of `whitewater.text.postings`. Text is valid UTF-8, uint8 (bytes,), with offsets, int64 (texts + 1,)."""

import numpy as np

from whitewater.engines.device import Array
from whitewater.engines.kernel import int64, kernel, part, uint64
from whitewater.text.tokens import GAP, LETTER, LONGEST, MARK

# Indices are uint64, so that Numba does not check for negative ones.
_ONE, _LONGEST = uint64(1), uint64(LONGEST)


@kernel
def split_words(
    title_texts: tuple[Array, Array], body_texts: tuple[Array, Array], characters: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """Return the words of titles and texts in lower case, title before text: uint8 (bytes,) and int64 (words + 1,).

    Words that are too long are empty. The third result, int32 (documents, 2), is the number of words of title and text.
    """
    (titles, title_offsets), (bodies, body_offsets), (kinds, lower) = title_texts, body_texts, characters
    documents = len(title_offsets) - 1
    size = title_offsets[-1] - title_offsets[0] + body_offsets[-1] - body_offsets[0]
    # Room for the maximum of words: pages that are not written to take no memory. Lower case can be longer by a half.
    ends, letters = np.empty(size // 2 + 2 * documents + 1, np.int64), np.empty(size + size // 2 + 1, np.uint8)
    counts = np.empty((documents, 2), np.int32)
    ascii_letters = (lower[:128] * (kinds[:128] == LETTER)).astype(np.uint8)
    word_count, written = 0, uint64(0)
    ends[0] = 0
    for document in range(documents):
        for field in range(2):
            data, offsets = (titles, title_offsets) if field == 0 else (bodies, body_offsets)
            position, stop = uint64(offsets[document]), uint64(offsets[document + 1])
            first_word, begin = word_count, written
            while position < stop:
                if data[position] < 0x80:
                    # Always written, so that a core has no branch to predict.
                    letters[written] = ascii_letters[data[position]]
                    is_in_word = letters[written] != 0
                    written += uint64(is_in_word)
                    position += _ONE
                else:
                    code, position = _decode(data, position)
                    is_in_word = kinds[code] == LETTER or (kinds[code] == MARK and written > begin)
                    if is_in_word:
                        written = _encode(int64(lower[code]), letters, written)
                if written > begin and (position == stop or not is_in_word):
                    if written - begin > _LONGEST:
                        written = begin
                    begin = written
                    word_count += 1
                    ends[word_count] = written
            counts[document, field] = word_count - first_word
    return letters[:written], ends[: word_count + 1], counts


@part
def _decode(data: Array, position: int) -> tuple[int, int]:
    """Return a code point of more than one byte, and the position after it."""
    first = int64(data[position])
    size = 2 + (first >= 0xE0) + (first >= 0xF0)
    code = first & (0x7F >> size)
    for _ in range(1, size):
        position += _ONE
        code = code << 6 | (int64(data[position]) & 0x3F)
    return code, position + _ONE


@part
def _encode(code: int, letters: Array, written: int) -> int:
    """Write a code point; return the position after it."""
    size = 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
    letters[written] = code if size == 1 else (0xF00 >> size & 0xFF) | code >> 6 * (size - 1)
    for left in range(size - 2, -1, -1):
        written += _ONE
        letters[written] = 0x80 | (code >> 6 * left & 0x3F)
    return written + _ONE


@kernel
def count(tokens: Array, group: tuple[int, Array], weight: int, terms: int) -> tuple[Array, Array]:
    """Count the postings of consecutive documents.

    ``tokens``, int32 (words,), are terms, or negative. ``group`` is the number of the first document and the bounds of
    the words of each title and text, int64 (2 documents + 1,). Returns int32 (documents,), the number of terms, those
    of titles ``weight`` times; and int64 (terms, 4), for each term the last document, counted from 1, the postings, the
    sum of their frequencies, and the words.
    """
    low, begins = group
    lengths, counts = np.zeros(len(begins) // 2, np.int32), np.zeros((terms, 4), np.int64)
    for field in range(len(begins) - 1):
        document, times = field // 2, 1 if field % 2 else weight
        for position in range(begins[field], begins[field + 1]):
            if tokens[position] >= 0:
                row = counts[tokens[position]]
                row[1] += row[0] != low + document + 1
                row[0] = low + document + 1
                row[2] += times
                row[3] += 1
                lengths[document] += times
    return lengths, counts


@kernel
def scatter(tokens: Array, group: tuple[int, Array], weight: int, output: tuple[Array, Array, Array, Array]) -> None:
    """Write the postings of a group of documents, and positions if their arrays are not empty; see `count`.

    ``output`` is cursors, int64 (terms, 2 or 3): the row of each term's next posting, 0, and the index of its next
    position; postings, int32 (postings, 2): document and frequency, side by side because they are written at random;
    positions, int32 (words,), and the first one of each posting, int64 (postings + 1,).
    """
    (low, begins), (cursors, postings, positions, first_positions) = group, output
    for field in range(len(begins) - 1):
        number, times = low + field // 2, 1 if field % 2 else weight
        zero = begins[field - 1] - GAP if field % 2 else begins[field]
        for position in range(begins[field], begins[field + 1]):
            term = tokens[position]
            if term < 0:
                continue
            row = cursors[term, 0]
            if cursors[term, 1] != number + 1:
                cursors[term, 0] = row + 1
                cursors[term, 1] = number + 1
                postings[row, 0] = number
                postings[row, 1] = times
                if len(positions):
                    first_positions[row] = cursors[term, 2]
            else:
                postings[row - 1, 1] += times
            if len(positions):
                positions[cursors[term, 2]] = position - zero
                cursors[term, 2] += 1
