"""What crosses between host and device while a step runs, and what it does there: counted in bytes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr


@dataclass
class Traffic:
    """Bytes that a step sent to the device, got back and allocated there, and the number of its operations there."""

    up: int = 0
    down: int = 0
    allocated: int = 0
    operations: int = 0
    # Bytes of the arrays in the files that it read and wrote.
    input: int = 0
    output: int = 0
    # Bytes allocated by the step itself rather than by its tasks, where these run in other processes.
    beside_tasks: int = 0

    @property
    def up_per_byte(self) -> float:
        """Return how often each byte of the input goes up."""
        return self.up / (self.input or 1)

    @property
    def down_per_byte(self) -> float:
        """Return how often each byte of the output comes down; of the input, where results are not arrays."""
        return self.down / (self.output or self.input or 1)


_COUNTING: list[Traffic] = []
_LOCK = threading.Lock()
_WORKER = threading.local()


@contextmanager
def counted(traffic: Traffic) -> Iterator[None]:
    """Add what crosses meanwhile, on any thread."""
    _COUNTING.append(traffic)
    try:
        yield
    finally:
        _COUNTING.remove(traffic)


@contextmanager
def on_worker() -> Iterator[None]:
    """Say that this thread stands for a worker's process."""
    before = getattr(_WORKER, "here", False)
    _WORKER.here = True
    try:
        yield
    finally:
        _WORKER.here = before


def uploaded(size: int) -> None:
    with _LOCK:
        for each in _COUNTING:
            each.up += size


def downloaded(size: int) -> None:
    with _LOCK:
        for each in _COUNTING:
            each.down += size


def allocated(size: int) -> None:
    beside = 0 if getattr(_WORKER, "here", False) else size
    with _LOCK:
        for each in _COUNTING:
            each.allocated += size
            each.beside_tasks += beside


def operated() -> None:
    with _LOCK:
        for each in _COUNTING:
            each.operations += 1


def bytes_of_arrays(path: Path) -> int:
    """Return the bytes of the arrays in a file or folder; where there are none, of the columns of tables.

    Columns have the width that they have on a device: text is 4 bytes a row.
    """
    if path.suffix == ".zarr":
        return sum(array.nbytes for _, array in zarr.open_group(path, mode="r").arrays())
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    arrays = sum(np.load(file, mmap_mode="r").nbytes for file in files if file.suffix == ".npy")
    return arrays or sum(_bytes_of_table(file) for file in files if file.suffix == ".parquet")


def _bytes_of_table(path: Path) -> int:
    table = pq.read_table(path, partitioning=None)
    return sum(_width(column.type) * len(column) for column in table.columns)


def _width(type_: pa.DataType) -> int:
    try:
        return max(1, int(type_.bit_width) // 8)
    except ValueError:
        return 4


def flat(paths: Mapping[str, Path | Mapping[str, Path]]) -> Iterator[Path]:
    """Yield the paths that a step is given."""
    for path in paths.values():
        yield from path.values() if isinstance(path, Mapping) else [path]
