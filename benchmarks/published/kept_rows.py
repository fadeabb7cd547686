"""A matrix that is kept in memory as far as a limit allows, and below that in a file, and is read block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from whitewater.errors import ResourceError

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class KeptRows:
    """float64 (rows, columns): the first rows in memory, the others in a file; all on the host.

    ``block_rows`` are read at once, into a buffer that the reading thread has for itself.
    """

    held: Matrix
    file: Path
    rows: int
    block_rows: int

    @property
    def file_bytes(self) -> int:
        """Bytes of the file."""
        return (self.rows - len(self.held)) * self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        columns: int = self.held.shape[1]
        return self.held.itemsize * columns

    def blocks(self, rows: range) -> Iterator[tuple[int, Matrix]]:
        """Yield the number of the first row of each block of some rows, and its values, which the next overwrites."""
        buffer = np.empty((self.block_rows, self.held.shape[1]))
        with self.file.open("rb", buffering=0) as file:
            for start in range(rows.start, rows.stop, self.block_rows):
                block = buffer[: min(self.block_rows, rows.stop - start)]
                self._read(start, block, file.fileno())
                yield start, block

    def _read(self, start: int, block: Matrix, file: int) -> None:
        held = self.held[start : start + len(block)]
        block[: len(held)] = held
        below = block[len(held) :]
        offset = (start + len(held) - len(self.held)) * self.row_bytes
        if len(below) and os.preadv(file, [below.data], offset) != below.nbytes:
            raise ResourceError(f"{self.file} is shorter than what was written to it. Measure again.")


def keep(
    fill: Callable[[int, int], Matrix],
    shape: tuple[int, int],
    *,
    limit: int,
    threads: int,
    block_cells: int,
    file: Path,
) -> KeptRows:
    """Make a matrix block by block, and keep as many rows in memory as leave room within ``limit`` for what reads them.

    ``fill`` is given the number of the first row of a block and the number of its rows, and returns these; it is called
    in the order of the rows.
    """
    rows, columns = shape
    row_bytes = 8 * columns
    # Half of the limit at most is for the buffers of the threads.
    block_rows = max(1, min(block_cells // columns, limit // (2 * threads * row_bytes)))
    held = np.empty((min(rows, max(0, limit // row_bytes - threads * block_rows)), columns))
    kept = KeptRows(held, file, rows, block_rows)
    with closing(file.open("wb")) as output:
        for start in range(0, rows, block_rows):
            block = fill(start, min(block_rows, rows - start))
            inside = held[start : start + len(block)]
            inside[...] = block[: len(inside)]
            output.write(np.ascontiguousarray(block[len(inside) :]).data)
    return kept
