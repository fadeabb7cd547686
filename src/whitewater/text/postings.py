"""Builds an inverted index in memory: for each term the documents that contain it, and how often.

Blocks of documents are split into words in parallel, each with its own dictionary. Then the dictionaries are merged and
sorted, and a counting sort writes the postings. The result does not depend on blocks or threads.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines import Array, memory
from whitewater.errors import InputError
from whitewater.tables.arrow_arrays import to_arrow
from whitewater.text.config import Index
from whitewater.text.tokens import Terms, characters

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
# The number of the first document, and the bounds of the words of each title and text; see `token_kernels.count`.
DocumentGroup = tuple[int, Int64s]
# Bytes of text that are split into words at once.
BLOCK_BYTES = 8 << 20
INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Block:
    """The words of consecutive documents, those of a title before those of its text."""

    tokens: Int32s  # (words,): positions in the dictionary
    counts: Int32s  # (documents, 2): words of title and text
    dictionary: pa.LargeStringArray  # unique words; words that are too long become the empty word
    too_long: int


@dataclass(frozen=True)
class Postings:
    """An inverted index; the tables have the columns of `whitewater.text.index_folder`."""

    terms: pa.Table
    postings: pa.Table
    lengths: Int32s  # (documents,): weighted number of terms
    too_long: int  # words that are not indexed because they are longer than `whitewater.text.tokens.LONGEST`


def cut(sizes: npt.ArrayLike, most: int) -> list[tuple[int, int]]:
    """Cut rows into ranges ``(start, stop)`` with a total size of about ``most``, at least one row each."""
    last = np.cumsum(sizes, dtype=np.int64) // most
    starts = np.flatnonzero(np.diff(last, prepend=-1)).tolist()
    return list(zip(starts, [*starts[1:], len(last)], strict=True))


def tokenize_block(titles: pa.ChunkedArray, texts: pa.ChunkedArray) -> Block:
    """Split titles and texts into words. Raises pyarrow.ArrowInvalid if a text is not UTF-8."""
    from whitewater.features.columns.categories import CategoryCounter
    from whitewater.text.token_kernels import split_words

    letters, ends, counts = split_words(_byte_spans(titles), _byte_spans(texts), characters())
    words = pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(letters))
    distinct = CategoryCounter(words.type, room=1 << 16)  # for more words its table grows
    tokens = distinct.add(words).astype(np.int32)
    return Block(tokens, counts, distinct.values(), int(np.count_nonzero(np.diff(ends) == 0)))


def merge(blocks: Sequence[Block], *, settings: Index, threads: int) -> Postings:
    """Merge blocks, in the order of the documents, into one index.

    Raises ResourceError if there is too little memory, and InputError if a document has too many words.
    """
    counts = np.concatenate([block.counts for block in blocks])
    weight, positions = settings.title_weight, settings.positions
    if (longest := int((counts @ np.array([weight, 1])).max(initial=0))) > INT32_MAX:
        raise InputError(f"a document has {longest:,} words, counting those of its title {weight} times, but at most "
                         f"{INT32_MAX:,} are possible. Leave it out, or set a smaller index.title_weight.")  # fmt: skip
    terms, mappings = _merge_dictionaries([block.dictionary for block in blocks], Terms(settings))
    words = counts.sum(axis=1, dtype=np.int64)
    total = int(words.sum())
    # All words, two copies of the postings, and the counts of terms.
    size = total * (32 if positions else 20) + threads * len(terms) * 80
    memory.forecast(size, what=f"the postings of {total:,} words", remedy="Index fewer documents, or free memory.")
    with ThreadPoolExecutor(threads) as pool:
        tokens = np.concatenate(list(pool.map(lambda block, mapping: mapping[block.tokens], blocks, mappings)))
        begins = np.append(0, np.cumsum(counts, dtype=np.int64))
        groups = [(start, begins[2 * start : 2 * stop + 1]) for start, stop in cut(words, max(1, -(-total // threads)))]
        too_long = sum(block.too_long for block in blocks)
        return _sort_postings(tokens, groups, terms, pool, weight=weight, positions=positions, too_long=too_long)


def _sort_postings(
    tokens: Int32s, groups: Sequence[DocumentGroup], terms: pa.Array, pool: ThreadPoolExecutor,
    *, weight: int, positions: bool, too_long: int
) -> Postings:  # fmt: skip
    """Count, then write the postings of ``tokens``, int32 (words,): the term of each word, or -1."""
    from whitewater.text.token_kernels import count, scatter

    lengths, counts = zip(*pool.map(lambda group: count(tokens, group, weight, len(terms)), groups), strict=True)
    _, postings, frequencies, words = np.moveaxis(np.array(counts), -1, 0)
    offsets = _offsets(postings)
    cursors = [offsets, np.zeros_like(offsets), *([_offsets(words)] if positions else [])]
    size, stored_words = int(postings.sum()), int(words.sum()) if positions else 0
    rows = np.empty((size, 2), np.int32)
    lists = np.empty(stored_words, np.int32), np.full(size + 1 if positions else 0, stored_words, np.int64)
    outputs = ((group_cursors, rows, *lists) for group_cursors in np.stack(cursors, axis=-1))
    list(pool.map(lambda group, output: scatter(tokens, group, weight, output), groups, outputs))
    term_columns = {
        "term": terms,
        "document_frequency": to_arrow(postings.sum(axis=0).astype(np.int32)),
        "collection_frequency": to_arrow(frequencies.sum(axis=0)),
        "offset": to_arrow(offsets[0]),
    }
    columns = dict(zip(("document", "frequency"), pool.map(to_arrow, rows.T), strict=True))
    if positions:
        columns["positions"] = pa.LargeListArray.from_arrays(lists[1], lists[0])
    return Postings(pa.table(term_columns), pa.table(columns), np.concatenate(lengths), too_long)


def _byte_spans(texts: pa.ChunkedArray) -> tuple[Array, Array]:
    from whitewater.features.columns.byte_strings import ByteStrings

    array = pc.fill_null(texts.cast(pa.large_string()), "").combine_chunks()
    array.validate(full=True)
    return ByteStrings.of(array).spans


def _merge_dictionaries(dictionaries: Sequence[pa.Array], terms: Terms) -> tuple[pa.Array, list[Int32s]]:
    """Return the terms, ascending by their bytes, and for each block the term of each word, -1 for none."""
    encoded = pa.chunked_array(dictionaries, pa.large_string()).combine_chunks().dictionary_encode()
    words = encoded.dictionary
    if terms.are_words:
        is_stop_word = pc.is_in(words, value_set=pa.array(["", *sorted(terms.stop_words)], words.type))
        word_terms = pc.if_else(is_stop_word, pa.scalar(None, words.type), words).dictionary_encode()
    else:
        word_terms = pa.array([terms.of(word) for word in words.to_pylist()], words.type).dictionary_encode()
    order = pc.array_sort_indices(word_terms.dictionary)
    # The last element is for words without a term: index -1.
    numbers = np.full(len(order) + 1, -1, np.int32)
    numbers[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    word_numbers = numbers[pc.fill_null(word_terms.indices, -1).to_numpy()]
    bounds = np.cumsum([len(dictionary) for dictionary in dictionaries])[:-1]
    return word_terms.dictionary.take(order), np.split(word_numbers[encoded.indices.to_numpy()], bounds)


def _offsets(counts: Int64s) -> Int64s:
    """Return the first position of each group and term, (groups, terms), ordered by term, then group."""
    by_term = counts.T
    offsets: Int64s = (np.cumsum(by_term).reshape(by_term.shape) - by_term).T
    return offsets
