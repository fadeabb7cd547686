"""The kernels of `whitewater.text.postings`.

Text is UTF-8, checked before: uint8 (bytes,), and where each text begins and the last one ends, int64 (texts + 1,).
"""

import numpy as np

from whitewater.engines.device import Array
from whitewater.engines.kernel import int64, kernel, part, uint64
from whitewater.text.tokens import GAP, LETTER, LONGEST, MARK

TOO_LONG = -1
# A word is kept in chunks: eight bytes, the first one highest, fewer in the last. No byte is 0, so that chunks tell
# words apart.
_CHUNKS = LONGEST // 8
_FIRST_SLOTS = 1 << 16
# Words that are looked up one after another.
_BATCH = 256
_NONE, _BYTE, _HALF = uint64(0), uint64(8), uint64(32)
_NUMBER = uint64(0xFFFFFFFF)
# What is called for each word has its arrays as arguments: to take them out of a tuple costs as much as the rest.
_BASIS, _PRIME = uint64(0xCBF29CE484222325), uint64(0x9E3779B97F4A7C15)


@kernel
def tokenize(
    title_texts: tuple[Array, Array], body_texts: tuple[Array, Array], characters: tuple[Array, Array]
) -> tuple[Array, Array, Array, Array]:
    """Find the words of titles and texts, and number the distinct ones as they come.

    Returned are the number of each word, title before text, or `TOO_LONG`, int32 (words,); the words of each title and
    text, int32 (documents, 2); and the distinct words: where the chunks of each start, int64 (distinct words + 1,), and
    the chunks, uint64.
    """
    (titles, title_offsets), (bodies, body_offsets), (kinds, lower) = title_texts, body_texts, characters
    documents = len(title_offsets) - 1
    size = title_offsets[-1] - title_offsets[0] + body_offsets[-1] - body_offsets[0]
    # Room for the most words that there can be: what is not written to takes no memory.
    most = size // 2 + 2 * documents
    tokens, counts = np.empty(most, np.int32), np.zeros((documents, 2), np.int32)
    # Some letters take half as much again in lower case.
    starts, chunks = np.empty(most + 1, np.int64), np.empty(most + size // 4, np.uint64)
    starts[0] = 0
    slots, known, found = np.zeros((_FIRST_SLOTS, 2), np.uint64), int64(0), int64(0)
    batch, sizes, at = np.empty((_BATCH, _CHUNKS), np.uint64), np.empty(_BATCH, np.int64), np.empty(_BATCH, np.int64)
    for document in range(documents):
        for field in range(2):
            data, offsets = (titles, title_offsets) if field == 0 else (bodies, body_offsets)
            place, stop, before = offsets[document], offsets[document + 1], found
            while place < stop:
                filled = int64(0)
                while place < stop and filled < _BATCH:
                    place, sizes[filled] = _next_word(data, place, stop, kinds, lower, batch[filled])
                    filled += sizes[filled] != 0
                if 2 * (known + _BATCH) > len(slots):
                    slots = _larger(slots, starts, chunks, known)
                words = batch[:filled], sizes, at
                known = _number_words(words, (slots, starts, chunks), known, tokens[found : found + filled])
                found += filled
            counts[document, field] = found - before
    return tokens[:found], counts, starts[: known + 1], chunks[: starts[known]]


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


@kernel
def _number_words(
    words: tuple[Array, Array, Array], table: tuple[Array, Array, Array], known: int, tokens: Array
) -> int:
    """Write the number of each word; return how many are known then."""
    (batch, sizes, at), (slots, starts, chunks) = words, table
    # All slots are read before one is compared: so the processor waits for memory once, not for each word.
    for place in range(len(batch)):
        slot = _first_slot(batch[place], sizes[place], len(slots))
        at[place] = slot
        tokens[place] = int64(slots[slot, 1] & _NUMBER)
    for place in range(len(batch)):
        if sizes[place] < 0:
            tokens[place] = TOO_LONG
        else:
            tokens[place] = _number(batch[place], sizes[place], at[place], slots, starts, chunks, known)
            known += tokens[place] == known
    return known


@part
def _next_word(  # noqa: PLR0917
    data: Array, place: int, stop: int, kinds: Array, lower: Array, word: Array
) -> tuple[int, int]:
    """Put the next word into ``word``; return where to go on, and its chunks: 0 if there is none, -1 if too long."""
    length, chunk = int64(0), _NONE
    while place < stop:
        byte = data[place]
        if byte >= 0x80:
            place, following, chunk = _wide(data, place, kinds, lower, word, length, chunk)
            if following < 0:
                break
            length = following
        elif kinds[byte]:
            place += 1
            chunk = chunk << _BYTE | uint64(lower[byte])
            length += 1
            if length & 7 == 0 and length <= LONGEST:
                word[length // 8 - 1] = chunk
        else:
            place += 1
            if length:
                break
    if length & 7 and length < LONGEST:
        word[length // 8] = chunk & ((uint64(1) << uint64(8 * (length & 7))) - uint64(1))
    return place, (length + 7) // 8 if length <= LONGEST else -1


@kernel
def _wide(  # noqa: PLR0917
    data: Array, place: int, kinds: Array, lower: Array, word: Array, length: int, chunk: int
) -> tuple[int, int, int]:
    """Add a code point of more than one byte to a word.

    Return what follows it, and the length and last chunk of the word. The length is -1 where the word ends before it.
    """
    size = 2 + (data[place] >= 0xE0) + (data[place] >= 0xF0)
    code = int64(data[place]) & (0x7F >> size)
    for ahead in range(1, size):
        code = code << 6 | (int64(data[place + ahead]) & 0x3F)
    place += size
    if kinds[code] != LETTER and (kinds[code] != MARK or length == 0):
        return place, -1 if length else 0, chunk
    code = int64(lower[code])
    size = 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
    for left in range(size - 1, -1, -1):
        byte = code if size == 1 else 0x80 | (code >> 6 * left & 0x3F)
        if left == size - 1 and size > 1:
            byte = (0xF00 >> size & 0xFF) | code >> 6 * left
        chunk = chunk << _BYTE | uint64(byte)
        length += 1
        if length & 7 == 0 and length <= LONGEST:
            word[length // 8 - 1] = chunk
    return place, length, chunk


@part
def _number(  # noqa: PLR0917
    word: Array, size: int, slot: int, slots: Array, starts: Array, chunks: Array, known: int
) -> int:
    """Return the number of a word of so many chunks; one that is new is number ``known`` and added.

    A slot holds the first chunk of a word, and its number, counted from 1, below its count of chunks. Chunks are
    compared one by one: that digests are equal proves nothing.
    """
    while slots[slot, 1] != _NONE:
        if slots[slot, 0] == word[0] and slots[slot, 1] >> _HALF == uint64(size):
            number = int64(slots[slot, 1] & _NUMBER) - 1
            same = 1
            while same < size and chunks[starts[number] + same] == word[same]:
                same += 1
            if same == size:
                return number
        slot = (slot + 1) & (len(slots) - 1)
    slots[slot, 0] = word[0]
    slots[slot, 1] = uint64(size) << _HALF | uint64(known + 1)
    for place in range(size):
        chunks[starts[known] + place] = word[place]
    starts[known + 1] = starts[known] + size
    return known


@part
def _first_slot(word: Array, size: int, slots: int) -> int:
    digest = _BASIS
    for place in range(size):
        digest = (digest ^ word[place]) * _PRIME
        digest ^= digest >> _HALF
    return int64((digest * _PRIME) >> _HALF) & (slots - 1)


@kernel
def _larger(slots: Array, starts: Array, chunks: Array, known: int) -> Array:
    """Return twice the slots, with the words that are known."""
    larger = np.zeros((2 * len(slots), 2), np.uint64)
    for number in range(known):
        word, size = chunks[starts[number] :], starts[number + 1] - starts[number]
        _number(word, size, _first_slot(word, size, len(larger)), larger, starts, chunks, number)
    return larger
