"""The kernels of `whitewater.graphs.build.with_kernels`.

``KeyedEdges`` are keys, uint64 (edges,), and weights, float64 (edges,), empty if unweighted. ``Numbers`` are a bit for
each code, set for vertices, uint64 (words,), and the number of vertices before each word, uint32.
"""

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import int64, kernel, ones, part, uint64

KeyedEdges = tuple[Array, Array]
Numbers = tuple[Array, Array]
Output3 = tuple[Array, Array, Array]

_DIGIT_BITS = 11
_SOURCE = 0xFFFFFFFF


@part
def _mark(marks: Array, code: int) -> None:
    # Most bits are set already: a check is faster than a store, which waits for the previous store to the same word.
    word, bit = code >> uint64(6), uint64(1) << (code & uint64(63))
    if not marks[word] & bit:
        marks[word] |= bit


@kernel
def encode_block(ends: tuple[Array, Array], weight: Array, span: tuple[int, int, bool], output: Output3) -> int:
    """Fill the ``output``, keys, weights and marks, from edges; return the number of keys, or -1 if an id has no code.

    ``ends`` are source and target, int64 (edges,), ``weight`` float64 (edges,) or empty. ``span`` is the end with code
    0, the number of codes, and whether to add the opposite of each edge.
    """
    source, target = ends
    minimum, size, symmetric = span
    keys, weights, marks = output
    filled = 0
    for row in range(len(source)):
        first, second = uint64(source[row] - minimum), uint64(target[row] - minimum)
        if first >= size or second >= size:
            return -1
        _mark(marks, first)
        _mark(marks, second)
        keys[filled] = second << uint64(32) | first
        if len(weights):
            weights[filled] = weight[row]
        filled += 1
        if symmetric and first != second:
            keys[filled] = first << uint64(32) | second
            if len(weights):
                weights[filled] = weight[row]
            filled += 1
    return filled


@kernel
def sort_digit(edges: KeyedEdges, bit: int, width: int, output: KeyedEdges) -> Array:
    """Sort stably by the digit of ``width`` bits from ``bit`` on; return the end of each digit's edges, int64."""
    keys, weights = edges
    to_keys, to_weights = output
    mask = uint64((1 << width) - 1)
    counts = np.zeros(1 << width, np.int64)
    for edge in range(len(keys)):
        counts[int64(keys[edge] >> uint64(bit) & mask)] += 1
    places = np.cumsum(counts) - counts
    for edge in range(len(keys)):
        digit = int64(keys[edge] >> uint64(bit) & mask)
        place = places[digit]
        places[digit] += 1
        to_keys[place] = keys[edge]
        if len(weights):
            to_weights[place] = weights[edge]
    return places


@kernel
def sort_keys(edges: KeyedEdges, other: KeyedEdges) -> bool:
    """Sort stably by key, one digit after the other; return whether the result is in the ``other`` arrays.

    Bits before a digit that all keys share are skipped.
    """
    keys = edges[0]
    differing = uint64(0)
    for edge in range(1, len(keys)):
        differing |= keys[edge] ^ keys[0]
    swapped, bit = False, 0
    while bit < 64 and differing >> uint64(bit):
        while not differing >> uint64(bit) & uint64(1):
            bit += 1
        if swapped:
            sort_digit(other, bit, _DIGIT_BITS, edges)
        else:
            sort_digit(edges, bit, _DIGIT_BITS, other)
        swapped = not swapped
        bit += _DIGIT_BITS
    return swapped


@part
def _number(code: int, numbers: Numbers) -> int:
    """Return the number of marks before a code."""
    words, before = numbers
    word = code >> uint64(6)
    return int64(before[word]) + ones(words[word] & ((uint64(1) << (code & uint64(63))) - uint64(1)))


@kernel
def merge_equal(
    edges: KeyedEdges, maximum: bool, numbers: Numbers, targets: tuple[Array, int], output: KeyedEdges
) -> tuple[int, int, int]:
    """Write one edge for each run of equal keys; return the number of edges, of self-loops, and the first merged edge.

    The weight of a run is the ``maximum``, or the sum in ascending order; without weights it is the run's length.
    ``targets`` are the edges of each target, int64, which are added to, and the number of the first target; ``output``
    are numbers of sources, and weights if not empty. Without a run of several keys, the first merged edge is -1.
    """
    keys, weights = edges
    counts, vertex = targets
    sources, merged = output
    filled, loops, repeated, edge = 0, 0, -1, 0
    previous, target = uint64(0xFFFFFFFFFFFFFFFF), 0  # no code
    while edge < len(keys):
        key = keys[edge]
        stop = edge + 1
        while stop < len(keys) and keys[stop] == key:
            stop += 1
        if stop - edge > 1 and repeated < 0:
            repeated = filled
        if key >> uint64(32) != previous:
            previous = key >> uint64(32)
            target = _number(previous, numbers) - vertex
        sources[filled] = _number(key & uint64(_SOURCE), numbers)
        counts[target] += 1
        loops += previous == key & uint64(_SOURCE)
        if len(merged):
            merged[filled] = _merge_weights(weights[edge:stop], maximum) if len(weights) else float(stop - edge)
        filled += 1
        edge = stop
    return filled, loops, repeated


@part
def _merge_weights(weights: Array, maximum: bool) -> float:
    """Return the maximum of weights or their sum in ascending order; may reorder them."""
    if len(weights) == 1:
        return float(weights[0])
    if maximum:
        return float(weights.max())
    weights.sort()
    total = 0.0
    for weight in weights:
        total += weight
    return total
