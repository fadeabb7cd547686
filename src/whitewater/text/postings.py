"""From texts to an inverted index in memory: for each term the documents with it, and how often they have it.

Blocks of documents are cut into words side by side, each with a dictionary of its own; then the dictionaries become
one. The words are a sparse matrix, documents by terms, and its columns are the postings. SciPy turns rows into columns
by a counting sort, which keeps documents in order, so blocks and workers are not seen in the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines import memory
from whitewater.errors import InputError
from whitewater.tables.arrow_arrays import one_array, to_arrow, to_numpy
from whitewater.text.tokens import GAP, Terms, characters

if TYPE_CHECKING:
    from whitewater.text.config import Index

Int32s = npt.NDArray[np.int32]
# Bytes of text that are cut into words at once.
BLOCK_BYTES = 8 << 20
INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Block:
    """The words of some documents, those of the title before those of the text.

    ``words`` has a dictionary of text; those that are ``too_long``, so many, are empty. ``counts``, int32
    (documents, 2), are the words of title and text.
    """

    words: pa.DictionaryArray
    counts: Int32s
    too_long: int


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
    too_long: int  # words that are not indexed because they are longer than `whitewater.text.tokens.LONGEST`


def cut(sizes: npt.ArrayLike, most: int) -> list[tuple[int, int]]:
    """Cut rows of these sizes into ranges of about ``most``, a row at least; they depend on the sizes only."""
    last = np.cumsum(sizes, dtype=np.int64) // most
    starts = np.flatnonzero(np.diff(last, prepend=-1)).tolist()
    return list(zip(starts, [*starts[1:], len(last)], strict=True))


def tokenize_block(titles: pa.ChunkedArray, texts: pa.ChunkedArray) -> Block:
    """Cut titles and texts into words. Raises pyarrow.ArrowInvalid if a text is not UTF-8."""
    from whitewater.text.token_kernels import split_words

    columns = [one_array(pc.fill_null(column.cast(pa.large_string()), "")) for column in (titles, texts)]
    in_turn = np.arange(2 * len(titles)).reshape(2, -1).T.ravel()
    array = pa.concat_arrays(columns).take(to_arrow(in_turn))
    array.validate(full=True)
    _, offsets, data = array.buffers()
    # Numba compiles a kernel anew for arrays that may be written to; those of buffers may not.
    text = np.frombuffer(data or b"\0", np.uint8), np.frombuffer(offsets or bytes(8), np.int64)[: len(array) + 1]
    letters, ends, counts = split_words(*text, *characters())
    words = pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(letters))
    return Block(words.dictionary_encode(), counts.reshape(-1, 2), int(np.count_nonzero(np.diff(ends) == 0)))


def merge(blocks: Sequence[Block], *, settings: Index) -> Postings:
    """Make one index of blocks, the words of the documents in their order.

    Raises ResourceError if there is not enough memory for all words, and as many postings, twice; and InputError if a
    document has too many words.
    """
    from scipy.sparse import csc_array, csr_array

    counts = np.concatenate([block.counts for block in blocks])
    weights = np.array([settings.title_weight, 1], np.int32)
    if (most := int((counts @ weights.astype(np.int64)).max(initial=0))) > INT32_MAX:
        raise InputError(f"a document has {most:,} words, those of its title {settings.title_weight} times, of "
                         f"which {INT32_MAX:,} can be counted. Leave it out, or set a smaller "
                         "index.title_weight.")  # fmt: skip
    begins = np.append(0, np.cumsum(counts.sum(axis=1, dtype=np.int64)))
    total = int(begins[-1])
    size = total * (40 if settings.positions else 24)
    memory.forecast(size, what=f"the postings of {total:,} words", remedy="Index fewer documents, or free memory.")
    words = pa.concat_arrays([block.words for block in blocks])
    terms, term_of = _terms(words.dictionary, Terms(settings))
    tokens = term_of[to_numpy(words.indices)]
    del words

    def by_document(values: npt.NDArray[Any]) -> csr_array:
        # The last column is of what is no term.
        return csr_array((values, tokens, begins), shape=(len(counts), len(terms) + 1))

    def summed(matrix: csr_array) -> csc_array:
        columns = matrix.tocsc()
        columns.sum_duplicates()
        return columns

    each = counts.ravel()
    weighted = by_document(np.repeat(np.tile(weights, len(counts)), each))
    lengths = weighted @ (np.arange(len(terms) + 1) < len(terms))
    found = summed(weighted)
    offsets, size = found.indptr[:-2].astype(np.int64), found.indptr[-2]
    frequencies = found.data[:size]
    table = {
        "term": terms,
        "document_frequency": to_arrow(np.diff(found.indptr[:-1]).astype(np.int32)),
        "collection_frequency": to_arrow(np.add.reduceat(frequencies, offsets, dtype=np.int64)),
        "offset": to_arrow(offsets),
    }
    listed = None
    if settings.positions:
        in_document = np.arange(total) - np.repeat(begins[:-1], np.diff(begins))
        places = in_document + np.repeat(np.tile([0, GAP], len(counts)), each)
        ends = np.append(0, np.cumsum(summed(by_document(np.ones(total, np.int64))).data[:size]))
        placed = by_document(places.astype(np.int32)).tocsc().data[: ends[-1]]
        listed = pa.LargeListArray.from_arrays(to_arrow(ends), to_arrow(placed))
    documents = found.indices[:size].astype(np.int32, copy=False)
    too_long = sum(block.too_long for block in blocks)
    return Postings(pa.table(table), documents, frequencies, listed, lengths, too_long)


def _terms(words: pa.Array, terms: Terms) -> tuple[pa.Array, Int32s]:
    """Return the terms, ascending by their bytes, and for each distinct word the place of its term, the last for none.

    Text is ascending by code points, as it is by bytes of UTF-8.
    """
    of_words = [terms.of(word) if word else None for word in words.to_pylist()]
    ordered = sorted({term for term in of_words if term is not None})
    places: dict[str | None, int] = {None: len(ordered)} | {term: place for place, term in enumerate(ordered)}
    return pa.array(ordered, pa.large_string()), np.fromiter(map(places.__getitem__, of_words), np.int32, len(of_words))
