"""Inner join of a large table with a small one on threads: the small one is indexed, the large one is read in slices.

The rows of the small table are ordered by key (counting sort), so that those of a key lie together and their place is
looked up, not searched for. Each slice of the large table first counts its matches, so that all slices then write to
places of their own at the same time; the result is in the order of the large table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whitewater.devices.kernel import kernel

Integers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
Columns = tuple[Reals, Integers, Reals]

# Keys are looked up by their distance from the smallest one if there are at most so many possible ones for each row.
SPAN_PER_ROW = 4


@dataclass(frozen=True)
class Index:
    """Values by key: those of key number *k* are ``values[starts[k]:starts[k + 1]]``.

    The number of a key is its distance from ``low``, or its place in ``names``, ascending, where there are names.
    """

    low: int
    names: Integers | None
    starts: Integers
    values: Reals

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.starts.nbytes + self.values.nbytes + (0 if self.names is None else self.names.nbytes)

    def numbers(self, keys: Integers) -> tuple[Integers, int]:
        """Return keys and a smallest one, so that their differences are numbers; a key that is not here has none."""
        if self.names is None:
            return keys, self.low
        places = np.searchsorted(self.names, keys)
        found = self.names[np.minimum(places, len(self.names) - 1)] == keys
        return np.where(found, places, -1), 0

    def count(self, keys: Integers) -> int:
        """Return how many pairs keys make."""
        return count_matches(*self.numbers(keys), self.starts)

    def join(self, values: Reals, keys: Integers, output: Columns) -> None:
        """Write values, keys, and the values here, of each pair."""
        write_matches((values, keys), *self.numbers(keys), (self.starts, self.values), output)


def index(keys: Integers, values: Reals) -> Index:
    """Return the index of at least one row."""
    low, high = int(keys.min()), int(keys.max())
    names = None
    if high - low >= SPAN_PER_ROW * len(keys):
        names, keys = np.unique(keys, return_inverse=True)
        low, high = 0, len(names) - 1
    starts, ordered = np.zeros(high - low + 2, np.int64), np.empty(len(keys))
    order_by_key(keys, values, low, starts, ordered)
    return Index(low, names, starts, ordered)


@kernel
def order_by_key(keys: Integers, values: Reals, low: int, starts: Integers, ordered: Reals) -> None:
    """Order values by key, and set the start of each key; ``starts`` are zeros, one for each key and one more."""
    for key in keys:
        starts[key - low + 1] += 1
    for number in range(1, len(starts)):
        starts[number] += starts[number - 1]
    for row in range(len(keys)):
        number = keys[row] - low
        ordered[starts[number]] = values[row]
        starts[number] += 1
    # Each start has moved to the end of its key, which is the start of the next one.
    for number in range(len(starts) - 1, 0, -1):
        starts[number] = starts[number - 1]
    starts[0] = 0


@kernel
def count_matches(keys: Integers, low: int, starts: Integers) -> int:
    """Count the pairs that keys make; a key outside of those that are numbered makes none."""
    last = low + len(starts) - 2
    pairs = 0
    for key in keys:
        if low <= key <= last:
            pairs += starts[key - low + 1] - starts[key - low]
    return pairs


@kernel
def write_matches(
    left: tuple[Reals, Integers],
    numbered: Integers,
    low: int,
    right: tuple[Integers, Reals],
    output: Columns,
) -> None:
    """Write the value and the key of each left row, and the right value, for each pair, in the order of the left."""
    left_values, keys = left
    starts, right_values = right
    first, key, second = output
    last = low + len(starts) - 2
    place = 0
    for row in range(len(keys)):
        number = numbered[row]
        if low <= number <= last:
            for match in range(starts[number - low], starts[number - low + 1]):
                first[place] = left_values[row]
                key[place] = keys[row]
                second[place] = right_values[match]
                place += 1
