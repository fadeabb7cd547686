"""Ids of names that are spans of text: those of `whitewater.pagerank.vertex_ids`, without a Python object for each."""

from __future__ import annotations

import numpy as np

from whitewater.devices.kernel import int64, kernel, uint64
from whitewater.devices.protocol import Array
from whitewater.devices.xxh64 import xxh64
from whitewater.pagerank.edge_files.text_kernels import LENGTH


def hash_names(data: Array, spans: Array) -> Array:
    """Return the ids of names: uint8 text, int64 spans (names,) of it -> int64 (names,)."""
    ids = np.empty(len(spans), np.int64)
    _hash_spans(data, spans, ids)
    return ids


@kernel
def _hash_spans(data: Array, spans: Array, ids: Array) -> None:
    for row in range(len(spans)):
        begin = spans[row] >> 32
        ids[row] = int64(xxh64(data, uint64(begin), uint64(begin + (spans[row] & LENGTH)), uint64(0)))
