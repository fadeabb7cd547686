"""What is made of spans of text on the host: numbers for distinct words, and doubles of numbers with many digits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from whitewater.devices.blocks import NULL_INTEGER, Array, Encoded
from whitewater.devices.delimited_lines import LENGTH, LONG, NULL_SPAN
from whitewater.devices.kernel import int64, kernel, part


class Words:
    """The vocabulary of a column of ``text`` (uint8), whose fields are spans of it."""

    def __init__(self, text: Array) -> None:
        self._text = text
        self._spans = np.empty(256, np.int64)
        self._buckets = np.full(512, -1, np.int32)
        self._known = 0

    def encode(self, spans: Array, codes: Array) -> None:
        """Fill in the code of each span, -1 for `NULL_SPAN`."""
        known = _encode(self._text, spans, (self._buckets, self._spans), self._known, codes)
        while known < 0:
            self._grow()
            known = _encode(self._text, spans, (self._buckets, self._spans), self._known, codes)
        self._known = known

    def _grow(self) -> None:
        spans = self._spans[: self._known]
        self._spans = np.empty(4 * len(self._spans), np.int64)
        self._buckets = np.full(2 * len(self._spans), -1, np.int32)
        self._known = _encode(self._text, spans, (self._buckets, self._spans), 0, np.empty(len(spans), np.int32))

    def encoded(self, codes: Array) -> Encoded:
        """Return codes and words without quotes; an empty word is null, and what reads the same gets one code."""
        words = [_unquoted(self._text, span) for span in self._spans[: self._known].tolist()]
        vocabulary = {word: code for code, word in enumerate(dict.fromkeys(filter(None, words)))}
        if len(vocabulary) == len(words):
            return Encoded(codes, tuple(words))
        renumbered = np.array([*(vocabulary.get(word, NULL_INTEGER) for word in words), NULL_INTEGER], np.int32)
        return Encoded(renumbered[codes], tuple(vocabulary))


def long_numbers(text: Array, integers: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield row, lines and nearest double of the numbers that have too many digits for `parse_line`.

    ``integers`` are those that it filled.
    """
    rows = int(np.bitwise_or.reduce(integers[LONG], initial=0))
    for row in [row for row in range(len(integers)) if rows >> row & 1]:
        lines = np.flatnonzero(integers[LONG] >> row & 1)
        spans = integers[row, lines]
        offsets, copied = np.empty(len(spans) + 1, np.int32), np.empty(int((spans & LENGTH).sum()), np.uint8)
        _copy(text, spans, offsets, copied)
        digits = pa.StringArray.from_buffers(len(spans), pa.py_buffer(offsets), pa.py_buffer(copied))
        yield row, lines, np.from_dlpack(digits.cast(pa.float64()))


def _unquoted(text: Array, span: int) -> str:
    begin = span >> 32
    word = text[begin : begin + (span & LENGTH)].tobytes().decode("utf-8", "replace")
    return word[1:-1].replace('""', '"') if word.startswith('"') else word


@kernel
def _encode(data: Array, spans: Array, table: tuple[Array, Array], known: int, codes: Array) -> int:
    """Fill in the code of each span and return the number of words known, or -1 when there is no room for more.

    ``table``: an open hash table of codes, int32 (a power of two,), -1 where empty; and the span of each word, int64,
    at most half as many.
    """
    buckets, words = table
    for row in range(len(spans)):
        if spans[row] == NULL_SPAN:
            codes[row] = NULL_INTEGER
            continue
        bucket = _bucket(data, spans[row], buckets, words)
        if buckets[bucket] < 0:
            if known == len(words):
                return -1
            words[known] = spans[row]
            buckets[bucket] = known
            known += 1
        codes[row] = buckets[bucket]
    return known


@part
def _bucket(data: Array, span: int, buckets: Array, words: Array) -> int:
    """Return the bucket that holds a word, or the empty one that will."""
    bucket = _hash(data, span) & (len(buckets) - 1)
    while buckets[bucket] >= 0 and not _same(data, span, words[buckets[bucket]]):
        bucket = (bucket + 1) & (len(buckets) - 1)
    return bucket


@part
def _hash(data: Array, span: int) -> int:
    """Return the FNV-1a hash (Fowler, Noll, Vo) of a text, 32 bits, its high bits folded in."""
    value = int64(0x811C9DC5)
    for position in range(span >> 32, (span >> 32) + (span & LENGTH)):
        value = ((value ^ int64(data[position])) * 0x01000193) & 0xFFFFFFFF
    return value ^ (value >> 15)


@part
def _same(data: Array, left: int, right: int) -> bool:
    length = left & LENGTH
    index = 0
    if length != right & LENGTH:
        return False
    while index < length and data[(left >> 32) + index] == data[(right >> 32) + index]:
        index += 1
    return index == length


@kernel
def _copy(data: Array, spans: Array, offsets: Array, copied: Array) -> None:
    offsets[0] = 0
    for index in range(len(spans)):
        begin, length = spans[index] >> 32, spans[index] & LENGTH
        start = offsets[index]
        for place in range(length):
            copied[start + place] = data[begin + place]
        offsets[index + 1] = start + length
