"""Arrays that wait for a later task: in memory, or in raw little-endian files where memory is too small for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from whitewater.devices import Array
from whitewater.errors import IntegrityError


class Kept(Protocol):
    """A one-dimensional array of the host that parts can be read of."""

    def __len__(self) -> int: ...
    def part(self, start: int, stop: int) -> Array:
        """Return the values from ``start`` to before ``stop``, which must not be changed."""


@dataclass(frozen=True)
class InMemory:
    """An array in memory."""

    array: Array

    def __len__(self) -> int:
        return len(self.array)

    def part(self, start: int, stop: int) -> Array:
        """Return some values."""
        return self.array[start:stop]


@dataclass(frozen=True)
class InFile:
    """An array in a file of its own."""

    path: Path
    dtype: str
    size: int

    def __len__(self) -> int:
        return self.size

    def part(self, start: int, stop: int) -> Array:
        """Read some values.

        Raises
        ------
        IntegrityError
            If the file ends before them.
        """
        dtype = np.dtype(self.dtype)
        values = np.fromfile(self.path, dtype, stop - start, offset=start * dtype.itemsize)
        if len(values) != stop - start:
            raise IntegrityError(f"{self.path} ends early: something changed it while the step ran. Run it again.")
        return values


def keep(array: Array, path: Path | None) -> Kept:
    """Keep an array, in a file if a path is given."""
    if path is None:
        return InMemory(array)
    array.tofile(path)
    return InFile(path, array.dtype.str, len(array))
