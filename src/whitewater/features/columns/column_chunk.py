"""A column chunk of a Parquet file, read whole or in part as it is stored.

The entries of a dictionary stay entries of a dictionary: a row of text is a code, and a row of numbers one look-up.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import FileIO

import numpy as np
import pyarrow as pa

from whitewater.engines import Array
from whitewater.features.columns import pages as parquet_pages
from whitewater.features.columns.chunk import PHYSICAL, Chunk, ChunkError, Page, pages_of, texts_of, unsigned
from whitewater.features.columns.column import Categories, Numbers
from whitewater.features.columns.pages import DATA, DATA_V2, DICTIONARY
from whitewater.tables.arrow_arrays import empty

# The code of a null, -1, as kernels see it.
_NULL_CODE = 2**32 - 1


def read_chunk(data: FileIO, chunk: Chunk, wanted: range) -> Numbers | Categories:
    """Return rows of a column chunk.

    The rows ``wanted`` are numbered from 0. Raises ChunkError if the chunk is cut off or malformed; OSError or
    ValueError if the file cannot be read, its bytes cannot be decompressed, or a text is not UTF-8.
    """
    decoder = _Texts(chunk) if chunk.physical == "BYTE_ARRAY" else _Numbers(chunk)
    values = empty(len(wanted), decoder.dtype)
    valid: Array | None = None
    for page, rows in _data_pages(data, chunk, wanted, decoder):
        inside = slice(max(rows.start, wanted.start) - rows.start, min(rows.stop, wanted.stop) - rows.start)
        place = slice(inside.start + rows.start - wanted.start, inside.stop + rows.start - wanted.start)
        if inside.stop - inside.start == len(rows):
            present = decoder.decode(page, values[place])
        else:
            whole = np.empty(len(rows), decoder.dtype)
            present = decoder.decode(page, whole)
            values[place] = whole[inside]
        if present is not None:
            valid = np.ones(len(wanted), np.bool_) if valid is None else valid
            valid[place] = present[inside]
    return decoder.column(values, valid)


def _data_pages(data: FileIO, chunk: Chunk, wanted: range, decoder: _Texts | _Numbers) -> Iterator[tuple[Page, range]]:
    """Yield the data pages that have wanted rows, and the rows of each; give a dictionary page to the decoder."""
    first = 0
    for page in pages_of(data, chunk, wanted):
        if page.kind == DICTIONARY:
            decoder.begin(page)
        elif page.kind in (DATA, DATA_V2):
            rows = range(first, first + page.rows)
            if rows.stop > chunk.rows:
                break
            if rows.start < wanted.stop and rows.stop > wanted.start:
                yield page, rows
            first = rows.stop
    if first != chunk.rows:
        raise ChunkError(f"has other rows than the {chunk.rows} of its row group")


class _Texts:
    """Decodes pages of text into codes, uint32; a text outside the chunk's dictionary gets an entry of its own."""

    dtype = np.dtype(np.uint32)

    def __init__(self, chunk: Chunk) -> None:
        self._optional = chunk.optional
        self._dictionaries = [pa.nulls(0, pa.string())]
        self._entries = 0
        self._table = np.array([_NULL_CODE], self.dtype)

    def begin(self, page: Page) -> None:
        """Take the dictionary."""
        self._add(texts_of(page.body, page.rows))
        self._table = np.append(np.arange(self._entries, dtype=self.dtype), self.dtype.type(_NULL_CODE))

    def _add(self, texts: pa.Array) -> None:
        self._dictionaries.append(texts)
        self._entries += len(texts)

    def decode(self, page: Page, codes: Array) -> None:
        """Fill the codes of a page."""
        if page.has_indices:
            _look_up(page, self._optional, self._table, codes)
            return
        count, start, present = _levels(page, self._optional)
        first = self._entries
        self._add(texts_of(memoryview(page.body)[start:], count))
        codes[:] = np.cumsum(present, dtype=np.int64) + (first - 1)
        codes[present == 0] = _NULL_CODE

    def column(self, codes: Array, _: Array | None) -> Categories:
        """Return the column, given all codes."""
        filled = [texts for texts in self._dictionaries if len(texts)] or self._dictionaries
        return Categories(codes.view(np.int32), filled[0] if len(filled) == 1 else pa.concat_arrays(filled))


class _Numbers:
    """Decodes pages of numbers into values of their physical type; null is NaN, or 0 and told apart."""

    def __init__(self, chunk: Chunk) -> None:
        self.dtype = PHYSICAL[chunk.physical]
        self._type = np.dtype(chunk.type.to_pandas_dtype())
        self._optional = chunk.optional
        self._is_float = self.dtype.kind == "f"
        self._null = np.array([np.nan if self._is_float else 0], self.dtype)
        self._table = self._null

    def begin(self, page: Page) -> None:
        """Take the dictionary."""
        self._table = np.concatenate([self._stored(page.body, page.rows), self._null])

    def _stored(self, body: bytes | memoryview, count: int) -> Array:
        if len(body) < count * self.dtype.itemsize:
            raise ChunkError("has a page that is too short for its values")
        return np.frombuffer(body, self.dtype, count)

    def decode(self, page: Page, values: Array) -> Array | None:
        """Fill the values of a page; return which rows have one, bool, where nulls are not NaN."""
        if page.has_indices:
            nulls = _look_up(page, self._optional, unsigned(self._table), unsigned(values))
            return _levels(page, self._optional)[2].astype(np.bool_) if nulls and not self._is_float else None
        count, start, present = _levels(page, self._optional)
        values[page.rows - count :] = self._stored(memoryview(page.body)[start:], count)
        if count == page.rows:
            return None
        parquet_pages.spread(unsigned(values), present, count, unsigned(self._null)[0])
        return None if self._is_float else present.astype(np.bool_)

    def column(self, values: Array, valid: Array | None) -> Numbers:
        """Return the column, given all values."""
        return Numbers(values.astype(self._type, copy=False), valid)


def _look_up(page: Page, optional: bool, table: Array, values: Array) -> int:
    """Look up the indices of a page in a table, null last; return the number of nulls."""
    data, present = np.frombuffer(page.body, np.uint8), np.empty(page.rows if optional else 0, np.uint32)
    nulls: int = parquet_pages.look_up(data, page.levels, present, table, values)
    if nulls < 0:
        raise ChunkError("has a malformed page of dictionary indices")
    return nulls


def _levels(page: Page, optional: bool) -> tuple[int, int, Array]:
    """Return how many rows have a value, where the values begin, and which rows they are: 1 or 0, uint32 (rows,)."""
    if not optional:
        return page.rows, 0, np.ones(page.rows, np.uint32)
    present = np.empty(page.rows, np.uint32)
    count, start = parquet_pages.definition_levels(np.frombuffer(page.body, np.uint8), page.levels, present)
    if start < 0:
        raise ChunkError("has malformed definition levels")
    return count, start, present
