"""From texts to an inverted index in memory: for each term the documents with it, and how often they have it.

Blocks of documents are cut into words side by side, each with a dictionary of its own. Their dictionaries become one,
sorted, and the postings are put in place by a counting sort, which keeps documents in order. So neither blocks nor
threads are seen in the result.
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
# The first of some documents; where the words of each title and of each text begin, and where the last ones end.
DocumentGroup = tuple[int, Int64s]
# Bytes of text that are cut into words at once.
BLOCK_BYTES = 8 << 20
# Distinct words that a block is expected to have; for more, its table grows.
_DISTINCT_WORDS = 1 << 16
INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Block:
    """The words of some documents.

    ``tokens``, int32 (words,), are places in ``dictionary``, where those that are too long are the empty word; those of
    the title come before those of the text. ``counts``, int32 (documents, 2), are the words of title and text.
    """

    tokens: Int32s
    counts: Int32s
    dictionary: pa.LargeStringArray
    too_long: int


@dataclass(frozen=True)
class Postings:
    """An inverted index.

    ``terms`` is a table of term (ascending by bytes of UTF-8), document_frequency int32, collection_frequency int64
    (words, those of titles as often as they count) and offset int64: where its postings begin. ``postings``, by term,
    then document, is one of document int32, frequency int32 and, if stored, positions, ascending lists of int32.
    """

    terms: pa.Table
    postings: pa.Table
    lengths: Int32s  # (documents,): words that are terms, those of titles as often as they count
    too_long: int  # words that are not indexed because they are longer than `whitewater.text.tokens.LONGEST`


def cut(sizes: npt.ArrayLike, most: int) -> list[tuple[int, int]]:
    """Cut rows of these sizes into ranges of about ``most``, a row at least; they depend on the sizes only."""
    last = np.cumsum(sizes, dtype=np.int64) // most
    starts = np.flatnonzero(np.diff(last, prepend=-1)).tolist()
    return list(zip(starts, [*starts[1:], len(last)], strict=True))


def tokenize_block(titles: pa.ChunkedArray, texts: pa.ChunkedArray) -> Block:
    """Cut titles and texts into words. Raises pyarrow.ArrowInvalid if a text is not UTF-8."""
    from whitewater.features.columns.categories import CategoryCounter
    from whitewater.text.token_kernels import cut_words

    letters, ends, counts = cut_words(_strings(titles), _strings(texts), characters())
    words = pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(letters))
    distinct = CategoryCounter(words.type, room=_DISTINCT_WORDS)
    tokens = distinct.add(words).astype(np.int32)
    return Block(tokens, counts, distinct.values(), int(np.count_nonzero(np.diff(ends) == 0)))


def merge(blocks: Sequence[Block], *, settings: Index, threads: int) -> Postings:
    """Make one index of blocks, the words of the documents in their order.

    Raises ResourceError if there is not enough memory for all words, as many postings, twice, and the counts of terms;
    and InputError if a document has too many words.
    """
    counts = np.concatenate([block.counts for block in blocks])
    weight, positions = settings.title_weight, settings.positions
    if (most := int((counts @ np.array([weight, 1])).max(initial=0))) > INT32_MAX:
        raise InputError(f"a document has {most:,} words, those of its title {weight} times, of which {INT32_MAX:,} "
                         "can be counted. Leave it out, or set a smaller index.title_weight.")  # fmt: skip
    terms, mappings = _one_dictionary([block.dictionary for block in blocks], Terms(settings))
    words = counts.sum(axis=1, dtype=np.int64)
    total = int(words.sum())
    size = total * (32 if positions else 20) + threads * len(terms) * 80
    memory.forecast(size, what=f"the postings of {total:,} words", remedy="Index fewer documents, or free memory.")
    with ThreadPoolExecutor(threads) as pool:
        tokens = np.concatenate(list(pool.map(lambda block, mapping: mapping[block.tokens], blocks, mappings)))
        too_long = sum(block.too_long for block in blocks)
        begins = np.append(0, np.cumsum(counts, dtype=np.int64))
        groups = [(start, begins[2 * start : 2 * stop + 1]) for start, stop in cut(words, max(1, -(-total // threads)))]
        return _index(tokens, groups, terms, pool, weight=weight, positions=positions, too_long=too_long)


def _index(
    tokens: Int32s, groups: Sequence[DocumentGroup], terms: pa.Array, pool: ThreadPoolExecutor,
    *, weight: int, positions: bool, too_long: int
) -> Postings:  # fmt: skip
    """Count, then write; each group of documents has its own places among the postings of each term.

    ``tokens``, int32 (words,), are the terms of all words, -1 for none.
    """
    from whitewater.text.token_kernels import count, scatter

    def count_group(group: DocumentGroup) -> tuple[Int32s, Int64s]:
        first, begins = group
        lengths, counted = np.zeros(len(begins) // 2, np.int32), np.zeros((len(terms), 4), np.int64)
        count(tokens, begins, first, weight, (lengths, counted))
        return lengths, counted

    lengths, counted = zip(*pool.map(count_group, groups), strict=True)
    _, postings, frequencies, words = np.moveaxis(np.array(counted), -1, 0)
    offsets = _places(postings)
    cursors = [offsets, np.zeros_like(offsets), *([_places(words)] if positions else [])]
    size, stored = int(postings.sum()), int(words.sum()) if positions else 0
    written = np.empty((size, 2), np.int32)
    places = np.empty(stored, np.int32), np.full(size + 1 if positions else 0, stored, np.int64)

    def scatter_group(group: DocumentGroup, own_cursors: Int64s) -> None:
        first, begins = group
        scatter(tokens, begins, first, weight, (own_cursors, written, *places))

    list(pool.map(scatter_group, groups, np.stack(cursors, axis=-1)))
    of_terms = {
        "term": terms,
        "document_frequency": to_arrow(postings.sum(axis=0).astype(np.int32)),
        "collection_frequency": to_arrow(frequencies.sum(axis=0)),
        "offset": to_arrow(offsets[0]),
    }
    of_postings = dict(zip(("document", "frequency"), pool.map(to_arrow, written.T), strict=True))
    if positions:
        of_postings["positions"] = pa.LargeListArray.from_arrays(places[1], places[0])
    return Postings(pa.table(of_terms), pa.table(of_postings), np.concatenate(lengths), too_long)


def _strings(texts: pa.ChunkedArray) -> tuple[Array, Array]:
    """Return texts as kernels take them."""
    from whitewater.features.columns.byte_strings import ByteStrings

    array = pc.fill_null(texts.cast(pa.large_string()), "").combine_chunks()
    array.validate(full=True)
    return ByteStrings.of(array).spans


def _one_dictionary(dictionaries: Sequence[pa.Array], terms: Terms) -> tuple[pa.Array, list[Int32s]]:
    """Return the terms, ascending by their bytes, and for each block the term of each word, -1 for none."""
    together = pa.chunked_array(dictionaries, pa.large_string()).combine_chunks().dictionary_encode()
    words = together.dictionary
    if terms.are_words:
        stopped = pc.is_in(words, value_set=pa.array(["", *sorted(terms.stop_words)], words.type))
        of_words = pc.if_else(stopped, pa.scalar(None, words.type), words).dictionary_encode()
    else:
        of_words = pa.array([terms.of(word) for word in words.to_pylist()], words.type).dictionary_encode()
    order = pc.array_sort_indices(of_words.dictionary)
    places = np.empty(len(order) + 1, np.int32)
    places[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    places[-1] = -1
    of_words_places = places[pc.fill_null(of_words.indices, -1).to_numpy()]
    mapped = of_words_places[together.indices.to_numpy()]
    cuts = np.cumsum([len(dictionary) for dictionary in dictionaries])[:-1]
    return of_words.dictionary.take(order), np.split(mapped, cuts)


def _places(counted: Int64s) -> Int64s:
    """Return where those of each group and term go, (groups, terms), by term, then group."""
    by_term = counted.T
    places: Int64s = (np.cumsum(by_term).reshape(by_term.shape) - by_term).T
    return places
