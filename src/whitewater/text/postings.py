"""From texts to an inverted index in memory: for each term the documents with it, and how often they have it.

Blocks of documents are cut into words side by side, each with a dictionary of its own. Their dictionaries become one,
sorted, and the postings are put in place by a counting sort, which keeps documents in order. So neither blocks nor
threads are seen in the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines import memory
from whitewater.errors import InputError
from whitewater.tables.arrow_arrays import to_arrow
from whitewater.text.terms import Terms
from whitewater.text.tokens import characters

if TYPE_CHECKING:
    from whitewater.text.config import Index

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
# Bytes of text that are cut into words at once.
BLOCK_BYTES = 8 << 20
INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Block:
    """The words of some documents.

    ``tokens``, int32 (words,), are places in ``dictionary``, or -1 for words that are too long; those of the title come
    before those of the text. ``counts``, int32 (documents, 2), are the words of title and text.
    """

    tokens: Int32s
    counts: Int32s
    dictionary: pa.LargeStringArray


@dataclass(frozen=True)
class Postings:
    """An inverted index.

    ``terms`` is a table of term (ascending by bytes of UTF-8), document_frequency int32, collection_frequency int64
    (words, those of titles as often as they count) and offset int64: where its postings begin.
    """

    terms: pa.Table
    documents: Int32s  # (postings,), by term, then document
    frequencies: Int32s  # (postings,)
    positions: pa.Array | None  # list of int32 (postings,): ascending; None where they are not stored
    lengths: Int32s  # (documents,): words that are terms, those of titles as often as they count
    too_long: int  # words that are not indexed because they are longer than `whitewater.text.terms.LONGEST`


def cut(sizes: npt.ArrayLike, most: int) -> list[tuple[int, int]]:
    """Cut rows of these sizes into ranges of about ``most``, a row at least; they depend on the sizes only."""
    last = np.cumsum(sizes, dtype=np.int64) // most
    starts = np.flatnonzero(np.diff(last, prepend=-1)).tolist()
    return list(zip(starts, [*starts[1:], len(last)], strict=True))


def tokenize_block(titles: pa.ChunkedArray, texts: pa.ChunkedArray) -> Block:
    """Cut titles and texts into words. Raises pyarrow.ArrowInvalid if a text is not UTF-8."""
    from whitewater.text.token_kernels import tokenize

    known = characters()
    tokens, counts, starts, chunks = tokenize(_buffers(titles), _buffers(texts), (known.kinds, known.lower))
    letters = chunks.astype(">u8").view(np.uint8)
    ends = np.append(0, np.cumsum(letters > 0))[8 * starts]
    dictionary = pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(letters[letters > 0]))
    return Block(tokens, counts, dictionary)


def merge(blocks: Sequence[Block], *, settings: Index, threads: int) -> Postings:
    """Make one index of blocks, the words of the documents in their order.

    Raises ResourceError if there is not enough memory for the postings, and InputError if a document has too many
    words.
    """
    counts = np.concatenate([block.counts for block in blocks])
    words = sum(len(block.tokens) for block in blocks)
    _check_lengths(counts, settings.title_weight)
    terms, mappings = _one_dictionary([block.dictionary for block in blocks], Terms(settings))
    _check_memory(words, len(terms), groups=threads, positions=settings.positions)
    with ThreadPoolExecutor(threads) as pool:
        tokens, too_long = _as_terms(blocks, mappings, pool)
        starts = np.cumsum(counts.sum(axis=1, dtype=np.int64)) - counts.sum(axis=1)
        collection = _Collection(tokens, starts, counts, settings.title_weight, len(terms))
        return collection.index(terms, pool, groups=threads, positions=settings.positions, too_long=too_long)


@dataclass(frozen=True)
class _Collection:
    """All words as terms, int32 (words,), where the documents' begin, and how many titles and texts have."""

    tokens: Int32s
    starts: Int64s
    counts: Int32s
    weight: int
    terms: int

    def index(
        self, terms: pa.Array, pool: ThreadPoolExecutor, *, groups: int, positions: bool, too_long: int
    ) -> Postings:
        """Count, then write; each group of documents has its own places among the postings of each term."""
        ranges = self._ranges(groups)
        lengths = np.empty(len(self.starts), np.int32)
        counted = np.array(list(pool.map(lambda each: self._count(each, lengths), ranges)))
        postings, frequencies, words = counted[..., 1], counted[..., 2].sum(axis=0), counted[..., 3]
        offsets = _places(postings)
        columns = [offsets, np.zeros_like(offsets), _places(words)]
        cursors = np.stack(columns if positions else columns[:2], axis=-1)
        document_frequency = postings.sum(axis=0)
        table = {
            "term": terms,
            "document_frequency": to_arrow(document_frequency.astype(np.int32)),
            "collection_frequency": to_arrow(frequencies),
            "offset": to_arrow(offsets[0]),
        }
        size, stored = int(document_frequency.sum()), int(words.sum()) if positions else 0
        written = np.empty((size, 2), np.int32)
        places = np.empty(stored, np.int32), np.full(size + 1 if positions else 0, stored, np.int64)
        list(pool.map(lambda between, start: self._scatter(between, start, written, places), ranges, cursors))
        listed = pa.LargeListArray.from_arrays(places[1], places[0]) if positions else None
        documents, counts = pool.map(np.ascontiguousarray, written.T)
        return Postings(pa.table(table), documents, counts, listed, lengths, too_long)

    def _count(self, between: tuple[int, int], lengths: Int32s) -> Int64s:
        from whitewater.text.token_kernels import count

        counted = np.zeros((self.terms, 4), np.int64)
        start, stop = between
        count(self.tokens, self._documents(between), start, self.weight, (lengths[start:stop], counted))
        return counted

    def _scatter(
        self, between: tuple[int, int], cursors: Int64s, postings: Int32s, places: tuple[Int32s, Int64s]
    ) -> None:
        from whitewater.text.token_kernels import scatter

        written = cursors, postings, *places
        scatter(self.tokens, self._documents(between), between[0], self.weight, written)

    def _documents(self, between: tuple[int, int]) -> tuple[Int64s, Int32s]:
        start, stop = between
        return self.starts[start:stop], self.counts[start:stop]

    def _ranges(self, groups: int) -> list[tuple[int, int]]:
        words = self.counts.sum(axis=1, dtype=np.int64)
        return cut(words, max(1, -(-int(words.sum()) // groups)))


def _buffers(texts: pa.ChunkedArray) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """Return the bytes of texts and their offsets, both read-only, as `whitewater.text.token_kernels` has them."""
    array = pc.fill_null(texts.cast(pa.large_string()), "").combine_chunks()
    array.validate(full=True)
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets or bytes(8), np.int64)[array.offset : array.offset + len(array) + 1]
    # Numba compiles a kernel anew for arrays that may be written to.
    return np.frombuffer(data or b"\0", np.uint8), ends


def _one_dictionary(dictionaries: Sequence[pa.Array], terms: Terms) -> tuple[pa.Array, list[Int32s]]:
    """Return the terms, ascending by their bytes, and for each block the term of each word, -1 for none.

    A mapping has one entry more than the dictionary, -1, which is the one of words that are too long.
    """
    together = pa.chunked_array(dictionaries, pa.large_string()).combine_chunks().dictionary_encode()
    of_words = terms_of(together.dictionary, terms).dictionary_encode()
    order = pc.array_sort_indices(of_words.dictionary)
    places = np.empty(len(order) + 1, np.int32)
    places[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    places[-1] = -1
    of_words_places = places[pc.fill_null(of_words.indices, -1).to_numpy()]
    mapped = of_words_places[together.indices.to_numpy()]
    cuts = np.cumsum([len(each) for each in dictionaries])[:-1]
    return of_words.dictionary.take(order), [np.append(each, np.int32(-1)) for each in np.split(mapped, cuts)]


def terms_of(words: pa.Array, terms: Terms) -> pa.Array:
    """Return the term of each word, null for stop words."""
    if terms.are_words:
        stopped = pc.is_in(words, value_set=pa.array(sorted(terms.stop_words), words.type))
        return pc.if_else(stopped, pa.scalar(None, words.type), words)
    return pa.array([terms.of(word) for word in words.to_pylist()], words.type)


def _as_terms(blocks: Sequence[Block], mappings: Sequence[Int32s], pool: ThreadPoolExecutor) -> tuple[Int32s, int]:
    """Return the term of each word of all blocks, one after another, and the number of words that are too long."""
    stops = np.cumsum([len(block.tokens) for block in blocks])
    tokens = np.empty(stops[-1], np.int32)

    def fill(block: Block, mapping: Int32s, stop: int) -> int:
        mapping.take(block.tokens, out=tokens[stop - len(block.tokens) : stop], mode="wrap")
        return int(np.count_nonzero(block.tokens < 0))

    return tokens, sum(pool.map(fill, blocks, mappings, stops.tolist()))


def _places(counted: Int64s) -> Int64s:
    """Return where those of each group and term go, (groups, terms), by term, then group."""
    by_term = counted.T
    places: Int64s = (np.cumsum(by_term).reshape(by_term.shape) - by_term).T
    return places


def _check_lengths(counts: Int32s, weight: int) -> None:
    most = int((counts @ np.array([weight, 1])).max(initial=0))
    if most > INT32_MAX:
        raise InputError(f"a document has {most:,} words, those of its title {weight} times, of which {INT32_MAX:,} "
                         "can be counted. Leave it out, or set a smaller index.title_weight.")  # fmt: skip


def _check_memory(words: int, terms: int, *, groups: int, positions: bool) -> None:
    """Refuse what would not fit: all words as terms, at most as many postings, twice, and what is counted of terms."""
    memory.forecast(
        words * (4 + 16 + (12 if positions else 0)) + groups * terms * 80,
        what=f"the postings of {words:,} words",
        remedy="Index fewer documents, or free memory.",
    )
